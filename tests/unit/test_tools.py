"""From a function to a tool: names, descriptions, schemas, and what is refused."""

import asyncio
import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Optional, Union, assert_type, cast

import pytest
from pydantic import BaseModel, Field, ValidationError

from agent.context import ActionContext, ToolContext
from agent.errors import ContextTypeError, ToolDefinitionError
from agent.tools import Action, Tool, build_tool, tool
from tests.support.tool_parts import Shop, add, properties


@tool()
def multiply(a: float, b: float = 1.0) -> float:
    """Multiplies two floats."""
    return a * b


def shout(key: str, word: str) -> str:
    """Says a word loudly."""
    return f"{key}{word}"


def metadata(function: Callable[..., object]) -> Tool:
    noted = vars(function)["_tool_metadata"]
    assert isinstance(noted, Tool)
    return noted


def test_a_decorated_function_stays_as_it_is() -> None:
    assert add(200, 10) == 210
    assert multiply(210, 2) == 420


def test_a_decorated_function_keeps_its_type() -> None:
    @tool(timeout=1)
    async def draw(prompt: str) -> bytes:
        """Draws."""
        return prompt.encode()

    async def drawn() -> bytes:
        return assert_type(await draw("a"), bytes)

    assert assert_type(add(1, 2), float) == 3
    assert asyncio.run(drawn()) == b"a"


def test_the_tool_is_noted_on_the_function() -> None:
    number = {"type": "number"}

    assert metadata(add).model_dump(exclude={"function"}) == {
        "name": "add",
        "description": "Adds two floats.",
        "parameters": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
        "tags": None,
        "terminal": False,
    }


def test_a_tool_can_be_printed_as_json() -> None:
    printed = json.loads(json.dumps(metadata(multiply).model_dump(exclude={"function"}), indent=2))

    assert printed == json.loads(metadata(multiply).model_dump_json())
    assert printed["parameters"]["required"] == ["a"]


def test_the_text_of_a_tool_does_not_show_what_its_function_holds() -> None:
    assert "sk-1" not in repr(build_tool(functools.partial(shout, "sk-1")))


def test_the_definition_is_in_the_format_of_openai() -> None:
    assert metadata(add).definition() == {
        "type": "function",
        "function": {"name": "add", "description": "Adds two floats.", "parameters": metadata(add).parameters},
    }


def test_everything_can_be_said_at_the_declaration() -> None:
    @tool(
        name="sum",
        description="Sums.",
        tags=["arithmetic"],
        timeout=1.5,
        idempotent=True,
        on_unknown="ask",
        parallel=False,
        terminal=True,
    )
    def declared(a: int) -> int:
        """Not this."""
        return a

    assert metadata(declared).model_dump() == {
        "name": "sum",
        "description": "Sums.",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "tags": ["arithmetic"],
        "timeout": 1.5,
        "idempotent": True,
        "on_unknown": "ask",
        "parallel": False,
        "terminal": True,
    }


def test_options_can_be_said_with_the_function() -> None:
    assert metadata(tool(functools.partial(add, b=1.0), name="increment", idempotent=True)).name == "increment"


@pytest.mark.parametrize(
    ("annotation", "word"),
    [
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (bool, "boolean"),
        (list, "array"),
        (list[int], "array"),
        (dict, "object"),
        (dict[str, int], "object"),
    ],
)
def test_each_type_has_its_word(annotation: Any, word: str) -> None:
    def take(value: Any) -> None: ...

    take.__annotations__["value"] = annotation

    assert properties(build_tool(take))["value"]["type"] == word


def test_a_parameter_without_a_type_is_a_text_for_the_model_and_anything_for_us() -> None:
    made = build_tool(lambda value: value, name="take")  # pyright: ignore

    assert properties(made) == {"value": {"type": "string"}}
    assert made.validate_arguments({"value": [1]}) == {"value": [1]}


def test_an_optional_parameter_may_be_null() -> None:
    def take(a: Optional[int], b: int | None = None, c: Union[int, None] = 3, d: str = None) -> None: ...  # noqa: UP007, UP045, RUF013  # pyright: ignore

    def nullable(word: str) -> list[dict[str, str]]:
        return [{"type": word}, {"type": "null"}]

    made = build_tool(take)

    assert properties(made) == {
        "a": {"anyOf": nullable("integer")},
        "b": {"anyOf": nullable("integer")},
        "c": {"anyOf": nullable("integer"), "default": 3},
        "d": {"anyOf": nullable("string")},
    }
    assert made.parameters["required"] == ["a"]
    assert made.validate_arguments({"a": None}) == {"a": None}


def test_descriptions_come_from_annotated_from_field_and_from_the_docstring() -> None:
    def take(
        text: Annotated[str, "from the annotation"],
        field: Annotated[int, Field(ge=1, description="from the field")],
        documented: int,
        both: Annotated[int, Field(ge=2)] = 2,
    ) -> None:
        """Takes.

        Args:
            text: hidden by the annotation
            documented: from the docstring
            both: from the docstring too
        """

    assert properties(build_tool(take)) == {
        "text": {"type": "string", "description": "from the annotation"},
        "field": {"type": "integer", "minimum": 1, "description": "from the field"},
        "documented": {"type": "integer", "description": "from the docstring"},
        "both": {"type": "integer", "minimum": 2, "default": 2, "description": "from the docstring too"},
    }


def test_the_description_of_a_parameter_wins_over_that_of_its_type() -> None:
    class Item(BaseModel):
        """An item."""

        sku: str

    def take(first: Item, second: Annotated[Item, "The second."]) -> None: ...

    described = properties(build_tool(take))

    assert described["first"]["description"] == "An item."
    assert described["second"]["description"] == "The second."


def test_names_of_parameters_are_free() -> None:
    def take(schema: str, model_config: int, _private: int, copy: str = "x") -> None: ...

    made = build_tool(take)

    assert list(properties(made)) == ["schema", "model_config", "_private", "copy"]
    assert made.validate_arguments({"schema": "s", "model_config": 1, "_private": 2}) == {
        "schema": "s",
        "model_config": 1,
        "_private": 2,
    }


def test_defaults_that_json_cannot_show_are_not_shown() -> None:
    marker = object()

    def take(value: Any = marker) -> None: ...

    def take_none(value: Any = None, untyped=None) -> None: ...  # pyright: ignore

    assert properties(build_tool(cast("Callable[..., object]", take_none))) == {
        "value": {},
        "untyped": {"type": "string"},
    }
    assert properties(build_tool(take)) == {"value": {}}
    assert build_tool(take).validate_arguments({}) == {}


def test_hidden_parameters_are_not_in_the_schema() -> None:
    @tool
    def save(title: str, action_context: Shop, call: ToolContext) -> None:
        """Saves."""

    assert list(properties(metadata(save))) == ["title"]
    assert metadata(save).parameters["required"] == ["title"]
    assert metadata(save).context_type is Shop
    assert metadata(add).context_type is None


def test_the_injected_value_always_wins() -> None:
    @tool
    def save(title: str, shop: Shop, call: ToolContext) -> None:
        """Saves."""

    shop = Shop()
    call = ToolContext(run_id="r", step=1, call_key="1.0", idempotency_key="r:1.0")

    assert metadata(save).with_hidden({"title": "a", "shop": "mine"}, shop, call) == {
        "title": "a",
        "shop": shop,
        "call": call,
    }


def test_the_dependencies_must_be_of_the_type_that_the_tool_asks_for() -> None:
    @tool
    def save(shop: Shop) -> None:
        """Saves."""

    call = ToolContext(run_id="r", step=1, call_key="1.0", idempotency_key="r:1.0")

    with pytest.raises(ContextTypeError, match="tool 'save' asks for Shop, but was given ActionContext"):
        metadata(save).with_hidden({}, None, call)


def test_circumstances_that_there_are_not_are_an_error() -> None:
    @tool
    def save(call: ToolContext) -> None:
        """Saves."""

    with pytest.raises(ContextTypeError, match="tool 'save' asks for a ToolContext, but was given none"):
        metadata(save).with_hidden({}, None, None)


def test_a_plain_context_is_given_where_there_is_none() -> None:
    @tool
    def save(action_context: ActionContext) -> None:
        """Saves."""

    call = ToolContext(run_id="r", step=1, call_key="1.0", idempotency_key="r:1.0")

    assert metadata(save).with_hidden({}, None, call) == {"action_context": ActionContext()}


# By hand.


def test_a_tool_can_be_made_by_hand() -> None:
    parameters: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    made = Action(name="negate", description="Negates.", parameters=parameters, function=lambda a: -a)  # pyright: ignore

    assert made.parameters == parameters
    assert made.tags is None
    assert made.validate_arguments({"a": 1}) == {"a": 1}


def test_a_hand_made_tool_gets_its_dependencies_too() -> None:
    def save(title: str, shop: Shop) -> None: ...

    made = Tool(name="save", description="", parameters={"type": "object"}, function=save)

    assert made.context_type is Shop
    assert made.validate_arguments({"title": "a", "shop": "mine"}) == {"title": "a"}


def test_parameters_can_be_overridden() -> None:
    override: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    made = build_tool(add, parameters_override=override)

    assert made.parameters == override
    assert made.description == "Adds two floats."
    assert made.validate_arguments({"a": "210"}) == {"a": "210"}


@pytest.mark.parametrize("name", ["", "two words", "a.b", "a" * 65, "<lambda>", "a\n"])
def test_names_that_no_provider_takes_are_refused(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="choose one with name="):
        build_tool(add, name=name)


def test_a_wrong_schema_is_refused_by_the_tools_name() -> None:
    """case-046"""
    with pytest.raises(
        ToolDefinitionError, match="tool 'add': its parameters are not a valid JSON Schema: a: there is no"
    ):
        build_tool(add, parameters_override={"type": "object", "properties": {"a": {"type": "float"}}})


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(ValidationError):
        build_tool(add, timeout=0)
