"""JSON Schemas as forms that small models understand."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from agent.dialects.forms import form_of
from agent.schema import schema_of


class Unit(StrEnum):
    """What is counted."""

    PIECE = "piece"
    BOX = "box"


class Item(BaseModel):
    product: Annotated[str, Field(max_length=30)]
    unit: Unit


class Order(BaseModel):
    """An order."""

    items: Annotated[list[Item], Field(min_length=1, max_length=3)]
    note: str | None = None
    rating: int = Field(3, ge=1, le=5, description="How urgent\n it is.")


class Tree(BaseModel):
    branches: list["Tree"]


def form(kind: Any) -> str:
    return form_of(schema_of(TypeAdapter(kind)))


def test_a_form_looks_like_the_object() -> None:
    assert (
        form(Order)
        == """{
  "items": [{
    "product": text of at most 30 characters,
    "unit": "piece" or "box"  // What is counted.
  }, …] of 1 to 3 items,
  "note": text or null,  // May be left out.
  "rating": whole number (1 to 5)  // How urgent it is. May be left out (3 if left out).
}"""
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str, "text"),
        (bool, "true or false"),
        (None, "null"),
        (Any, "anything"),
        (date, "text (date)"),
        (Literal["a", 2], '"a" or 2'),
        (
            Annotated[str, Field(pattern="^[A-Z]+$", min_length=2)],
            "text that matches ^[A-Z]+$ of at least 2 characters",
        ),
        (Annotated[float, Field(gt=0, lt=1)], "number (more than 0) (less than 1)"),
        (Annotated[int, Field(ge=1)], "whole number (at least 1)"),
        (Annotated[int, Field(le=9)], "whole number (at most 9)"),
        (tuple[int, int], "[whole number, …] of 2 items"),
        (set[int], "[whole number, …], all different"),
        (dict[str, list[int]], '{"<name>": [whole number, …], …}'),
        (int | str, "whole number or text"),
    ],
)
def test_values_are_words(kind: Any, words: str) -> None:
    assert form(kind) == words


def test_what_refers_to_itself_is_said_once_below() -> None:
    assert form(Tree).splitlines() == ['{"branches": [Tree, …]}', 'Tree is {"branches": [Tree, …]}']


def test_what_words_cannot_say_stays_a_schema() -> None:
    whole = {"type": "integer", "multipleOf": 5}
    assert form_of({"type": "object", "properties": {"fives": whole}, "required": ["fives"]}) == (
        '{"fives": {"type": "integer", "multipleOf": 5}}'
    )
    assert form_of({"type": ["string", "null"]}) == "text or null"


def test_lines_may_be_indented() -> None:
    assert [line[:2] for line in form_of(schema_of(TypeAdapter(Order)), indent="  ").splitlines()[1:]] == ["  "] * 7
