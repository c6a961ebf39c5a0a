"""JSON Schemas from Python types, in words that every provider takes."""

import json
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, create_model

from agent.schema import portable, schema_of


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Item(BaseModel):
    sku: str
    title: str | None = None


class Node(BaseModel):
    value: str
    children: list["Node"] = []


class Even(BaseModel):
    next: "Odd | None" = None


class Odd(BaseModel):
    next: Even | None = None


class Pair(NamedTuple):
    name: str
    amount: int


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def schema(kind: Any) -> dict[str, object]:
    return schema_of(TypeAdapter(kind))


ITEM = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["sku"],
}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list, {"type": "array", "items": {"type": "string"}}),
        (list[Any], {"type": "array", "items": {"type": "string"}}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[list[Any]], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"], {"type": "string", "enum": ["a"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Size, {"type": "string", "enum": ["s", "l"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (
            tuple[int, str],
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (
            Pair,
            {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (Annotated[int, Field(ge=1, lt=9)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
        (Item, ITEM),
        (list[Item], {"type": "array", "items": ITEM}),
        (dict[str, Item], {"type": "object", "additionalProperties": ITEM}),
        (
            Pet,
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"type": "string", "enum": [name]}},
                        "required": ["kind"],
                    }
                    for name in ("cat", "dog")
                ]
            },
        ),
    ],
)
def test_each_type_has_a_schema(kind: Any, expected: dict[str, object]) -> None:
    assert schema(kind) == expected


def test_a_recursive_definition_stays_a_reference() -> None:
    """case-040"""
    node: dict[str, object] = {
        "type": "object",
        "properties": {
            "value": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
        },
        "required": ["value"],
    }

    assert schema(list[Node]) == {"type": "array", "items": {"$ref": "#/$defs/Node"}, "$defs": {"Node": node}}
    assert schema(Node) == {**node, "$defs": {"Node": node}}


def test_definitions_that_hold_each_other_stay_references() -> None:
    assert set(schema(Even)["$defs"]) == {"Even", "Odd"}  # pyright: ignore[reportArgumentType]


def test_a_definition_keeps_the_description_of_its_use() -> None:
    described = schema(create_model("Order", item=(Item, Field(description="What to buy."))))

    assert described["properties"] == {"item": {**ITEM, "description": "What to buy."}}


def test_what_would_grow_too_large_keeps_its_references() -> None:
    model: type[BaseModel] = Item
    for depth in range(20):
        model = create_model(f"Level{depth}", left=(model, ...), right=(model, ...))

    text = json.dumps(schema(model))

    assert len(text) < 10_000
    assert '"#/$defs/Level18"' in text


def test_a_portable_schema_cuts_recursion_at_a_stated_depth() -> None:
    """case-040"""
    text = json.dumps(portable(schema(list[Node]), depth=1))

    assert "$ref" not in text
    assert "$defs" not in text
    assert text.count('"value": {"type": "string"}') == 2
    assert '"items": {"type": "object"}' in text


def test_a_portable_schema_has_no_enumerations_but_of_text() -> None:
    """case-046"""
    made = portable(
        schema(create_model("Order", retry=(Literal[1, 2], 1), level=(Level | None, None), size=(Size, ...)))
    )

    assert made["properties"] == {
        "retry": {"type": "string", "enum": ["1", "2"], "default": "1"},
        "level": {"anyOf": [{"type": "string", "enum": ["1", "2"]}, {"type": "null"}]},
        "size": {"type": "string", "enum": ["s", "l"]},
    }


def test_a_portable_schema_says_a_type_everywhere() -> None:
    assert portable(schema(create_model("Order", note=(Any, ...))))["properties"] == {"note": {"type": "string"}}


def test_properties_may_be_named_like_the_words_of_schemas() -> None:
    named = create_model("Named", title=(str, ...), properties=(int, ...), items=(list[int], ...), const=(str, "x"))

    assert schema(named)["properties"] == {
        "title": {"type": "string"},
        "properties": {"type": "integer"},
        "items": {"type": "array", "items": {"type": "integer"}},
        "const": {"type": "string", "default": "x"},
    }


def test_a_portable_schema_written_by_hand_is_put_into_the_same_words() -> None:
    """case-046"""
    by_hand: dict[str, object] = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "enum": [1, 2, 3]},
            "mixed": {"type": ["string", "null"], "enum": ["a", None], "description": "Which."},
            "bare": {"type": "array"},
            "anything": {"type": "array", "items": True},
            "open": True,
            "kinds": {"type": ["array", "integer", "string"], "minimum": 1, "maxLength": 3},
            "one": {"type": ["integer"]},
            "fixed": {"const": 5},
            "either": {"oneOf": [{"const": "a"}, {"const": 2}]},
            "untyped": {"properties": {"x": {"type": ["number", "null"]}}},
        },
    }

    assert portable(by_hand)["properties"] == {
        "number": {"type": "string", "enum": ["1", "2", "3"]},
        "mixed": {"description": "Which.", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        "bare": {"type": "array", "items": {"type": "string"}},
        "anything": {"type": "array", "items": {"type": "string"}},
        "open": {"type": "string"},
        "kinds": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}},
                {"type": "integer", "minimum": 1},
                {"type": "string", "maxLength": 3},
            ]
        },
        "one": {"type": "integer"},
        "fixed": {"type": "string", "enum": ["5"]},
        "either": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["2"]}]},
        "untyped": {"type": "object", "properties": {"x": {"anyOf": [{"type": "number"}, {"type": "null"}]}}},
    }


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": ["string", "null"], "const": "x"}, {"type": "string", "enum": ["x"]}),
        ({"type": ["integer", "null"], "const": None}, {"type": "null"}),
        ({"type": ["string", "null"], "enum": [1]}, {"type": "string", "enum": ["1"]}),
        ({"type": [], "description": "Any."}, {"type": "string", "description": "Any."}),
        ({"type": ["string", "null"], "enum": []}, {"type": "string", "enum": []}),
        (
            {"type": ["string", "integer", "null"], "format": "date"},
            {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}, {"type": "null"}]},
        ),
    ],
)
def test_a_list_of_types_is_a_choice_of_those_that_a_value_can_have(
    node: dict[str, object], expected: dict[str, object]
) -> None:
    made = portable({"type": "object", "properties": {"one": node}})

    assert made["properties"] == {"one": expected}


def test_portable_parameters_are_an_object_also_where_they_might_be_null() -> None:
    properties = {"a": {"type": "string"}}

    made = portable({"type": ["object", "null"], "properties": properties, "required": ["a"]})

    assert made == {"type": "object", "properties": properties, "required": ["a"]}


KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
VALUES = st.sampled_from([1, 2.5, "a", None, True])
LEAVES: list[st.SearchStrategy[object]] = [
    st.booleans(),
    st.just({}),
    st.fixed_dictionaries({"type": KINDS}),
    st.fixed_dictionaries({"type": st.lists(KINDS, max_size=3, unique=True)}),
    st.fixed_dictionaries({"type": st.lists(KINDS, max_size=3, unique=True), "enum": st.lists(VALUES, max_size=3)}),
    st.fixed_dictionaries({"type": st.lists(KINDS, max_size=3, unique=True), "const": VALUES}),
    st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": VALUES}),
]


def around(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    choices = st.lists(inner, min_size=1, max_size=3)
    nodes: list[st.SearchStrategy[object]] = [
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just(["array", "null"]), "items": inner}),
        st.fixed_dictionaries({"properties": st.fixed_dictionaries({"one": inner})}),
        st.fixed_dictionaries({"anyOf": choices}),
        st.fixed_dictionaries({"oneOf": choices}),
    ]
    return st.one_of(nodes)


BY_HAND = st.recursive(st.one_of(LEAVES), around, max_leaves=6)


@given(BY_HAND)
def test_every_node_of_a_portable_schema_is_plain(by_hand: object) -> None:
    def look(node: dict[str, Any]) -> None:
        assert isinstance(node.get("type", ""), str)
        assert node.get("type") or node.get("anyOf")
        assert not set(node) & {"const", "oneOf"}
        assert node.get("type") != "array" or node["items"]
        assert all(isinstance(value, str) for value in node.get("enum", []))
        for child in (*node.get("anyOf", []), *node.get("properties", {}).values(), node.get("items")):
            if child is not None:
                look(child)

    look(portable({"type": "object", "properties": {"root": by_hand}}))
