"""The first document, GAME, its final version: the built-in exit, and what can go wrong; items 27 to 36."""

from typing import Any

import pytest

import agent as pawl
from agent import FunctionModel, ModelReply, ModelRequest, RunFailed, ScriptedModel
from agent.documents.game import ActionContext, ActionRegistry, Agent, Environment, Message, Role, build_tool, tool
from agent.models.base import RawToolCall
from agent.testing import call, say
from tests.support.game_calculator import ACTIONS, REPLIES, TASK, calculator
from tests.support.game_parts import Answer, Listener, add, dumped, registry_of, save_paper


def test_the_schema_is_the_exit_s_parameters() -> None:
    """item 27: no `response_format`, which would end the use of tools too early."""
    listener = Listener(call("add", a=1, b=2), call("terminate", value=3))

    assert Agent("Add.", registry_of(add), Answer, model=listener.model).run("Go.") == Answer(value=3)
    assert all(request.response_schema is None for request in listener.requests)
    assert [one.name for one in listener.requests[0].tools] == ["add", "terminate"]


def test_the_exit_has_the_document_s_names() -> None:
    """item 28: `terminate`, with the one field `result` where the result is a text."""
    assert (Agent.TERMINATE_TOOL_NAME, Agent._TERMINATE_STR_FIELD) == ("terminate", "result")  # pyright: ignore[reportPrivateUsage]
    agent = Agent("Write.", ActionRegistry())
    assert agent.actions["terminate"].parameters["properties"] == {"result": {"type": "string"}}
    assert agent.output_schema is str


@pytest.mark.parametrize(
    ("schema", "given", "result"), [(str, {"result": "done"}, "done"), (Answer, {"value": 3}, Answer(value=3))]
)
def test_the_exit_is_built_from_the_schema(schema: type[Any], given: dict[str, object], result: object) -> None:
    """item 29: a text is unwrapped; a model is an instance."""
    exit_tool = Agent._build_terminate_tool(schema)  # pyright: ignore[reportPrivateUsage]
    agent = Agent("Do it.", ActionRegistry(), schema, model=ScriptedModel([call("terminate", **given)]))

    assert exit_tool.terminal
    assert exit_tool.description == f"Provide the final result ({schema.__name__}) and end the task."
    assert agent.run("Go.") == agent.result == result
    assert Environment().execute_action(exit_tool, given) == result
    assert "Field required" in str(Environment().execute_action(exit_tool, {"no_such_field": 1}))


def test_the_final_agent() -> None:
    """item 30: goal, registry, schema, environment and context, in this order; result, memory, add_memory."""
    agent = Agent(
        "Add.",
        registry_of(add),
        Answer,
        Environment(),
        ActionContext(),
        model=ScriptedModel([call("terminate", value=1)]),
    )

    agent.add_memory(Message(role=Role.USER, content="I like 1."))
    agent.run("Go.")

    assert agent.result == Answer(value=1)
    assert [message.content for message in agent.memory.get()][:3] == ["Add.", "I like 1.", "Go."]


def test_an_agent_has_exactly_one_exit() -> None:
    """item 31: text where nothing is said; two exits are refused by their names; one of its own saves the built-in one."""
    own = ActionRegistry()
    own.register(add, terminal=True)
    agent = Agent("Add.", own, model=ScriptedModel([call("add", a=1, b=2)]))

    assert list(Agent("Write.", ActionRegistry()).actions) == ["terminate"]
    assert (list(agent.actions), agent.run("Go.")) == (["add"], 3)
    with pytest.raises(ValueError, match=r"output_schema and terminal tools \(add\)"):
        Agent("Add.", own, Answer)
    own.register(ACTIONS[2])
    with pytest.raises(ValueError, match=r"several terminal tools \(add, finish\); exactly one exit"):
        Agent("Add.", own)


def test_a_context_of_the_wrong_type_is_refused_at_once() -> None:
    """item 32: the tool, the type that it needs and the one that was given, and what to do."""

    class Bank(ActionContext):
        account: str

    with pytest.raises(TypeError) as refused:
        Agent("Save.", registry_of(save_paper), action_context=Bank(account="x"))

    for word in ("'save_paper'", "Database", "Bank", "subclass", "split"):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("result", "content"),
    [(Answer(value=1), '{"value":1}'), ({"city": "北京"}, '{"city": "北京"}'), ([1, "é"], '[1, "é"]'), (210, "210")],
)
def test_results_become_text(result: object, content: str) -> None:
    """item 33: models and plain data as JSON, in their own letters; all else as its text."""
    assert Agent._to_content(result) == content  # pyright: ignore[reportPrivateUsage]


def test_an_unknown_tool_is_told_to_the_model() -> None:
    """item 34: decided otherwise: not a ValueError that ends the run; the model reads "Tool '<name>' not found.", bounded."""
    agent = Agent("Add.", registry_of(add), model=ScriptedModel([call("subtract", a=1), say("then not")]))

    assert agent.run("Go.") == "then not"
    assert str(agent.memory.get()[3].content).startswith("Tool 'subtract' not found.")
    with pytest.raises(RunFailed, match="4 replies in a row"):
        Agent("Add.", registry_of(add), model=FunctionModel(lambda _: call("subtract"))).run("Go.")


def test_iterations_that_are_used_up_leave_no_result() -> None:
    """item 34: also where an earlier run had one."""
    model = FunctionModel(lambda request: say("done") if "first" in str(request.messages) else call("add", a=1, b=1))
    agent = Agent("Add.", registry_of(add), model=model)

    assert agent.run("first") == agent.result == "done"
    assert agent.run("second", max_iterations=2) is None
    assert agent.result is None


def test_the_exit_never_lands_in_a_shared_registry() -> None:
    """item 35: each agent has a copy."""
    registry = registry_of(add)

    Agent("One.", registry)
    Agent("Two.", registry, Answer)

    assert list(registry.tools) == ["add"]


def test_a_result_that_does_not_fit_goes_back_to_the_model() -> None:
    """item 35: it does not end the run with an error for a result."""
    replies = [call("terminate", value="many"), call("terminate", value=3)]
    agent = Agent("Count.", ActionRegistry(), Answer, model=ScriptedModel(replies))

    assert agent.run("Go.") == Answer(value=3)
    assert "valid integer" in str(agent.memory.get()[3].content)


def test_an_exit_that_raises_goes_back_to_the_model() -> None:
    """item 35: a terminal tool of one's own may fail, too."""

    @tool(terminal=True)
    def publish(text: str) -> str:
        """Publishes."""
        if len(text) < 5:
            raise ValueError("too short")
        return text.upper()

    agent = Agent(
        "Write.", registry_of(publish), model=ScriptedModel([call("publish", text="hi"), call("publish", text="hello")])
    )

    assert agent.run("Go.") == "HELLO"
    assert agent.memory.get()[3].content == '{"error": "too short"}'


def test_bad_json_goes_back_to_the_model() -> None:
    """item 35: the call is answered with what is wrong, and nothing is executed."""
    broken = ModelReply(tool_calls=[RawToolCall("add", '{"a": 200, "b": }', "c1")])
    agent = calculator(ScriptedModel([broken, *REPLIES]))

    assert agent.run(TASK) == "420"
    assert "invalid JSON" in str(agent.memory.get()[3].content)


def test_two_runs_share_no_memory() -> None:
    """item 35: the second begins as the first did."""
    agent = calculator(ScriptedModel(REPLIES))

    agent.run(TASK)
    first = agent.memory
    agent.run(TASK)

    assert agent.memory is not first
    assert dumped(agent.memory) == dumped(first)
    assert len(agent.memory.get()) == 8


def test_a_long_conversation_stays_in_a_window() -> None:
    """item 36: left out of the document; the engine trims and summarises (tests/acceptance/test_sessions.py)."""
    sizes: list[int] = []

    def look(request: ModelRequest) -> ModelReply:
        sizes.append(sum(len(message.content or "") for message in request.messages))
        return call("look") if request.step < 30 else say("done")

    def look_tool() -> str:
        return "word " * 200

    context = pawl.ContextManager(max_tokens=2000, recent_messages=10)
    reader = pawl.Agent("Look.", tools=[build_tool(look_tool, name="look")], model=FunctionModel(look), context=context)

    assert reader.run_sync("Go.").output == "done"
    assert max(sizes) < 12_000 < 30 * 1000
