"""Tools that people really wrote, and what their frameworks made of them."""

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Generator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, Optional, cast
from unittest import mock

import pytest
from pydantic import BaseModel

from agent.context import ToolContext
from agent.environment import Environment
from agent.errors import AgentDefinitionError, InvalidArguments, ToolDefinitionError, UnrenderableResult
from agent.registry import ActionRegistry
from agent.rendering import render_result
from agent.schema import portable
from agent.tools import Tool, build_tool, tool, tool_of

CALL = ToolContext(run_id="r1", step=1, call_key="1.0", idempotency_key="r1:1.0")


def called(function: Callable[..., object], arguments: Mapping[str, object] | str) -> str:
    """What the model reads when it has called the tool."""
    made = tool_of(function)
    values = made.validate_arguments(arguments)
    return render_result(asyncio.run(Environment().execute_action(made, values, None, CALL)))


def properties(made: Tool) -> dict[str, Any]:
    found: Any = made.parameters["properties"]
    return found


class Node(BaseModel):
    value: str
    children: list["Node"] = []


def test_case_040_a_recursive_model_is_registered_and_validated_in_full_depth() -> None:
    @tool
    def load_tree(root: Node) -> int:
        """Count nodes."""
        return 1 + len(root.children)

    made = tool_of(load_tree)
    deep: dict[str, object] = {"value": "leaf"}
    for _ in range(50):
        deep = {"value": "branch", "children": [deep]}

    assert properties(made) == {"root": {"$ref": "#/$defs/Node"}}
    assert "$ref" not in json.dumps(portable(made.parameters))
    assert called(load_tree, {"root": deep}) == "2"
    with pytest.raises(InvalidArguments, match=r"root\.children\.0\.children\.0\.value: Field required"):
        made.validate_arguments('{"root": {"value": "a", "children": [{"value": "b", "children": [{}]}]}}')


def weather(key: str, city: str) -> str:
    """Current weather."""
    return f"{key} weather {city}"


def forecast(key: str, city: str) -> str:
    """Forecast."""
    return f"{key} forecast {city}"


class Lookup:
    def __call__(self, order_id: str) -> str:
        """Find an order."""
        return order_id


def test_case_044_partials_and_callable_objects_keep_their_names_and_their_secrets() -> None:
    actions = [
        tool(functools.partial(weather, "K")),
        tool(functools.partial(forecast, key="K")),
        tool(Lookup()),
    ]
    registry = ActionRegistry(actions)

    assert {made.name: made.description for made in registry.tools.values()} == {
        "weather": "Current weather.",
        "forecast": "Forecast.",
        "Lookup": "Find an order.",
    }
    assert [list(properties(made)) for made in registry.tools.values()] == [["city"], ["city"], ["order_id"]]
    assert called(actions[0], {"city": "Rome"}) == "K weather Rome"
    assert called(actions[1], {"city": "Rome"}) == "K forecast Rome"
    with pytest.raises(InvalidArguments, match="key: there is no such parameter"):
        called(actions[1], {"city": "Rome", "key": "mine"})
    with pytest.raises(AgentDefinitionError, match="two tools named 'weather'"):
        registry.register(functools.partial(weather, "L"))


def retrying(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def wrapper(*positional: Any, **named: Any) -> object:
        return function(*positional, **named)

    return wrapper


class Oracle:
    def __call__(self, key: str, question: str) -> str:
        """Knows."""
        return f"{key} {question}"


def greet(**names: str) -> str:
    """Greets."""
    return " ".join(f"{role}={name}" for role, name in sorted(names.items()))


@pytest.mark.parametrize(
    ("function", "name", "description"),
    [
        (retrying(functools.partial(weather, key="K")), "weather", "Current weather."),
        (retrying(retrying(functools.partial(weather, key="K"))), "weather", "Current weather."),
        (retrying(functools.partial(retrying(weather), key="K")), "weather", "Current weather."),
        (functools.partial(retrying(functools.partial(weather, key="K"))), "weather", "Current weather."),
        (functools.lru_cache(functools.partial(weather, key="K")), "weather", "Current weather."),
        (retrying(functools.partial(Oracle(), key="K")), "Oracle", "Knows."),
        (retrying(functools.partial(greet, key="K")), "greet", "Greets."),
    ],
)
def test_case_044_what_a_partial_filled_in_stays_hidden_under_decorators(
    function: Callable[..., object], name: str, description: str
) -> None:
    made = tool_of(function)

    assert (made.name, made.description) == (name, description)
    assert "key" not in json.dumps(made.parameters)
    with pytest.raises(InvalidArguments, match="key: there is no such parameter"):
        made.validate_arguments({"city": "Rome", "question": "?", "key": "mine"})


@functools.wraps(functools.partial(weather, key="K"))
def weather_of_today(*positional: Any, **named: Any) -> object:
    return "sun"


def renaming(function: Callable[..., object]) -> Callable[..., object]:
    wrapper = retrying(function)
    wrapper.__name__ = "renamed"
    return wrapper


def test_case_044_a_name_that_was_meant_stays_where_what_is_wrapped_has_none() -> None:
    inner = functools.partial(weather, key="K")

    @functools.wraps(inner)
    def weather_of_paris(city: str) -> object:
        return inner(city)

    @functools.wraps(functools.partial(weather, key="K"))
    def weather_of_rome(**named: Any) -> object:
        return inner(**named)

    assert tool_of(weather_of_today).name == "weather_of_today"
    assert tool_of(weather_of_paris).name == "weather_of_paris"
    assert tool_of(weather_of_rome).name == "weather_of_rome"
    assert tool_of(renaming(inner)).name == "renamed"
    assert tool_of(retrying(renaming(inner))).name == "renamed"
    assert tool_of(functools.partial(retrying(weather_of_today))).name == "weather_of_today"


def test_case_044_a_decorator_hands_on_the_name_also_of_a_callable_object() -> None:
    assert tool_of(retrying(retrying(Oracle()))).name == "Oracle"


def test_an_object_that_has_any_attribute_is_refused_and_not_unwrapped_for_ever() -> None:
    with pytest.raises(ToolDefinitionError, match="its signature cannot be read"):
        build_tool(cast("Callable[..., object]", mock.call))


@tool
def find(
    q: str,
    limit: int = 10,
    lang: str = None,  # pyright: ignore  # noqa: RUF013
    tags: Optional[list[str]] = None,  # noqa: UP045
) -> str:
    """Find."""
    return f"{q} {limit} {lang} {tags}"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"q": "a", "limit": None, "lang": None, "tags": None}, "a 10 None None"),
        ({"q": "a"}, "a 10 None None"),
        ({"q": "a", "limit": "5"}, "a 5 None None"),
        ({"q": "a", "limit": "null", "tags": "null"}, "a 10 None None"),
        ({"q": "null", "lang": "null"}, "null 10 None None"),
    ],
)
def test_case_045_null_for_an_optional_parameter_means_its_default(arguments: dict[str, object], expected: str) -> None:
    assert called(find, arguments) == expected


def test_case_045_null_for_a_required_parameter_is_a_readable_error() -> None:
    assert properties(tool_of(find))["lang"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    with pytest.raises(InvalidArguments, match="q: Input should be a valid string"):
        called(find, {"q": None})


@tool
def crop(
    tags: list,  # pyright: ignore
    box: tuple[int, int, int, int],
    retry: Literal[1, 2, 3] = 1,
    mode: Literal["a", "b"] | None = None,
    pair: tuple[str, ...] = (),
) -> str:
    """Crop."""
    return f"{box!r} {retry!r}"


def test_case_046_arrays_have_items_and_numbers_come_as_text() -> None:
    cropping = cast("Callable[..., object]", crop)
    parameters = properties(tool_of(cropping))
    portable_parameters: Any = portable(tool_of(cropping).parameters)["properties"]

    assert all(parameters[name]["items"] for name in ("tags", "box", "pair"))
    assert parameters["box"] == {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
    assert portable_parameters["retry"] == {
        "type": "string",
        "enum": ["1", "2", "3"],
        "default": "1",
    }
    assert called(cropping, {"tags": ["x"], "box": [1, 2, 3, 4], "retry": "2", "mode": "b"}) == "(1, 2, 3, 4) 2"


class Item(BaseModel):
    sku: str
    n: int = 1


@tool
def order(items: list[Item], by: dict[str, Item], main: Item | None = None) -> int:
    """Order."""
    return sum(item.n for item in items) + by["k"].n


def test_case_047_models_arrive_as_models_at_every_depth() -> None:
    arguments = {"items": [{"sku": "a"}, {"sku": "b", "n": "2"}], "by": {"k": {"sku": "c"}}, "main": None}

    assert called(order, arguments) == "4"
    with pytest.raises(InvalidArguments, match=r"^items\.1\.n: Input should be a valid integer"):
        called(order, {"items": [{"sku": "a"}, {"sku": "b", "n": "many"}], "by": {"k": {"sku": "c"}}})


@tool
def now() -> dict[str, object]:
    """Now."""
    return {"t": datetime(2026, 1, 1, tzinfo=UTC), "d": Decimal("1.10"), "s": {1}, "b": b"\xff\x00"}


@tool
def rows() -> Generator[int]:
    """Rows."""
    yield 1
    yield 2


class Later:
    async def __call__(self, q: str) -> str:
        return q


def later(q: str) -> Awaitable[str]:
    return Later()(q)


def test_case_048_every_result_becomes_text() -> None:
    wrapped = tool(cast("Callable[..., object]", lambda q: later(q)))  # pyright: ignore  # noqa: PLW0108

    assert called(now, {}) == '{"t": "2026-01-01T00:00:00Z", "d": "1.10", "s": [1], "b": "_wA="}'
    assert called(rows, {}) == "[1, 2]"
    assert called(wrapped, {"q": "a"}) == "a"
    assert called(Later(), {"q": "a"}) == "a"


def test_case_048_a_result_without_a_text_is_told_after_one_execution() -> None:
    executed: list[str] = []

    @tool
    def connect() -> object:
        """Connect."""
        executed.append("connect")
        return object()

    with pytest.raises(UnrenderableResult, match="The tool was executed, but its result"):
        called(connect, {})
    assert executed == ["connect"]


def test_case_049_the_docstring_describes_the_tool_and_its_parameters() -> None:
    @tool
    def w(city: str, units: str = "C") -> str:
        """Get the weather.
        Args:

            city (str): The city: name or id.
                Second line.
            units - temperature units
        Returns:
            str: text
        """
        return city

    made = tool_of(w)

    assert made.description == "Get the weather."
    assert properties(made)["city"]["description"] == "The city: name or id.\nSecond line."
    assert "description" not in properties(made)["units"]
