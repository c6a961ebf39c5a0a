"""What a model wrote, as the values that a tool takes."""

import copy
import enum
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from agent.context import ActionContext, ToolContext
from agent.errors import InvalidArguments, ToolDefinitionError
from agent.tools import Tool, build_model_tool, build_tool


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Item(BaseModel):
    sku: str
    n: int = 1


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    at: datetime
    box: tuple[int, int]


@dataclass
class Place:
    name: str
    item: Item | None = None


class Size(NamedTuple):
    width: int
    height: int = 1


class Options(TypedDict, total=False):
    speed: int


def everything(
    text: str,
    count: int,
    ratio: float,
    flag: bool,
    mode: Mode,
    choice: Literal[1, "a"],
    item: Item,
    strict: Strict,
    place: Place,
    size: Size,
    options: Options,
    names: set[str],
    box: tuple[int, str],
    table: dict[str, list[Item]],
    at: datetime,
    day: date,
    price: Decimal,
    key: UUID,
    either: int | str,
    anything: Any,
) -> None: ...


GIVEN = {
    "text": 420,
    "count": "2",
    "ratio": "0.5",
    "flag": "true",
    "mode": 2,
    "choice": "1",
    "item": {"sku": "a", "n": "3"},
    "strict": {"at": "2026-01-01T00:00:00Z", "box": [1, 2]},
    "place": {"name": "b", "item": {"sku": "c"}},
    "size": [3],
    "options": {"speed": "4"},
    "names": ["x", "x"],
    "box": [1, "y"],
    "table": {"k": [{"sku": "d"}]},
    "at": "2026-01-01T00:00:00Z",
    "day": "2026-01-02",
    "price": "1.10",
    "key": "00000000-0000-0000-0000-000000000001",
    "either": "7",
    "anything": {"a": [1]},
}

TAKEN = {
    "text": "420",
    "count": 2,
    "ratio": 0.5,
    "flag": True,
    "mode": Mode.SLOW,
    "choice": 1,
    "item": Item(sku="a", n=3),
    "strict": Strict(at=datetime(2026, 1, 1, tzinfo=UTC), box=(1, 2)),
    "place": Place("b", Item(sku="c")),
    "size": Size(3),
    "options": {"speed": 4},
    "names": {"x"},
    "box": (1, "y"),
    "table": {"k": [Item(sku="d")]},
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "price": Decimal("1.10"),
    "key": UUID(int=1),
    "either": "7",
    "anything": {"a": [1]},
}


def test_values_arrive_as_the_types_that_the_function_declares() -> None:
    taken = build_tool(everything).validate_arguments(json.dumps(GIVEN))

    assert taken == TAKEN
    assert {name: type(value) for name, value in taken.items()} == {name: type(value) for name, value in TAKEN.items()}


def search(query: str, limit: Annotated[int, Field(ge=1, le=50)] = 10, tags: list[str] | None = None) -> None: ...


@pytest.mark.parametrize("nothing", [None, "", "  ", "{}", "null"])
def test_nothing_at_all_is_no_arguments(nothing: str | None) -> None:
    """case-001"""

    def now() -> None: ...

    assert build_tool(now).validate_arguments(nothing) == {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"query": "a"}, {"query": "a"}),
        ({"query": "a", "limit": None, "tags": None}, {"query": "a"}),
        ({"query": "a", "limit": "5"}, {"query": "a", "limit": 5}),
        ({"query": "a", "limit": "null"}, {"query": "a"}),
        ({"query": "null"}, {"query": "null"}),
        ({"query": "a", "limit": '"5"'}, {"query": "a", "limit": 5}),
        ({"query": "a", "tags": '["x", "y"]'}, {"query": "a", "tags": ["x", "y"]}),
        ({"query": "a", "tags": []}, {"query": "a", "tags": []}),
    ],
)
def test_what_is_left_out_is_left_to_the_function(given: dict[str, object], expected: dict[str, object]) -> None:
    """case-045"""
    assert build_tool(search).validate_arguments(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("[1]", "The arguments must be a JSON object, not [1]"),
        ('"a"', 'The arguments must be a JSON object, not "a"'),
        (
            "{",
            "The arguments are not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("{}", "query: Field required"),
        ({"query": None}, "query: Input should be a valid string"),
        ({"query": "a", "limit": 0}, "limit: Input should be greater than or equal to 1"),
        (
            {"query": "a", "limit": "many"},
            "limit: Input should be a valid integer, unable to parse string as an integer",
        ),
        ({"query": "a", "tags": ["x", {"y": 1}]}, "tags.1: Input should be a valid string"),
        ({"query": "a", "page": 1}, "page: there is no such parameter (there is: limit, query, tags)"),
        (
            {"page": 1, "limit": 0},
            (
                "page: there is no such parameter (there is: limit, query, tags)\n"
                "query: Field required\n"
                "limit: Input should be greater than or equal to 1"
            ),
        ),
    ],
)
def test_what_does_not_fit_is_said_in_words_for_the_model(given: str | dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        build_tool(search).validate_arguments(given)

    assert str(raised.value) == message


def test_the_words_are_bounded() -> None:
    def take(items: list[int]) -> None: ...

    with pytest.raises(InvalidArguments) as raised:
        build_tool(take).validate_arguments({"items": ["x" * 10_000] * 1_000})

    lines = str(raised.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 990 more"
    assert len(str(raised.value)) < 4_000


def test_deep_nesting_is_an_error_for_the_model() -> None:
    with pytest.raises(InvalidArguments):
        build_tool(search).validate_arguments('{"query": ' + "[" * 100_000)


def test_numbers_that_json_does_not_have_are_refused() -> None:
    def take(ratio: float) -> None: ...

    with pytest.raises(InvalidArguments, match="ratio: Input should be a finite number"):
        build_tool(take).validate_arguments('{"ratio": NaN}')


def test_lone_surrogates_are_replaced() -> None:
    """case-074"""
    assert build_tool(search).validate_arguments('{"query": "x \\ud83d y"}') == {"query": "x \ufffd y"}


def test_the_text_null_is_null_where_a_text_does_not_fit() -> None:
    def take(count: int | None, items: list[int | None]) -> None: ...

    given = {"count": "null", "items": '[1, "null"]'}

    assert build_tool(take).validate_arguments(given) == {"count": None, "items": [1, None]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["null", "[]", "{}", '"1"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*GIVEN, "more"]), json_values))
def test_whatever_a_model_writes_is_values_or_an_error_for_it(given: dict[str, object]) -> None:
    made = build_tool(everything)
    try:
        assert set(made.validate_arguments({**GIVEN, **given})) == set(GIVEN)
    except InvalidArguments as error:
        assert str(error)
        assert len(str(error)) < 4_000


def test_null_is_left_out_at_every_depth() -> None:
    def take(items: list[Item]) -> None: ...

    assert build_tool(take).validate_arguments({"items": [{"sku": "a", "n": None}]}) == {"items": [Item(sku="a")]}


def test_the_given_arguments_are_never_changed() -> None:
    given = {"query": "a", "limit": "null", "tags": '["x"]'}

    build_tool(search).validate_arguments(given)

    assert given == {"query": "a", "limit": "null", "tags": '["x"]'}


class Shop(ActionContext):
    api_key: str = "sk-1"


def refund(order: str, shop: Shop, call: ToolContext) -> None: ...


def test_what_the_model_writes_under_a_hidden_name_is_dropped() -> None:
    given = {"order": "7", "shop": {"api_key": "mine"}, "call": {}}

    assert build_tool(refund).validate_arguments(given) == {"order": "7"}


def test_an_error_inside_a_validator_is_an_error_for_the_model() -> None:
    class Fragile(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def look_up(cls, name: str) -> str:
            return {"a": "b"}[name]

    def take(fragile: Fragile) -> None: ...

    with pytest.raises(InvalidArguments, match="The arguments could not be checked: KeyError: 'x'"):
        build_tool(take).validate_arguments({"fragile": {"name": "x"}})


def test_keywords_of_any_name_are_taken_where_the_function_takes_them() -> None:
    def note(title: str, **more: object) -> None: ...

    made = build_tool(note)

    assert made.parameters["additionalProperties"] is True
    assert made.validate_arguments({"title": "a", "n": 1, "m": None}) == {"title": "a", "n": 1}


def test_defaults_said_by_field_are_filled_in() -> None:
    def take(
        limit: int = Field(default=5, ge=1, description="How many."), since: int = Field(alias="from")
    ) -> None: ...

    made = build_tool(take)

    assert made.parameters["properties"] == {
        "limit": {"type": "integer", "default": 5, "minimum": 1, "description": "How many."},
        "from": {"type": "integer"},
    }
    assert made.validate_arguments({"from": 1}) == {"limit": 5, "since": 1}
    assert made.validate_arguments({"from": 1, "limit": None}) == {"limit": 5, "since": 1}


# By hand: checked against the schema, and passed on as they are.


def hand_made(**schema: object) -> Tool:
    properties = {"answer": {"type": "string"}, "times": {"type": "integer"}}
    parameters: dict[str, object] = {"type": "object", "properties": properties, "required": ["answer"], **schema}
    return Tool(name="finish", description="", parameters=parameters, function=lambda **arguments: arguments)  # pyright: ignore


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"answer": "210"}, {"answer": "210"}),
        ({"answer": "210", "times": None}, {"answer": "210"}),
        ('{"answer": "210", "times": 2}', {"answer": "210", "times": 2}),
    ],
)
def test_a_hand_made_tool_takes_arguments_as_they_are(given: object, expected: dict[str, object]) -> None:
    assert hand_made().validate_arguments(given) == expected  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "answer: is required"),
        ({"answer": 210}, "answer: must be of type string"),
        ({"answer": "210", "times": "two"}, "times: must be of type integer"),
        ({"answer": "210", "times": "[2]"}, "times: must be of type integer"),
        ({"answer": None}, "answer: must be of type string"),
        ({"answer": "210", "more": 1}, "more: there is no such parameter (there is: answer, times)"),
    ],
)
def test_a_hand_made_tool_coerces_nothing(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        hand_made().validate_arguments(given)

    assert str(raised.value) == message


def test_a_hand_made_schema_may_take_null() -> None:
    made = hand_made(properties={"answer": {"type": "string"}, "note": {"type": ["string", "null"]}})

    assert made.validate_arguments({"answer": "a", "note": None}) == {"answer": "a", "note": None}


def test_a_hand_made_schema_may_allow_more() -> None:
    made = hand_made(additionalProperties={"type": "integer"})

    assert made.validate_arguments({"answer": "a", "more": 1}) == {"answer": "a", "more": 1}
    with pytest.raises(InvalidArguments, match="more: must be of type integer"):
        made.validate_arguments({"answer": "a", "more": "one"})


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_text_is_never_read_as_a_number_that_json_does_not_have(text: str) -> None:
    number = {"type": "number", "minimum": 0, "maximum": 10}
    made = hand_made(properties={"answer": {"type": "string"}, "n": number})

    for written in (text, f'"{text}"'):
        with pytest.raises(InvalidArguments, match="n: must be of type number"):
            made.validate_arguments({"answer": "a", "n": written})
    assert made.validate_arguments({"answer": text, "n": "1e1"}) == {"answer": text, "n": 10.0}


MIXED: dict[str, object] = {
    "n": {"type": "integer", "enum": [1, 2, 3]},
    "m": {"type": ["string", "null"], "enum": ["a", None]},
    "many": {"type": "array", "items": {"type": "object", "properties": {"k": {"const": 5}, "t": {"type": "string"}}}},
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": "2"}, {"n": 2}),
        ({"m": "null"}, {"m": None}),
        ({"m": "a"}, {"m": "a"}),
        ({"many": '[{"k": "5"}]'}, {"many": [{"k": 5}]}),
        ({"many": ['{"k": 5, "t": "5"}', {"t": None}]}, {"many": [{"k": 5, "t": "5"}, {}]}),
    ],
)
def test_what_does_not_fit_a_hand_made_schema_is_read_once_more(
    given: dict[str, object], expected: dict[str, object]
) -> None:
    before = copy.deepcopy(given)

    assert hand_made(properties=MIXED, required=[]).validate_arguments(given) == expected
    assert given == before


# A model: its fields are the arguments.


def end(item: Item) -> Item:
    return item


def test_a_model_tool_takes_the_instance() -> None:
    made = build_model_tool(Item, end, "terminate", "Ends.", terminal=True)

    assert made.parameters["properties"] == {"sku": {"type": "string"}, "n": {"type": "integer", "default": 1}}
    assert made.terminal
    assert made.validate_arguments('{"sku": "a", "n": "2"}') == {"item": Item(sku="a", n=2)}
    assert made.validate_arguments('{"sku": "a", "n": null}') == {"item": Item(sku="a")}
    with pytest.raises(InvalidArguments, match="sku: Field required"):
        made.validate_arguments("{}")


def test_a_model_tool_needs_named_arguments_and_a_function_of_one() -> None:
    with pytest.raises(ToolDefinitionError, match="arguments have names"):
        build_model_tool(RootModel[list[int]], end, "terminate", "")
    with pytest.raises(ToolDefinitionError, match="only argument"):
        build_model_tool(Item, search, "terminate", "")
