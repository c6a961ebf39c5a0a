"""Tools of a module whose annotations are texts, and name what only the defining function knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from pydantic import BaseModel

from agent.context import ActionContext
from agent.errors import ToolDefinitionError
from agent.registry import ActionRegistry
from agent.tools import Tool, build_tool, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal


def make_tool(*, register: bool) -> Tool:
    class Payload(BaseModel):
        x: int

    class Shop(ActionContext):
        pass

    async def draw(
        prompt: Annotated[str, "what to draw"],
        shop: Shop,
        size: Optional[int] = None,  # noqa: UP045
        p: list[Payload] | None = None,
    ) -> str:
        """Draw."""
        return f"{prompt} {size} {p} {shop}"

    if register:
        return ActionRegistry([draw]).tools["draw"]
    noted: Any = tool(draw)
    return noted._tool_metadata


@pytest.mark.parametrize("register", [False, True])
def test_names_that_are_local_to_the_defining_function_are_found(register: bool) -> None:
    """case-038"""
    made = make_tool(register=register)

    payload = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert made.parameters == {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "what to draw"},
            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "p": {"anyOf": [{"type": "array", "items": payload}, {"type": "null"}]},
        },
        "required": ["prompt"],
    }
    assert made.context_type is not None
    assert made.context_type.__name__ == "Shop"
    (item,) = made.validate_arguments({"prompt": "a", "p": [{"x": "1"}]})["p"]  # pyright: ignore
    assert type(item).__name__ == "Payload"  # pyright: ignore


def outer() -> Callable[[], Tool]:
    class Payload(BaseModel):
        y: int

    def inner() -> Tool:
        def take(payload: Payload) -> None: ...

        return build_tool(take)

    return inner


def test_names_of_a_function_around_the_defining_one_are_found_while_it_runs() -> None:
    class Payload(BaseModel):
        z: int

    def inner() -> Tool:
        def take(payload: Payload) -> None: ...

        return build_tool(take)

    assert "z" in str(inner().parameters)


def test_a_name_that_is_out_of_reach_is_one_clear_error() -> None:
    with pytest.raises(
        ToolDefinitionError, match="tool 'take', parameter 'payload': its annotation 'Payload' cannot be"
    ):
        outer()()


def pay(amount: Decimal) -> None: ...


def test_a_name_that_is_imported_for_type_checkers_only_is_one_clear_error() -> None:
    """case-038"""
    with pytest.raises(ToolDefinitionError, match=r"tool 'pay', parameter 'amount'.*not under TYPE_CHECKING"):
        ActionRegistry([pay])
