"""The first document, GAME, its second version: schemas from functions, a registry, hidden dependencies; items 15 to 26."""

import json
import typing
from typing import Any, Optional

import pytest

from agent import ScriptedModel
from agent.documents.game import (
    JSON_TYPE_MAP,
    ActionContext,
    ActionRegistry,
    Agent,
    Environment,
    Tool,
    build_tool,
    context_param,
    get_json_type,
)
from agent.testing import call, say
from tests.support.game_calculator import ACTIONS, number_pair
from tests.support.game_parts import Answer, Database, Listener, add, kind_of, registry_of, save_paper


def test_what_was_wrong_with_the_first_version_is_gone() -> None:
    """item 15: schemas follow from functions, dependencies are hidden, and the exit is built in."""
    agent = Agent(
        "Do it.", registry_of(add, save_paper), Answer, action_context=Database(database_url="u", api_key="k")
    )

    assert agent.actions["add"].parameters["required"] == ["a", "b"]
    assert "action_context" not in json.dumps(agent.tools_schema())
    assert list(agent.actions) == ["add", "save_paper", "terminate"]


@pytest.mark.parametrize(
    ("python_type", "word"),
    [
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (bool, "boolean"),
        (list, "array"),
        (list[int], "array"),
        (typing.List, "array"),  # noqa: UP006
        (list[Listener], "array"),
        (dict, "object"),
        (dict[str, int], "object"),
        (typing.Dict[str, int], "object"),  # noqa: UP006
        (Optional[int], "integer"),  # noqa: UP045
        (bool | None, "boolean"),
        (int | str, "integer"),
        (type(None), "string"),
        (Listener, "string"),
        (Any, "string"),
    ],
)
def test_json_types(python_type: object, word: str) -> None:
    """item 16: the same words for the same types."""
    assert get_json_type(python_type) == word


def test_the_map_of_json_types() -> None:
    """item 16: by its name in the document."""
    assert list(JSON_TYPE_MAP.items()) == [(str, "string"), (int, "integer"), (float, "number"), (bool, "boolean")]


def test_schemas_say_more_than_types() -> None:
    """item 16: items, enumerations and nested models are in the schema as well."""

    def search(words: list[str], order: typing.Literal["new", "old"], at: Answer) -> None: ...

    properties = typing.cast("dict[str, dict[str, Any]]", build_tool(search).parameters["properties"])

    assert properties["words"]["items"] == {"type": "string"}
    assert properties["order"]["enum"] == ["new", "old"]
    assert properties["at"]["properties"]["value"] == {"type": "integer"}


def test_a_tool_is_built_from_a_function() -> None:
    """item 17: name, docstring, hints; what has a default is not required; an override is taken word for word."""

    def look(place, pages: int = 1):  # pyright: ignore
        """Looks."""

    made = build_tool(look)  # pyright: ignore[reportUnknownArgumentType]
    assert (made.name, made.description, made.tags) == ("look", "Looks.", None)
    assert made.parameters == {
        "type": "object",
        "properties": {"place": {"type": "string"}, "pages": {"type": "integer", "default": 1}},
        "required": ["place"],
    }
    overridden = build_tool(look, name="see", description="Sees.", parameters_override=number_pair, tags=["eye"])  # pyright: ignore[reportUnknownArgumentType]
    assert (overridden.name, overridden.description, overridden.tags) == ("see", "Sees.", ["eye"])
    assert overridden.parameters == number_pair

    def bare(x: int) -> None: ...

    assert build_tool(bare).description == ""


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    """item 18: the tool is kept on the function, which can be called as before."""
    assert add(1, 2) == 3
    noted = add._tool_metadata  # pyright: ignore
    assert isinstance(noted, Tool)
    assert noted.function is add


def test_a_tool_is_printed_as_in_the_document() -> None:
    """item 19: without its function it is JSON, of exactly these fields."""
    noted: Tool = add._tool_metadata  # pyright: ignore

    assert json.loads(json.dumps(noted.model_dump(exclude={"function"}))) == {
        "name": "add",
        "description": "Adds two floats.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
        "tags": None,
        "terminal": False,
    }


def test_a_registry_takes_functions_and_tools() -> None:
    """item 20: decorated, bare, or made by hand; `register` has a second name."""

    def bare(x: int) -> int:
        return x

    registry = registry_of(add, bare)
    registry.register_tool(ACTIONS[1])

    assert list(registry.tools) == ["add", "bare", "multiply"]
    assert registry.get_tool("nobody") is None
    assert registry.get_tools_schema()[2] == ACTIONS[1].definition()


def test_terminal_is_said_at_the_registration() -> None:
    """item 21: the tool is copied, never changed; what was made terminal stays so where nothing is said."""
    first, second = ActionRegistry(), ActionRegistry()
    first.register(add, terminal=True)
    second.register(add)
    second.register(ACTIONS[2])
    second_as_usual = second.get_tool("finish")

    assert [first.tools["add"].terminal, second.tools["add"].terminal] == [True, False]
    assert second_as_usual is not None
    assert second_as_usual.terminal  # the default does not take the mark away
    third = ActionRegistry()
    third.register(ACTIONS[2], terminal=False)
    assert [third.tools["finish"].terminal, ACTIONS[2].terminal] == [False, True]


def test_a_registry_is_shared_by_agents() -> None:
    """item 22: one place for the tools of several agents, and tags to choose by."""
    registry = registry_of(add, build_tool(save_paper, tags=["papers"]))
    context = Database(database_url="u", api_key="k")
    agents = [Agent("One.", registry, action_context=context), Agent("Two.", registry, Answer, action_context=context)]

    assert all(agent.actions["add"] is registry.tools["add"] for agent in agents)
    assert [one.name for one in registry.tagged("papers")] == ["save_paper"]


def test_a_tool_asks_for_its_context_by_type_or_name() -> None:
    """item 23: a subclass of ActionContext holds whatever tools need."""

    def by_type(title: str, anything: Database) -> None: ...
    def by_name(title: str, action_context) -> None: ...  # pyright: ignore

    assert context_param(by_type) == ("anything", Database)
    assert context_param(by_name) == ("action_context", ActionContext)  # pyright: ignore[reportUnknownArgumentType]
    assert build_tool(by_name).parameters["required"] == ["title"]  # pyright: ignore[reportUnknownArgumentType]


def test_a_context_is_found_where_a_hint_cannot_be_read() -> None:
    """item 24: a hint that names nothing is passed over; a function without a context has none."""

    def broken(title: "Nowhere", context: Database) -> None: ...  # pyright: ignore # noqa: F821

    assert context_param(broken) == ("context", Database)  # pyright: ignore[reportUnknownArgumentType]
    assert context_param(add) is None


def test_the_model_never_sees_the_context() -> None:
    """item 25: neither the parameter nor what is in it."""
    agent = Agent("Save.", registry_of(save_paper), action_context=Database(database_url="u", api_key="sk-1"))

    assert list(agent.actions["save_paper"].parameters["properties"]) == ["title", "content"]  # pyright: ignore
    assert "sk-1" not in repr(agent.action_context)


def test_the_context_is_injected_over_what_the_model_sent() -> None:
    """item 26: the environment fills it in; a model that invents one changes nothing."""
    context = Database(database_url="db://mine", api_key="k")
    invented = call("save_paper", title="t", content="c", action_context={"database_url": "db://evil"})
    agent = Agent("Save.", registry_of(save_paper), action_context=context, model=ScriptedModel([invented, say("ok")]))

    agent.run("Save it.")

    assert agent.memory.get()[3].content == "db://mine/t"
    paper = agent.actions["save_paper"]
    assert (
        Environment().execute_action(paper, {"title": "t", "content": "c", "action_context": "evil"}, context)
        == "db://mine/t"
    )
    assert Environment().execute_action(build_tool(kind_of), {}) is ActionContext
