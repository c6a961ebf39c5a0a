"""The first document, GAME, in its first version: goal, actions, memory, environment and the loop; its items 1 to 14."""

import inspect
import sys
from collections.abc import Mapping
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

import agent as pawl
from agent import Budget, FunctionModel, ModelReply, ScriptedModel
from agent.documents.completion import gpt_4o
from agent.documents.game import (
    Action,
    ActionContext,
    Agent,
    Environment,
    Goal,
    Memory,
    Message,
    Role,
    Tool,
    generate_response,
)
from agent.documents.messages import engine_messages
from agent.models.base import RawToolCall
from agent.testing import call, calls, say
from tests.support.engine import assert_valid
from tests.support.game_calculator import ACTIONS, REPLIES, SYSTEM, TASK, calculator, number_pair
from tests.support.game_calculator import add as plain_add
from tests.support.game_parts import Listener, dumped


def test_the_agent_needs_no_framework() -> None:
    """item 1: pure Python; what enters the model, how decisions are made and what they cost stays with the author."""
    frameworks = {"langchain", "litellm", "pydantic_ai", "autogen", "openai", "crewai"}
    listener = Listener(*REPLIES)
    agent = calculator(listener.model)

    agent.run(TASK)

    assert frameworks & set(sys.modules) == set()
    assert [message.content for message in listener.requests[0].messages] == [SYSTEM, TASK]  # and nothing else
    assert agent.agent.budget == Budget()


def test_each_part_can_be_exchanged() -> None:
    """item 2: look, choose, execute, observe, until it is done; the four parts are modules of their own."""

    class Counting(Environment):
        names: ClassVar[list[str]] = []

        def execute_action(
            self, action: Tool, args: Mapping[str, object], action_context: ActionContext | None = None
        ) -> object:
            self.names.append(action.name)
            return super().execute_action(action, args, action_context)

    agent = Agent("Add.", actions=ACTIONS, environment=Counting(), model=ScriptedModel(REPLIES))

    assert agent.run(TASK) == "420"
    assert Counting.names == ["add", "multiply", "finish"]


def test_a_goal_is_an_object_or_a_text() -> None:
    """item 3: the description is the system prompt."""
    goal = Goal(name="calculator", description=SYSTEM)

    for either in (goal, SYSTEM):
        agent = Agent(either, actions=ACTIONS, model=ScriptedModel(REPLIES))
        assert dumped(agent.memory) == [{"role": "system", "content": SYSTEM}]
    assert Agent(goal, actions=ACTIONS, model=ScriptedModel([])).agent.name == "calculator"


def test_a_tool_can_be_made_by_hand() -> None:
    """item 4: Tool and Action are one; tags and terminal have defaults."""
    made = Tool(name="add", description="Adds two numbers.", parameters=number_pair, function=plain_add)

    assert Action is Tool is pawl.Tool is pawl.Action
    assert (made.tags, made.terminal) == (None, False)
    assert made.function(a=10, b=20) == 30


def test_the_model_reads_tools_as_functions_and_never_runs_them() -> None:
    """item 5: name, description and parameters go to the model; a name and arguments come back."""
    agent = calculator(ScriptedModel([]))

    assert agent.tools_schema()[0] == {
        "type": "function",
        "function": {"name": "add", "description": "Adds two numbers.", "parameters": number_pair},
    }
    assert [schema["function"]["name"] for schema in agent.tools_schema()] == ["add", "multiply", "finish"]  # pyright: ignore[reportIndexIssue]


def test_one_response_can_be_asked_for_by_hand() -> None:
    """item 6: the memory as messages, 1,024 tokens, some tool required; the reply is `choices[0].message`."""
    listener = Listener(ModelReply(tool_calls=[RawToolCall("add", '{"a":200,"b":10}', "call_ZDlL")]))
    memory = Memory(messages=[Message(role=Role.SYSTEM, content=SYSTEM), Message(role=Role.USER, content=TASK)])

    result = generate_response(memory=memory, tools=calculator(listener.model).tools_schema(), model=listener.model)

    assert result.choices[0].message.model_dump(exclude_none=True) == {
        "role": "assistant",
        "tool_calls": [
            {"function": {"arguments": '{"a":200,"b":10}', "name": "add"}, "id": "call_ZDlL", "type": "function"}
        ],
    }
    (request,) = listener.requests
    assert (request.max_tokens, request.tool_choice) == (1024, "required")
    assert [tool.name for tool in request.tools] == ["add", "multiply", "finish"]
    assert gpt_4o().name == "openai:gpt-4o"


def test_an_agent_asks_as_one_response_is_asked_for() -> None:
    """item 6: the engine's own requests have the same figures."""
    listener = Listener(*REPLIES)

    calculator(listener.model).run(TASK)

    assert {(request.max_tokens, request.tool_choice) for request in listener.requests} == {(1024, "required")}


def test_a_memory_is_a_list_that_can_be_exchanged() -> None:
    """item 7: add and get; another strategy needs no change of `run`, and the model still reads a valid history."""

    class LastTwo(Memory):
        def get(self) -> list[Message]:
            return self.messages[-2:]

    listener = Listener(*REPLIES)
    agent = Agent("Add.", actions=ACTIONS, model=listener.model, memory=LastTwo)

    assert agent.run(TASK) == "420"
    assert len(agent.memory.messages) == 8
    roles = [[message.role.value for message in request.messages] for request in listener.requests]
    assert roles == [["system", "user"], ["system", "assistant", "tool"], ["system", "assistant", "tool"]]


def test_a_memory_that_parts_calls_from_answers_does_no_harm() -> None:
    """item 7: an answer without its call is left out, a call without its answer is answered as unknown."""

    class LastOne(Memory):
        def get(self) -> list[Message]:
            return self.messages[-1:]

    class NoAnswers(Memory):
        def get(self) -> list[Message]:
            return [message for message in self.messages if message.role != Role.TOOL]

    for kind, last in ((LastOne, ["system"]), (NoAnswers, ["system", "user", *["assistant", "tool"] * 2])):
        listener = Listener(*REPLIES)
        Agent("Add.", actions=ACTIONS, model=listener.model, memory=kind).run(TASK)
        assert [message.role.value for message in listener.requests[-1].messages] == last


@given(st.data())
def test_whatever_a_memory_shows_is_a_valid_history(data: st.DataObject) -> None:
    """item 7: any choice of its messages, in any order, some of them twice."""
    agent = calculator(ScriptedModel(REPLIES))
    agent.run(TASK)
    shown = data.draw(st.lists(st.sampled_from(agent.memory.messages)))

    history = engine_messages(shown)

    assert_valid(history)
    assert len(history) >= sum(message.role != Role.TOOL for message in shown)


def test_a_memory_hears_of_each_message_once() -> None:
    """item 7: so that one can be kept elsewhere."""
    kept: list[str] = []

    class Kept(Memory):
        def add(self, message: Message | pawl.Message) -> None:
            super().add(message)
            kept.append(str(message.role))

    Agent("Add.", actions=ACTIONS, model=ScriptedModel(REPLIES), memory=Kept).run(TASK)

    assert kept == ["system", *["system", "user"], *["assistant", "tool"] * 3]  # that of the agent; that of its run


def test_messages_have_the_shape_of_language_model_apis() -> None:
    """item 8: role is a text; tool_calls, tool_call_id and name are declared; the engine's own messages fit as well."""
    assert [role.value for role in Role] == ["system", "user", "assistant", "tool"]
    assert Message(role=Role.USER, content="Hi").model_dump(exclude_none=True) == {"role": "user", "content": "Hi"}
    assert type(Message(role=Role.USER).role) is str
    memory = Memory(messages=[pawl.Message(role=Role.USER, content="Hi")])  # pyright: ignore[reportArgumentType]
    memory.add(pawl.Message(role=Role.ASSISTANT, tool_calls=(pawl.ToolCall(id="c1", name="add"),)))
    assert dumped(memory)[1]["tool_calls"] == [
        {"function": {"arguments": "{}", "name": "add"}, "id": "c1", "type": "function"}
    ]


def test_a_result_carries_the_id_of_its_call() -> None:
    """item 9: the same id stands in the call and in its result, also where a server counts from 0 in every reply."""
    replies = [ModelReply(tool_calls=[RawToolCall("add", {"a": 1, "b": 2}, "call_0")]) for _ in range(2)]
    agent = calculator(ScriptedModel([*replies, REPLIES[2]]))

    agent.run(TASK)

    asked = [message.tool_calls[0]["id"] for message in agent.memory.get() if message.tool_calls]
    assert asked == [message.tool_call_id for message in agent.memory.get() if message.role == Role.TOOL]
    assert len(set(asked)) == 3


def test_the_environment_gives_the_result_or_the_error() -> None:
    """item 10: arguments are copied; whatever is raised becomes {"error": …}."""
    arguments = {"a": 10, "b": 20}

    def spoil(**given: object) -> str:
        given.clear()
        raise ZeroDivisionError("division by zero")

    spoiling = Tool(name="spoil", description="", parameters=number_pair, function=spoil)

    assert Environment().execute_action(ACTIONS[0], arguments) == 30
    assert Environment().execute_action(spoiling, arguments) == {"error": "division by zero"}
    assert arguments == {"a": 10, "b": 20}


def test_the_first_agent_takes_a_list_of_actions() -> None:
    """item 11: actions by name, a default environment and memory, the system message first."""
    agent = calculator(ScriptedModel([]))

    assert list(agent.actions) == ["add", "multiply", "finish"]
    assert isinstance(agent.environment, Environment)
    assert dumped(agent.memory) == [{"role": "system", "content": SYSTEM}]


def test_a_run_ends_with_the_terminal_tool_or_with_none() -> None:
    """item 12: 15 iterations by default; when they are used up there is no result."""
    agent = calculator(FunctionModel(lambda request: call("add", a=request.step, b=0)))

    assert agent.run(TASK) is None

    turns = [message for message in agent.memory.get() if message.role == Role.ASSISTANT]
    assert 1 < len(turns) <= 15
    assert inspect.signature(agent.run).parameters["max_iterations"].default == 15


def test_a_turn_without_calls_is_no_end() -> None:
    """item 12: where a tool of its own ends an agent, a text alone does not; the model is told so."""
    agent = calculator(ScriptedModel([say("Let me think."), *REPLIES]))

    assert agent.run(TASK) == "420"
    assert [message.role for message in agent.memory.get()[2:4]] == [Role.ASSISTANT, Role.USER]


def test_the_worked_example_gives_its_eight_messages() -> None:
    """item 13: 210 and 420, not 210.0: what is made by hand is checked against its schema, and not coerced."""
    agent = calculator(ScriptedModel(REPLIES))

    assert agent.run(TASK) == "420"

    def asked(name: str, arguments: str, call_id: str) -> dict[str, object]:
        function = {"arguments": arguments, "name": name}
        return {"role": "assistant", "tool_calls": [{"function": function, "id": call_id, "type": "function"}]}

    def answered(name: str, content: str, call_id: str) -> dict[str, object]:
        return {"role": "tool", "content": content, "tool_call_id": call_id, "name": name}

    assert dumped(agent.memory) == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": TASK},
        asked("add", '{"a":200,"b":10}', "call_1_0"),
        answered("add", "210", "call_1_0"),
        asked("multiply", '{"a":210,"b":2}', "call_2_0"),
        answered("multiply", "420", "call_2_0"),
        asked("finish", '{"answer":"420"}', "call_3_0"),
        answered("finish", "420", "call_3_0"),
    ]
    assert list(dumped(agent.memory)[2]["tool_calls"][0]) == ["function", "id", "type"]  # in the document's order


def test_the_exit_is_a_tool() -> None:
    """item 14: an explicit way to end, so that the model does not go round for ever; behind it nothing is executed."""
    executed: list[str] = []
    spy = Tool(name="spy", description="", parameters={"type": "object"}, function=lambda: executed.append("spy"))
    model = ScriptedModel([calls(call("finish", answer="done"), call("spy")), call("spy")])
    agent = Agent("Spy.", actions=[spy, ACTIONS[2]], model=model)

    assert agent.run("Go.") == "done"
    assert executed == ["spy"]  # of the same reply, in the order in which the exit comes last
