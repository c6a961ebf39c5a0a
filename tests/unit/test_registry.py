"""The set of tools that an agent may use."""

import pytest

from agent.errors import AgentDefinitionError, ConfigurationError, ToolDefinitionError
from agent.registry import ActionRegistry
from agent.tools import Tool, build_tool, tool


@tool(tags=["arithmetic"])
def add(a: float, b: float) -> float:
    """Adds two floats."""
    return a + b


def multiply(a: float, b: float) -> float:
    """Multiplies two floats."""
    return a * b


def answer_with(answer: str) -> str:
    return answer


finish = Tool(
    name="finish",
    description="Ends the task.",
    parameters={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    function=answer_with,
    terminal=True,
)


def test_it_takes_decorated_functions_plain_functions_and_tools() -> None:
    registry = ActionRegistry()

    registry.register(add)
    registry.register_tool(multiply)
    registry.register(finish)

    assert list(registry.tools) == ["add", "multiply", "finish"]
    assert registry.tools["multiply"].function is multiply
    assert registry.get_tool("finish") is finish
    assert registry.get_tool("missing") is None


def test_the_schema_is_in_the_format_of_openai() -> None:
    number = {"type": "number"}

    assert ActionRegistry([add]).get_tools_schema() == [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": "Adds two floats.",
                "parameters": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]},
            },
        }
    ]


def test_terminal_is_a_property_of_the_registration() -> None:
    ending, going_on = ActionRegistry(), ActionRegistry()
    ending.register(add, terminal=True)
    going_on.register(add)

    assert ending.tools["add"].terminal
    assert not going_on.tools["add"].terminal


def test_a_tool_keeps_its_own_flag_unless_the_registration_says_otherwise() -> None:
    keeping, changing = ActionRegistry([finish]), ActionRegistry()
    changing.register(finish, terminal=False)

    assert keeping.tools["finish"].terminal
    assert not changing.tools["finish"].terminal
    assert finish.terminal


def test_a_copied_tool_still_works() -> None:
    registry = ActionRegistry()
    registry.register(add, terminal=True)

    assert registry.tools["add"].validate_arguments('{"a": "200", "b": 10}') == {"a": 200.0, "b": 10.0}


def test_two_tools_of_one_name_are_refused() -> None:
    registry = ActionRegistry([add])

    with pytest.raises(AgentDefinitionError, match="two tools named 'add'"):
        registry.register(build_tool(multiply, name="add"))
    assert registry.tools["add"].function is add


def test_what_cannot_be_a_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError):
        ActionRegistry([print])
    assert issubclass(ToolDefinitionError, ConfigurationError)


def test_tools_are_chosen_by_their_tags() -> None:
    registry = ActionRegistry([add, multiply])

    assert [chosen.name for chosen in registry.tagged("arithmetic", "other")] == ["add"]
    assert registry.tagged("other") == []


def test_a_copy_does_not_leak() -> None:
    registry = ActionRegistry([add])
    other = registry.copy()
    other.register(multiply)

    assert list(registry.tools) == ["add"]
    assert list(other.tools) == ["add", "multiply"]
