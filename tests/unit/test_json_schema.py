"""The check of values against schemas that were written by hand."""

import pytest

from agent.json_schema import JsonSchema

ITEMS = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Item"}, "minItems": 1, "uniqueItems": True}},
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"Item": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
}


def problems(schema: dict[str, object], value: object) -> list[str]:
    return [f"{'.'.join(path)}: {text}" for path, text in JsonSchema(schema).problems(value)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "210"),
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 3.0),
        ({"type": "number"}, 3),
        ({"type": ["string", "null"]}, None),
        ({"enum": [1, "a", None]}, None),
        ({"const": 1}, 1),
        ({"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"}, "abc"),
        ({"minimum": 1, "maximum": 3, "exclusiveMinimum": 0, "exclusiveMaximum": 4, "multipleOf": 0.5}, 1.5),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 1),
        ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2),
        ({"not": {"type": "string"}}, 2),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1, 2]),
        ({"items": True}, [1, "a"]),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1}),
        ({"unknown-word": 3}, {"a": 1}),
        (ITEMS, {"items": [{"n": 1}, {"n": 2}]}),
        (
            {"type": "object", "properties": {"a~b": {"$ref": "#/properties/c~1d"}, "c/d": {"type": "string"}}},
            {"a~b": "x"},
        ),
    ],
)
def test_what_fits_has_no_problems(schema: dict[str, object], value: object) -> None:
    assert problems(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, 210, ": must be of type string"),
        ({"type": "integer"}, "210", ": must be of type integer"),
        ({"type": "integer"}, True, ": must be of type integer"),
        ({"type": "number"}, True, ": must be of type number"),
        ({"type": "boolean"}, 1, ": must be of type boolean"),
        ({"type": ["string", "null"]}, 1, ": must be of type string or null"),
        ({"enum": [1]}, True, ": must be one of [1]"),
        ({"const": 1}, 2, ": must be 1"),
        ({"minLength": 2}, "a", ": must have at least 2 characters"),
        ({"maxLength": 0}, "a", ": must have at most 0 characters"),
        ({"pattern": "^b"}, "a", ": must match the pattern ^b"),
        ({"minimum": 1}, 0, ": must be at least 1"),
        ({"maximum": 1}, 2, ": must be at most 1"),
        ({"exclusiveMinimum": 1}, 1, ": must be greater than 1"),
        ({"exclusiveMaximum": 1}, 1, ": must be less than 1"),
        ({"multipleOf": 2}, 3, ": must be a multiple of 2"),
        ({"maxItems": 1}, [1, 2], ": must have at most 1 items"),
        ({"minProperties": 1}, {}, ": must have at least 1 properties"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, ": fits more than one of the allowed shapes"),
        ({"not": {"type": "string"}}, "a", ": has a shape that is not allowed"),
        ({"items": False}, [1], "0: is not allowed"),
        ({"additionalProperties": {"type": "integer"}}, {"a": "1"}, "a: must be of type integer"),
        (ITEMS, {}, "items: is required"),
        (ITEMS, {"items": []}, "items: must have at least 1 items"),
        (ITEMS, {"items": [{"n": 1}, {"n": "x"}]}, "items.1.n: must be of type integer"),
        (ITEMS, {"items": [{"n": 1}, {"n": 1}]}, "items: must not hold the same item twice"),
        (ITEMS, {"items": [{"n": 1}], "more": 1}, "more: is not known here"),
        (
            {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]},
            {"n": "x"},
            "n: must be of type integer",
        ),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(schema: dict[str, object], value: object, expected: str) -> None:
    assert problems(schema, value) == [expected]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "text"}, "no type 'text'"),
        ({"properties": {"a": {"type": "int"}}}, "a: there is no type 'int'"),
        ({"properties": []}, "properties must be an object"),
        ({"properties": {"a": "string"}}, "a: a schema must be an object"),
        ({"required": "a"}, "required must be a list"),
        ({"anyOf": {"type": "string"}}, "anyOf must be a list"),
        ({"pattern": "("}, "pattern cannot be read"),
        ({"$ref": "#/$defs/Missing"}, "points to nothing"),
    ],
)
def test_a_wrong_schema_is_refused_when_it_is_made(schema: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace("$", r"\$")):
        JsonSchema(schema)
