"""Dependencies: hidden from the model, and never written down."""

import copy
import json
import pickle
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Annotated, Optional

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from agent.context import ActionContext, ToolContext, context_parameter, hidden_parameters
from agent.errors import ToolDefinitionError

SECRET = "sk-TEST1234567890abcdef"


class Database:
    """Some client that pydantic knows nothing of."""


class Shop(ActionContext):
    database: Database
    api_key: str


class Order(BaseModel):
    shop: Shop


def shop() -> Shop:
    return Shop(database=Database(), api_key=SECRET)


def call() -> ToolContext:
    return ToolContext(run_id="r1", step=2, call_key="2.0", idempotency_key="r1:2.0")


def test_dependencies_may_be_of_any_type() -> None:
    assert isinstance(shop().database, Database)


def test_their_text_shows_no_values() -> None:
    """case-128"""
    assert list(shop().__rich_repr__()) == []
    for text in (repr(shop()), str(shop()), f"{[shop()]} {Order(shop=shop())}"):
        assert SECRET not in text
        assert "Shop()" in text


def test_an_error_at_their_construction_shows_no_values() -> None:
    """case-127"""
    with pytest.raises(ValidationError) as raised:
        Shop(database=SECRET, api_key=[SECRET])  # pyright: ignore[reportArgumentType]

    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_they_refuse_to_be_serialised() -> None:
    for serialise in (shop().model_dump, shop().model_dump_json, Order(shop=shop()).model_dump_json):
        with pytest.raises((PydanticSerializationError, TypeError), match="never serialised") as raised:
            serialise()
        assert SECRET not in str(raised.value)
    with pytest.raises(TypeError, match="never serialised"):
        pickle.dumps(shop())
    with pytest.raises(TypeError):
        json.dumps(shop())


def test_they_can_be_copied() -> None:
    assert copy.copy(shop()).api_key == SECRET
    assert shop().model_copy(update={"api_key": "other"}).api_key == "other"


def test_the_circumstances_of_a_call_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        call().step = 3  # pyright: ignore[reportAttributeAccessIssue]


def by_annotation(order: str, shop: Shop, here: ToolContext) -> None: ...
def by_text_annotation(order: str, shop: "Shop") -> None: ...
def by_optional(order: str, shop: Optional[Shop] = None) -> None: ...  # noqa: UP045
def by_union(order: str, shop: Shop | None = None) -> None: ...
def by_annotated(order: str, shop: Annotated[Shop, "hidden"]) -> None: ...
def by_name(order: str, action_context) -> None: ...  # pyright: ignore
def by_name_of_any_type(order: str, action_context: dict[str, str]) -> None: ...
def without(order: str) -> None: ...
def unresolvable(order: "Missing", shop: Shop) -> "Missing": ...  # pyright: ignore  # noqa: F821


BY_ANNOTATION: list[Callable[..., object]] = [
    by_annotation,
    by_text_annotation,
    by_optional,
    by_union,
    by_annotated,
    unresolvable,
]
BY_NAME: list[Callable[..., object]] = [by_name, by_name_of_any_type]


@pytest.mark.parametrize("function", BY_ANNOTATION)
def test_a_parameter_is_hidden_by_its_annotation(function: Callable[..., object]) -> None:
    assert context_parameter(function) == ("shop", Shop)


@pytest.mark.parametrize("function", BY_NAME)
def test_a_parameter_is_hidden_by_its_name(function: Callable[..., object]) -> None:
    assert context_parameter(function) == ("action_context", ActionContext)


def test_a_function_may_ask_for_nothing() -> None:
    assert context_parameter(without) is None
    assert hidden_parameters(without).names == frozenset()


def test_both_kinds_of_hidden_parameters_are_found() -> None:
    assert hidden_parameters(by_annotation).names == {"shop", "here"}


def test_what_python_cannot_inspect_asks_for_nothing() -> None:
    assert context_parameter(dict.fromkeys) is None


def two_contexts(shop: Shop, action_context: ActionContext) -> None: ...
def two_calls(one: ToolContext, other: ToolContext) -> None: ...


@pytest.mark.parametrize("function", [two_contexts, two_calls])
def test_two_parameters_for_one_thing_are_refused(function: Callable[..., object]) -> None:
    with pytest.raises(ToolDefinitionError, match=r"tool 'two_\w+': parameters '\w+' and '\w+' both ask for"):
        context_parameter(function)
