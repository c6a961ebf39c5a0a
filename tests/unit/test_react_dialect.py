"""ReAct: how an agent is put to a model that only writes text, and what its replies come to."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Declined, Final, Reading, Unusable
from agent.dialects.react import NO_INPUT, NO_LABEL, instruction
from agent.errors import RunFailed
from agent.events import ModelReplied, ReplyRejected, RequestOpened, ToolReturned
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelReply, ModelRequest, RawToolCall
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, say
from agent.program import Program
from agent.requests import Answer, question_tool
from agent.result import RunResult
from agent.tools import tool
from tests.support import virtual_time


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)


@tool
def search(q: str) -> str:
    """Searches the web."""
    return f"found {q}"


@tool
def ping() -> str:
    """Pings."""
    return "pong"


@tool(terminal=True)
def finish(answer: str) -> str:
    """Ends the task."""
    return answer.upper()


ASKING = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10)
LAST = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10, last=True)
SEARCH = 'Thought: hm\nAction: search\nAction Input: {"q": "x"}'


def agent_with(*tools: Any, replies: list[str] | None = None, **options: Any) -> Agent[Any]:
    model = ScriptedModel([say(text) for text in replies or []])
    return Agent("Find it.", tools=tools or (search, ping), model=model, dialect="react", **options)


PROGRAM = agent_with().program()
TYPED = agent_with(output_schema=City).program()
OWN_EXIT = agent_with(search, finish).program()


def read(
    content: str | None, program: Program = PROGRAM, *, finish_reason: str = "stop", asking: Asking = ASKING
) -> Reading:
    return program.dialect.read(ModelReply(content=content, finish_reason=finish_reason), program, asking)


def the_call(reading: Reading) -> ToolCall:
    assert isinstance(reading, Calls), reading
    (call,) = reading.calls
    return call


def request(*messages: Message, program: Program = PROGRAM, asking: Asking = ASKING) -> ModelRequest:
    return program.dialect.request(program, list(messages), asking)


def run(*replies: str, **options: Any) -> RunResult[Any]:
    return virtual_time.run(agent_with(replies=list(replies), **options).run("go"))


def test_the_instruction_holds_the_goal_the_labels_and_the_tools():
    text = instruction(PROGRAM)
    assert text.startswith("Find it.")
    positions = [
        text.index(f"\n{label}:") for label in ("Thought", "Action", "Action Input", "Observation", "Final Answer")
    ]
    assert positions == sorted(positions)
    assert 'one of ["search", "ping"]' in text
    listed = json.loads(text.partition("The tools:\n")[2])
    assert listed == [
        {
            "name": "search",
            "description": "Searches the web.",
            "parameters": dict(PROGRAM.specifications[0].parameters),
        },
        {"name": "ping", "description": "Pings.", "parameters": dict(PROGRAM.specifications[1].parameters)},
    ]
    assert '\n    "name": "search"' in text
    assert "terminate" not in text
    assert PROGRAM.overhead >= len(text) // 4


def test_the_form_of_the_answer_is_that_of_the_result():
    assert '"people"' in instruction(TYPED).partition("Final Answer:")[2].partition("\n")[0]
    assert '"enum": ["yes", "no"]' in instruction(agent_with(output_schema=Literal["yes", "no"]).program())
    assert "Final Answer:" not in instruction(OWN_EXIT)
    assert "use the tool finish" in instruction(OWN_EXIT)


def test_an_agent_without_tools_just_thinks_and_answers():
    text = instruction(Agent("Say it.", model=ScriptedModel([]), dialect="react").program())
    assert "Final Answer:" in text
    assert "Action" not in text


def test_the_model_stops_where_it_would_observe():
    asked = request(Message(role=Role.USER, content="go"))
    assert asked.stop == ("\nObservation:",)
    assert (asked.tools, asked.response_schema) == ((), None)
    assert [message.role for message in asked.messages] == [Role.SYSTEM, Role.USER]


def test_history_becomes_plain_turns():
    call = ToolCall(id="c1", name="search", arguments='{"q":"x"}')
    asked = request(
        Message(role=Role.SYSTEM, content="What came before."),
        Message(role=Role.USER, content="go"),
        Message(role=Role.ASSISTANT, content="Thought: hm", tool_calls=(call,)),
        Message(role=Role.TOOL, tool_call_id="c1", name="search", content="found x"),
        Message(role=Role.ASSISTANT, content="Thought: so\nFinal Answer: x"),
    )
    system, *turns = asked.messages
    assert (system.content or "").endswith("What came before.")
    assert [(message.role.value, message.content) for message in turns] == [
        ("user", "go"),
        ("assistant", 'Thought: hm\nAction: search\nAction Input: {"q":"x"}'),
        ("user", "Observation: found x"),
        ("assistant", "Thought: so\nFinal Answer: x"),
    ]
    assert not any(message.tool_calls or message.tool_call_id for message in turns)


def test_calls_of_another_dialect_become_actions():
    calls = tuple(ToolCall(id=name, name=name) for name in ("search", "terminate"))
    asked = request(Message(role=Role.ASSISTANT, tool_calls=calls))
    assert asked.messages[-1].content == "Action: search\nAction Input: {}\nAction: terminate\nAction Input: {}"


def test_at_the_last_answer_the_exit_is_asked_for():
    assert "`Final Answer:`" in (request(asking=LAST).messages[-1].content or "")
    assert "finish" in (request(program=OWN_EXIT, asking=LAST).messages[-1].content or "")


def test_an_action_is_a_call_and_the_thought_stays():
    reading = read(SEARCH + "\nObservation: found y\nFinal Answer: y")
    assert reading == Calls((ToolCall(id="call_1_0", name="search", arguments='{"q":"x"}'),), "Thought: hm")


def test_calls_that_a_server_read_are_calls():
    reply = ModelReply(tool_calls=(RawToolCall("search", '{"q": "x"}', "c1"),))
    assert the_call(PROGRAM.dialect.read(reply, PROGRAM, ASKING)) == ToolCall(
        id="c1", name="search", arguments='{"q":"x"}'
    )
    assert the_call(read('<tool_call>{"name": "search", "arguments": {"q": "x"}}</tool_call>')).arguments == '{"q":"x"}'


def test_an_answer_is_the_answer():
    text = "Thought: so\nFinal Answer: x"
    assert read(text + "\nObservation: y\nThought: so\nFinal Answer: y") == Final(text, answer="x")
    assert read(text + "\nObservation:") == Final(text, answer="x")


def test_the_exit_may_be_called_as_a_tool():
    assert the_call(read('Action: terminate\nAction Input: {"result": "x"}')).name == "terminate"


@pytest.mark.parametrize(
    "content", ["42", "Thought: I should greet.\nAction: None (direct response required)", '{"q": 1}']
)
def test_a_reply_without_a_label_is_asked_for_again(content: str):
    """case-056, case-065"""
    assert read(content) == Unusable("unusable_reply", NO_LABEL, content)


def test_an_action_without_its_input_is_asked_for_again():
    assert read("Thought: hm\nAction: search") == Unusable("unusable_reply", NO_INPUT, "Thought: hm\nAction: search")
    assert the_call(read("Action: ping")).arguments == "{}"


def test_input_that_cannot_be_read_is_answered_and_never_executed():
    call = the_call(read('Action: search\nAction Input: {"q": "x'))
    assert (call.arguments, call.problem is None) == ("{}", False)
    assert "not executed" in (the_call(read("Action: search\nAction Input: x")).problem or "")


def test_what_the_output_limit_cut():
    for content in ("Thought: I sh", "Action: pi", "Action: search", "Final Answer: x", "Action: search\nAction Inp"):
        reading = read(content, finish_reason="length")
        if isinstance(reading, Calls):
            assert the_call(reading).problem is not None
        else:
            assert isinstance(reading, Unusable)
            assert reading.reason == "cut_off"
    assert the_call(read(SEARCH, finish_reason="length")).problem is None
    assert the_call(read(SEARCH[:-2], finish_reason="length")).problem is not None
    assert read("Final Answer: x", finish_reason="length", asking=LAST) == Final("Final Answer: x", answer="x")


@pytest.mark.parametrize("content", [None, "", "  "])
def test_an_empty_reply(content: str | None):
    """case-020"""
    reading = read(content)
    assert isinstance(reading, Unusable)
    assert reading.reason == "empty_reply"


def test_refusals_and_filters_decline():
    assert PROGRAM.dialect.read(ModelReply(refusal="No."), PROGRAM, ASKING) == Declined("No.")
    assert isinstance(read(None, finish_reason="content_filter"), Declined)


def test_a_whole_run():
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return say(SEARCH + "\nObservation: made up\nFinal Answer: y" if request.step == 1 else "Final Answer: x")

    agent = Agent("Find it.", tools=[search], model=FunctionModel(answer), dialect="react")
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.steps, result.usage.tool_calls) == ("x", 2, 1)
    assert [message.content for message in seen[1].messages[1:]] == [
        "go",
        'Thought: hm\nAction: search\nAction Input: {"q":"x"}',
        "Observation: found x",
    ]
    replied = next(one.event for one in result.events if isinstance(one.event, ModelReplied))
    assert replied.content == "Thought: hm"


def test_an_unknown_tool_is_told_and_the_run_goes_on():
    result = run("Action: look\nAction Input: {}", "Final Answer: x")
    answered = [one.event for one in result.events if isinstance(one.event, ToolReturned)]
    assert [(event.outcome, event.content[:22]) for event in answered] == [("invalid", "Tool 'look' not found.")]


def test_replies_without_labels_are_counted_and_bounded():
    """case-056, case-065"""
    result = run("Hello", "Final Answer: x")
    assert [one.event.message for one in result.events if isinstance(one.event, ReplyRejected)] == [NO_LABEL]
    with pytest.raises(RunFailed) as failure:
        run("Hello", "Hello", "Hello", max_unusable=3)
    assert failure.value.reason == "unusable_reply"


def test_a_typed_answer():
    result = run(
        'Thought: so\nFinal Answer:\n```json\n{"name": "Graz", "people": 3}\n```\nAs asked.', output_schema=City
    )
    assert result.output == City(name="Graz", people=3)
    assert run("Final Answer: {'name': 'Graz', 'people': 3}", output_schema=City).output == City(name="Graz", people=3)
    assert run("Final Answer: yes", output_schema=Literal["yes", "no"]).output == "yes"
    assert run("Final Answer: [1, 2]", output_schema=list[int]).output == [1, 2]
    assert run("Final Answer: done", output_schema=None).output is None


def test_a_typed_answer_that_does_not_fit_goes_back():
    result = run(
        'Final Answer: {"name": "Graz", "people": -3}',
        "Final Answer: Graz",
        'Final Answer: {"name": "Graz", "people": 3}',
        output_schema=City,
    )
    assert result.output == City(name="Graz", people=3)
    rejected = [one.event for one in result.events if isinstance(one.event, ReplyRejected)]
    assert [event.reason for event in rejected] == ["invalid_output", "invalid_output"]
    assert "people" in rejected[0].message


def test_an_own_exit_is_an_action():
    agent = agent_with(search, finish, replies=["Final Answer: x", 'Action: finish\nAction Input: {"answer": "x"}'])
    assert virtual_time.run(agent.run("go")).output == "X"


def test_a_refused_answer_is_not_said_twice():
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return say(f"Thought: so\nFinal Answer: {request.step}")

    def more_than_one(value: str) -> str:
        if value == "1":
            raise ValueError("more")
        return value

    agent = Agent("Find it.", output_validators=[more_than_one], model=FunctionModel(answer), dialect="react")
    assert virtual_time.run(agent.run("go")).output == "2"
    assert [message.content for message in seen[1].messages[2:]] == [
        "Thought: so\nFinal Answer: 1",
        "Observation: more",
    ]


def test_a_person_may_be_asked():
    async def answer(asked: RequestOpened) -> Answer:
        return Answer(asked.request, "reply", f"the second ({asked.question})")

    agent = agent_with(
        search,
        question_tool(),
        replies=['Action: ask_user\nAction Input: {"question": "Which one?"}', "Final Answer: the second"],
    )
    assert "ask_user" in instruction(agent.program())
    result = virtual_time.run(agent.run("go", answer=answer))
    answered = [one.event.content for one in result.events if isinstance(one.event, ToolReturned)]
    assert answered == ["the second (Which one?)"]
