"""What a tool can be made of: the shapes of callables, and what is refused."""

import functools
import math
from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import BaseModel

from agent.context import ActionContext
from agent.errors import ToolDefinitionError
from agent.tools import build_tool, tool, tool_of

# Shapes of callables.
from tests.support.tool_parts import Shop, add, properties


class Counter:
    def __init__(self) -> None:
        self.count = 0

    @tool(idempotent=True)
    def increase(self, by: int) -> int:
        """Increases the count."""
        self.count += by
        return self.count

    @classmethod
    @tool(timeout=3)
    def start(cls, count: int) -> int:
        """Starts to count."""
        return count

    @staticmethod
    @tool(timeout=3)
    def double(count: int) -> int:
        """Doubles."""
        return 2 * count


def test_a_method_is_a_tool_of_its_object() -> None:
    counter = Counter()
    made = tool_of(counter.increase)

    assert made.idempotent
    assert properties(made) == {"by": {"type": "integer"}}
    assert made.function(**made.validate_arguments({"by": 2})) == 2
    assert counter.count == 2


@pytest.mark.parametrize(("method", "result"), [(Counter.start, 2), (Counter.double, 4), (Counter().double, 4)])
def test_methods_of_a_class_are_tools(method: Callable[..., object], result: int) -> None:
    made = tool_of(method)

    assert made.timeout == 3
    assert properties(made) == {"count": {"type": "integer"}}
    assert made.function(**made.validate_arguments({"count": 2})) == result


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_methods_of_a_class_are_declared_below(kind: Callable[..., Any]) -> None:
    with pytest.raises(ToolDefinitionError, match=rf"tool 'add': put @tool below @{kind.__name__}"):
        tool(kind(add))


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"tool 'increase': it is a method; pass it from an object"):
        tool_of(Counter.increase)


def shouting(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def shouted(*positional: Any, **named: Any) -> str:
        return function(*positional, **named).upper()

    return shouted


def test_decorators_below_and_above_are_not_passed_by() -> None:
    @tool
    @shouting
    def below(word: str) -> str:
        """Says a word."""
        return word

    @shouting
    @tool(timeout=2)
    def above(word: str) -> str:
        """Says a word."""
        return word

    for function, timeout in ((below, None), (above, 2)):
        made = tool_of(function)
        assert properties(made) == {"word": {"type": "string"}}
        assert made.description == "Says a word."
        assert made.timeout == timeout
        assert made.function(word="a") == "A"


def test_a_class_is_a_tool_that_makes_an_instance() -> None:
    class Note(BaseModel):
        """A note."""

        text: str

    made = build_tool(Note)

    assert made.name == "Note"
    assert properties(made) == {"text": {"type": "string"}}
    assert made.function(**made.validate_arguments({"text": "a"})) == Note(text="a")


# What cannot be a tool.


class Client:
    """Something that has no place in JSON."""


def takes_positional(*numbers: int) -> None: ...
def takes_positional_only(number: int, /) -> None: ...
def takes_client(name: str, client: Client) -> None: ...
def takes_callable(name: str, callback: Callable[[], None]) -> None: ...
def takes_contexts(name: str, shops: list[Shop]) -> None: ...
def takes_either(name: str, shop: Shop | ActionContext) -> None: ...
def takes_optional_callable(name: str, callback: Callable[[], None] | None = None) -> None: ...
def takes_unknown(name: str, later: "list[Missing]") -> None: ...  # pyright: ignore  # noqa: F821
def takes_broken(name: str, later: "list[") -> None: ...  # pyright: ignore  # noqa: F722


UNUSABLE: list[tuple[Callable[..., object], str]] = [
    (takes_positional, "numbers"),
    (takes_positional_only, "number"),
    (takes_client, "client"),
    (takes_callable, "callback"),
    (takes_contexts, "shops"),
    (takes_either, "shop"),
    (takes_optional_callable, "callback"),
    (takes_unknown, "later"),
    (takes_broken, "later"),
    (math.sqrt, "x"),
]


@pytest.mark.parametrize(("function", "parameter"), UNUSABLE)
def test_an_unusable_signature_is_refused_naming_tool_and_parameter(
    function: Callable[..., object], parameter: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=rf"tool '{function.__name__}'.*'{parameter}'"):
        build_tool(function)


def test_a_result_type_that_cannot_be_resolved_does_not_matter() -> None:
    def find(name: str) -> "Missing": ...  # pyright: ignore  # noqa: F821

    assert properties(build_tool(cast("Callable[..., object]", find))) == {"name": {"type": "string"}}


def test_what_has_no_signature_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="tool 'iter': its signature cannot be read"):
        build_tool(iter)


def test_nothing_can_be_noted_on_a_bound_method() -> None:
    with pytest.raises(ToolDefinitionError, match="use build_tool"):
        tool(Counter().increase)
