"""What tools return, as text; and text that is too long."""

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.context import ActionContext
from agent.errors import ToolError, UnrenderableResult
from agent.output import any_json
from agent.rendering import cut, render_result


class Item(BaseModel):
    sku: str
    at: datetime


@dataclass
class Point:
    x: int
    label: str


class Color(Enum):
    RED = "red"


class Word(StrEnum):
    YES = "yes"


class Plain:
    pass


class Spoken:
    def __str__(self) -> str:
        return "spoken"


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no words")


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("420", "420"),
        ("", ""),
        (3.0, "3.0"),
        (420, "420"),
        (True, "True"),
        (None, "None"),
        ({"a": "é"}, '{"a": "é"}'),
        ([1, "a", None], '[1, "a", null]'),
        ((1, 2), "[1, 2]"),
        ({1}, "[1]"),
        (Item(sku="é", at=NOON), '{"sku":"é","at":"2026-01-01T12:00:00Z"}'),
        ([Item(sku="a", at=NOON)], '[{"sku": "a", "at": "2026-01-01T12:00:00Z"}]'),
        (Point(1, "a"), '{"x": 1, "label": "a"}'),
        (NOON, "2026-01-01T12:00:00Z"),
        (date(2026, 1, 1), "2026-01-01"),
        (timedelta(minutes=1), "PT1M"),
        (Decimal("1.10"), "1.10"),
        (b"\xff\x00", "_wA="),
        (memoryview(b"\xff"), "_w=="),
        ([memoryview(b"\xff")], '["_w=="]'),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("a/b"), "a/b"),
        (Color.RED, "red"),
        (Word.YES, "yes"),
        (ValueError("no such city"), "ValueError: no such city"),
        ({"error": KeyError("k")}, '{"error": "KeyError: \'k\'"}'),
        (OrderedDict([("a", 1)]), '{"a": 1}'),
        (MappingProxyType({"a": 1}), '{"a": 1}'),
        ({1: 2, Color.RED: 3}, '{"1": 2, "red": 3}'),
        (Spoken(), "spoken"),
        ([Spoken()], '["spoken"]'),
        (range(3), "[0, 1, 2]"),
        ({"a": 1}.keys(), '["a"]'),
    ],
)
def test_each_kind_of_result_has_a_text(value: object, expected: str) -> None:
    assert render_result(value) == expected


def test_the_values_that_json_does_not_know_become_text() -> None:
    """case-048"""
    value = {"t": datetime(2026, 1, 1, tzinfo=UTC), "d": Decimal("1.10"), "s": {1}, "b": b"\xff\x00"}

    assert json.loads(render_result(value)) == {"t": "2026-01-01T00:00:00Z", "d": "1.10", "s": [1], "b": "_wA="}


class Scan(BaseModel, frozen=True):
    """A model of which pydantic makes no JSON: it wants bytes to be UTF-8."""

    data: bytes
    part: "Scan | None" = None


@dataclass
class Page:
    scan: Scan


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Scan(data=b"text"), {"data": "text", "part": None}),
        (Scan(data=b"\xff\x00"), {"data": "_wA=", "part": None}),
        (Scan(data=b"\xff", part=Scan(data=b"\xfe")), {"data": "_w==", "part": {"data": "_g==", "part": None}}),
        ({"a\ud800": Scan(data=b"\xff")}, {"a\ufffd": {"data": "_w==", "part": None}}),
        ([Page(Scan(data=b"\xff"))], [{"scan": {"data": "_w==", "part": None}}]),
        ({Scan(data=b"\xff")}, [{"data": "_w==", "part": None}]),
    ],
)
def test_bytes_are_base64_wherever_they_stand(value: object, expected: object) -> None:
    assert json.loads(render_result(value)) == expected
    assert any_json(value) == expected


def circular() -> list[object]:
    items: list[object] = []
    items.append(items)
    return items


class Shop(ActionContext):
    api_key: str


async def coroutine() -> None: ...


@pytest.mark.parametrize("value", [Plain(), [Plain()], Broken(), circular(), len, {"f": len}, Shop(api_key="sk-1")])
def test_what_has_no_text_is_an_error_that_says_that_the_tool_was_executed(value: object) -> None:
    with pytest.raises(UnrenderableResult, match="was executed, but its result") as raised:
        render_result(value)

    assert isinstance(raised.value, ToolError)
    assert "sk-1" not in str(raised.value)


def test_a_coroutine_inside_a_result_has_no_text() -> None:
    hidden = coroutine()

    with pytest.raises(UnrenderableResult):
        render_result({"later": hidden})
    hidden.close()


def test_lone_surrogates_are_replaced_and_split_pairs_joined() -> None:
    """case-074"""
    assert render_result("a\udc9db \ud83d c\U0001f680") == "a\ufffdb \ufffd c\U0001f680"
    assert render_result(["\ud83d", "\ud83d\ude80"]) == '["\ufffd", "\U0001f680"]'
    assert render_result([{"a\udc9d": {"b": ("\ud83d",)}}]) == '[{"a\ufffd": {"b": ["\ufffd"]}}]'
    assert render_result(Place(name="a\udc9d", at={"\ud83d": 1})).startswith('{"name":"a\ufffd","at":{"\ufffd')


class Place(BaseModel):
    """Somewhere."""

    name: str
    at: dict[str, int]


def numbers() -> Iterator[int]:
    yield 1
    yield 2


def test_a_generator_is_a_list() -> None:
    assert render_result(numbers()) == "[1, 2]"


def test_short_text_is_not_cut() -> None:
    assert cut("abc", 3) == "abc"


def test_cut_text_says_how_much_was_left_out() -> None:
    assert cut("a" * 5_000, 100) == "a" * 74 + "… [4,926 bytes left out]"


@pytest.mark.parametrize(
    "together",
    [
        "\U0001f680",
        "é",
        "e\u0301",
        "\U0001f44d\U0001f3fd",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f1e9\U0001f1ea",
        "\u2764\ufe0f",
        "\r\n",
    ],
)
def test_what_is_shown_as_one_is_never_cut_in_half(together: str) -> None:
    text = together * 40
    for limit in range(30, len(text.encode())):
        kept, note = cut(text, limit).split("…")

        assert kept == together * (len(kept) // len(together))
        assert note == f" [{len(text.encode()) - len(kept.encode()):,} bytes left out]"


@given(st.text(), st.integers(min_value=40, max_value=200))
def test_a_cut_text_fits_its_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit).encode()) <= limit


def test_a_limit_without_room_for_the_note_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        cut("a" * 100, 10)
