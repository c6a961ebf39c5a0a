"""Whatever a model writes, in whichever dialect: it is read the same each time, and no tool runs on half an argument."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Declined, Final, Reading, Unusable
from agent.messages import Message, Role
from agent.models.base import ModelReply, RawToolCall
from agent.models.scripted import ScriptedModel
from agent.program import Program
from agent.tools import tool


@tool
def pay(order: str, amounts: list[int] | None = None) -> str:
    """Pays."""
    return f"{order} {amounts}"


@tool
def ping() -> str:
    """Pings."""
    return "pong"


DIALECTS = ("tools", "json", "react")
PROGRAMS = {
    name: Agent("Pay.", tools=[pay, ping], model=ScriptedModel([]), dialect=name).program() for name in DIALECTS
}
FINISHES = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "", "eos", None])

PIECES = [
    "Thought: ", "Action: ", "Action Input: ", "Observation: ", "Final Answer: ", "行动：", "行动输入：", "**Action:** ",
    "Action 1: ", "pay", "ping", "None", "terminate", "pay(", ")", '{"order": "a", "amounts": [1, 2]}', "{'order': 'a'}",
    '{"order": "', "{", "}", "[", "]", '{"tool": "pay", "arguments": {"order": "a"}}', '{"result": "x"}', "<tool_call>",
    '{"name": "pay", "arguments": {"order": "a"}}', "</tool_call>", "```json", "```", "`", "\n", "\n", "\n", " ", "：", "，",
    "“", "”", "\ud800", "\x00", "é", "🚀",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=20).map("".join)


def reading_of(program: Program, reply: ModelReply, *, last: bool = False) -> Reading:
    asking = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10, last=last)
    return program.dialect.read(reply, program, asking)


def executed(program: Program, reading: Reading) -> list[tuple[str, dict[str, object]]]:
    """The calls that would be executed, with what their tools would get."""
    calls = reading.calls if isinstance(reading, Calls) else ()
    found: list[tuple[str, dict[str, object]]] = []
    for call in calls:
        named = program.registry.get_tool(call.name)
        if named is not None and call.problem is None:
            found.append((call.name, json.loads(call.arguments)))
    return found


def assert_can_go_on(program: Program, reading: Reading) -> None:
    """What was read can be stored, and shown to the model again."""
    calls = reading.calls if isinstance(reading, Calls) else ()
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls)
    assert reading.text is None or reading.text.encode()
    answers: Sequence[Message] = [
        Message(role=Role.TOOL, tool_call_id=call.id, name=call.name, content="fine") for call in calls
    ]
    message = Message(role=Role.ASSISTANT, content=reading.text, tool_calls=calls)
    asking = Asking(run_id="r1", step=2, attempt=1, max_tokens=100, timeout=10)
    assert program.dialect.request(program, [message, *answers], asking).messages


@pytest.mark.parametrize("dialect", DIALECTS)
@given(text=TEXTS, finish_reason=FINISHES, last=st.booleans())
def test_any_text_is_read(dialect: str, text: str, finish_reason: str | None, last: bool):
    program = PROGRAMS[dialect]
    reply = ModelReply(content=text, finish_reason=finish_reason)
    reading = reading_of(program, reply, last=last)
    assert isinstance(reading, Calls | Final | Declined | Unusable)
    assert reading == reading_of(program, reply, last=last)
    assert_can_go_on(program, reading)


CALLS = st.fixed_dictionaries({"order": st.text(max_size=8)}, optional={"amounts": st.lists(st.integers(), max_size=3)})


def written(dialect: str, arguments: dict[str, object]) -> list[str]:
    """Ways to write a call in a dialect."""
    text = json.dumps(arguments)
    if dialect == "json":
        return [
            json.dumps({"tool": "pay", "arguments": arguments}),
            json.dumps({"tool": "pay", "arguments": arguments}, indent=1),
        ]
    if dialect == "tools":
        call = json.dumps({"name": "pay", "arguments": arguments})
        return [f"<tool_call>{call}</tool_call>", f"[TOOL_CALLS][{call}]", f"So.\n<|python_tag|>{call}", call]
    return [
        f"Thought: so\nAction: pay\nAction Input: {text}\nObservation: paid\nFinal Answer: {text}",
        f"Action: pay({text})\n",
        f"**Action:** pay\n**Action Input:**\n```json\n{json.dumps(arguments, indent=1)}\n```",
        f"行动：pay\n行动输入：{text.replace(': ', '：')}",
        f'Action: {{"action": "pay", "action_input": {text}}}',
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(arguments=CALLS, finish_reason=FINISHES, data=st.data())
def test_no_tool_runs_on_half_an_argument(
    dialect: str, arguments: dict[str, object], finish_reason: str | None, data: st.DataObject
):
    program = PROGRAMS[dialect]
    text = data.draw(st.sampled_from(written(dialect, arguments)))
    whole = executed(program, reading_of(program, ModelReply(content=text, finish_reason="stop")))
    cut = data.draw(st.integers(0, len(text)))
    part = executed(program, reading_of(program, ModelReply(content=text[:cut], finish_reason=finish_reason)))
    assert len(whole) == 1
    assert part in ([], whole)


@given(arguments=CALLS, finish_reason=FINISHES, data=st.data())
def test_no_tool_runs_on_half_of_what_a_server_sent(
    arguments: dict[str, object], finish_reason: str | None, data: st.DataObject
):
    text = json.dumps(arguments)
    cut = data.draw(st.integers(1, len(text)))
    for program in PROGRAMS.values():
        reply = ModelReply(tool_calls=[RawToolCall("pay", text[:cut])], finish_reason=finish_reason)
        assert executed(program, reading_of(program, reply)) in ([], [("pay", arguments)])
