"""Forced JSON: how an agent is put to a model without tool calling, and what its replies mean."""

import json
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Declined, Reading, Unusable
from agent.dialects.json import instruction, reply_schema
from agent.json_schema import JsonSchema
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, say
from agent.program import Program
from agent.tools import tool
from tests.support import virtual_time


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)


@tool
def look_up(city: City) -> str:
    """Looks a city up."""
    return f"{city.name} is fine"


def program(*tools: Any, output: type[Any] = City) -> Program:
    return Agent("Find it.", tools=tools, output_schema=output, model=ScriptedModel([]), dialect="json").program()


ALONE = program()
WITH_TOOLS = program(look_up)
ASKING = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10)
LAST = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10, last=True)


def read(
    content: str | None, machine: Program = WITH_TOOLS, *, finish: str | None = "stop", asking: Asking = ASKING
) -> Reading:
    return machine.dialect.read(ModelReply(content=content, finish_reason=finish), machine, asking)


def the_call(reading: Reading) -> ToolCall:
    assert isinstance(reading, Calls), reading
    (call,) = reading.calls
    return call


def request(machine: Program, *messages: Message, asking: Asking = ASKING) -> ModelRequest:
    return machine.dialect.request(machine, list(messages), asking)


def test_an_agent_without_tools_has_its_output_as_the_schema_of_the_reply():
    asked = request(ALONE)
    assert asked.response_schema == ALONE.exit.parameters
    assert asked.tools == ()
    assert the_call(read('{"name": "Graz", "people": 3}', ALONE)) == ToolCall(
        id="call_1_0", name="terminate", arguments='{"name":"Graz","people":3}'
    )


def test_an_agent_without_tools_is_told_the_form_of_its_output():
    assert instruction(ALONE).splitlines() == [
        "Find it.",
        "",
        "Reply with one JSON object of this form, and nothing else:",
        '{"name": text, "people": whole number (at least 0)}',
    ]


def test_with_tools_the_reply_is_one_of_the_calls():
    schema = JsonSchema(dict(reply_schema(WITH_TOOLS.specifications, WITH_TOOLS)))
    good = {"tool": "look_up", "arguments": {"city": {"name": "Graz", "people": 3}}}
    assert list(schema.problems(good)) == []
    assert list(schema.problems({"tool": "terminate", "arguments": {"name": "Graz", "people": 3}})) == []
    wrong: list[dict[str, object]] = [
        {"tool": "other", "arguments": {}},
        {"tool": "look_up", "arguments": {"city": {"name": "Graz", "people": -1}}},
        {"tool": "look_up"},
        {"name": "Graz", "people": 3},
    ]
    assert all(list(schema.problems(bad)) for bad in wrong)
    call = the_call(read(json.dumps(good)))
    assert (call.name, json.loads(call.arguments)) == ("look_up", good["arguments"])


class Tree(BaseModel):
    branches: list["Tree"] = []


class Leaf(BaseModel):
    kind: Literal["leaf"]


class Twig(BaseModel):
    kind: Literal["twig"]
    ends: list[Annotated["Leaf | Twig", Field(discriminator="kind")]] = []


def test_definitions_of_several_tools_stay_apart_and_are_all_found():
    @tool
    def plant(tree: Tree) -> str:
        """Plants."""
        return "planted"

    @tool
    def fell(tree: Tree) -> str:
        """Fells."""
        return "felled"

    @tool
    def cut(twig: Twig) -> str:
        """Cuts."""
        return "cut"

    machine = program(plant, fell, cut)
    schema = cast("dict[str, Any]", reply_schema(machine.specifications, machine))
    text = json.dumps(schema)
    references = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert {"plant.Tree", "fell.Tree", "cut.Twig"} <= references <= set(schema["$defs"])
    check = JsonSchema(schema)
    tree: dict[str, object] = {"branches": [{"branches": [{}]}]}
    assert list(check.problems({"tool": "fell", "arguments": {"tree": tree}})) == []
    assert list(check.problems({"tool": "fell", "arguments": {"tree": {"branches": [{"branches": 1}]}}})) != []


def test_at_the_last_answer_only_the_exit_is_offered():
    asked = request(WITH_TOOLS, asking=LAST)
    assert asked.response_schema == WITH_TOOLS.exit.parameters
    assert (asked.messages[-1].content or "").startswith("This is your last reply")
    assert the_call(read('{"name": "Graz", "people": 3}', asking=LAST)).name == "terminate"
    assert the_call(read('{"tool": "terminate", "arguments": {"name": "x"}}', asking=LAST)).arguments == '{"name":"x"}'


def test_an_output_that_looks_like_a_call_is_the_output():
    class Step(BaseModel):
        tool: str
        arguments: dict[str, int]

    call = the_call(read('{"tool": "saw", "arguments": {"teeth": 9}}', program(output=Step)))
    assert (call.name, call.arguments) == ("terminate", '{"tool":"saw","arguments":{"teeth":9}}')


def test_history_becomes_plain_turns():
    call = ToolCall(id="c1", name="look_up", arguments='{"city":{}}')
    history = [
        Message(role=Role.USER, content="go"),
        Message(role=Role.ASSISTANT, content=None, tool_calls=(call,)),
        Message(role=Role.TOOL, tool_call_id="c1", name="look_up", content="fine"),
    ]
    asked = request(WITH_TOOLS, *history)
    assert [(message.role.value, message.content) for message in asked.messages[1:]] == [
        ("user", "go"),
        ("assistant", '{"tool": "look_up", "arguments": {"city":{}}}'),
        ("user", "Result of look_up:\nfine"),
    ]
    assert not any(message.tool_calls or message.tool_call_id for message in asked.messages)


def test_the_instruction_holds_the_goal_and_every_tool():
    text = instruction(WITH_TOOLS)
    assert text.startswith("Find it.")
    assert (
        """- look_up: Looks a city up.
  arguments: {
    "city": {"name": text, "people": whole number (at least 0)}  // A city.
  }
"""
        in text
    )
    assert "Call `terminate` once the task is done." in text
    assert WITH_TOOLS.overhead >= len(text) // 4


REFUSED = ToolCall(id="c1", name="terminate", arguments='{"name":"Graz","people":-3}')


def test_a_refused_reply_is_not_shown_again_but_what_was_wrong_with_it():
    """A small model copies what it sees, also what it should put right."""
    call = ToolCall(id="c2", name="look_up", arguments='{"city":{}}')
    history = [
        Message(role=Role.USER, content="go"),
        Message(role=Role.ASSISTANT, tool_calls=(call,)),
        Message(role=Role.TOOL, tool_call_id="c2", name="look_up", content="fine"),
        Message(role=Role.ASSISTANT, content='{"name": "Gr'),
        Message(role=Role.USER, content="Say it shorter.", refuses=True),
        Message(role=Role.ASSISTANT, tool_calls=(REFUSED,)),
        Message(role=Role.TOOL, tool_call_id="c1", name="terminate", content="people: too few", refuses=True),
    ]
    shown = [message.content for message in request(WITH_TOOLS, *history).messages[2:]]
    assert shown == [
        '{"tool": "look_up", "arguments": {"city":{}}}',
        "Result of look_up:\nfine",
        "Say it shorter.",
        "Your call of terminate was refused:\npeople: too few\nReply again, with that put right.",
    ]
    alone = request(ALONE, *history[5:]).messages[1:]
    assert [message.content for message in alone] == [
        "Your reply was refused:\npeople: too few\nReply again, with that put right."
    ]


def test_a_reply_of_which_a_part_was_executed_is_shown():
    both = (REFUSED, ToolCall(id="c2", name="look_up"))
    history = [
        Message(role=Role.ASSISTANT, tool_calls=both),
        Message(role=Role.TOOL, tool_call_id="c1", name="terminate", content="no", refuses=True),
        Message(role=Role.TOOL, tool_call_id="c2", name="look_up", content="fine"),
    ]
    assert len(request(WITH_TOOLS, *history).messages) == 4


@pytest.mark.parametrize("content", ["nothing", "[1]", '"x"', '{"tool": "a"', '{"a": 1, "a": 2}', '{"a": NaN}', "null"])
def test_what_is_not_one_object_is_sent_back(content: str):
    reading = read(content)
    assert isinstance(reading, Unusable)
    assert (reading.reason, reading.text) == ("unusable_reply", content)
    assert '"tool"' in reading.reminder


def test_what_says_two_things_is_sent_back_with_what_is_doubled():
    reading = read('{"name": "a", "name": "b", "people": 1}', ALONE)
    assert isinstance(reading, Unusable)
    assert "duplicate key name" in reading.reminder


def test_an_agent_without_tools_is_reminded_of_its_schema_alone():
    reading = read("nothing", ALONE)
    assert isinstance(reading, Unusable)
    assert '"tool"' not in reading.reminder


def test_an_object_in_a_fence_is_the_object():
    assert the_call(read('```json\n{"name": "Graz", "people": 3}\n```', ALONE)).name == "terminate"


def test_a_cut_object_is_never_half_an_answer():
    """case-005"""
    for asking in (ASKING, LAST):
        reading = read('{"name": "Gr', ALONE, finish="length", asking=asking)
        assert isinstance(reading, Unusable)
        assert reading.reason == "cut_off"
    assert the_call(read('{"name": "Graz", "people": 3}', ALONE, finish="length")).problem is None


@pytest.mark.parametrize("content", [None, "", "  "])
def test_an_empty_reply(content: str | None):
    """case-020"""
    reading = read(content)
    assert isinstance(reading, Unusable)
    assert reading.reason == "empty_reply"


def test_refusals_and_filters_decline():
    """case-032"""
    assert WITH_TOOLS.dialect.read(ModelReply(refusal="No."), WITH_TOOLS, ASKING) == Declined("No.")
    assert read(None, finish="content_filter") == Declined("The provider's filter held the reply back.")


def test_a_whole_run():
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append(request)
        if request.step == 1:
            return say('{"tool": "look_up", "arguments": {"city": {"name": "Graz", "people": 3}}}')
        if request.step == 2:
            return say('{"tool": "terminate", "arguments": {"name": "Graz", "people": -3}}')
        return say('{"tool": "terminate", "arguments": {"name": "Graz", "people": 3}}')

    agent = Agent("Find it.", tools=[look_up], output_schema=City, model=FunctionModel(answer), dialect="json")
    result = virtual_time.run(agent.run("Graz?"))
    assert result.output == City(name="Graz", people=3)
    assert [message.content for message in seen[1].messages[-1:]] == ["Result of look_up:\nGraz is fine"]
    assert "people" in (seen[2].messages[-1].content or "")
    assert "-3" not in "".join(message.content or "" for message in seen[2].messages), "what it would copy"


def test_calls_of_another_dialect_are_all_shown():
    both = tuple(ToolCall(id=name, name=name) for name in ("look_up", "feed"))
    message = Message(role=Role.ASSISTANT, tool_calls=both)
    asked = request(WITH_TOOLS, message)
    assert asked.messages[-1].content == ('{"tool": "look_up", "arguments": {}}\n{"tool": "feed", "arguments": {}}')
