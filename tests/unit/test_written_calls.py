"""Tool calls that a model wrote into its text (case-037)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Final, Unusable
from agent.dialects.written_calls import WrittenCalls, written_calls
from agent.errors import RunFailed
from agent.events import ReplyRejected
from agent.models.base import ModelReply, RawToolCall
from agent.models.scripted import ScriptedModel, call, say
from agent.tools import tool
from tests.support import virtual_time

TOOLS = frozenset({"search", "multiply"})
SEARCH = {"name": "search", "arguments": {"q": "x"}}
ASKING = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10)


@tool
def search(q: str) -> str:
    """Searches."""
    return f"found {q}"


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ('I will look.\n<tool_call>\n{"name": "search", "arguments": {"q": "x"}}\n</tool_call>', "I will look."),
        ('<|python_start|>{"name":"search","parameters":{"q":"x"}}<|python_end|>', None),
        ('<|python_tag|>{"name": "search", "parameters": {"q": "x"}}<|eom_id|>', None),
        ('[TOOL_CALLS][{"name": "search", "arguments": {"q": "x"}}]', None),
        ('So: <tool_call>{"name": "search", "arguments": {"q": "x"}}', "So:"),
        ('<function=search>{"q": "x"}</function>', None),
        ('{"name": "search", "arguments": {"q": "x"}}', None),
        ('{"tool": "search", "arguments": {"q": "x"}}', None),
        ('[{"type": "function", "id": "c1", "function": {"name": "search", "arguments": {"q": "x"}}}]', None),
        ('{"tool_calls": [{"name": "search", "arguments": {"q": "x"}}]}', None),
        ('<tool_call>{"tool_call": {"name": "search", "arguments": {"q": "x"}}}</tool_call>', None),
        ('{"role": "assistant", "content": null, "function_call": {"name": "search", "arguments": {"q": "x"}}}', None),
    ],
)
def test_it_is_recovered(text: str, before: str | None):
    assert written_calls(text, TOOLS) == WrittenCalls((RawToolCall("search", {"q": "x"}),), before)


@pytest.mark.parametrize("between", ["</tool_call>\n<tool_call>", "; ", "\n", ","])
def test_several_are_recovered(between: str):
    second = '{"name": "search", "arguments": {"q": "```"}}'
    found = written_calls(f"<tool_call>{json.dumps(SEARCH)}{between}{second}</tool_call>", TOOLS)
    assert found is not None
    assert [raw.arguments for raw in found.calls] == [{"q": "x"}, {"q": "```"}]


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "search", "arguments": {"q": "x"',
        '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "search", "arguments": {"q": "x"}}</tool_call><tool_call>{"name": "sea',
        "<tool_call>\n<function=search>\n<parameter=q>\nx\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\nsearch(q='x')\n</tool_call>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{}\n```",
        'I would call this:\n{"name": "search", "arguments": {"q": "x"}}\nas it were.',
        '{"name": "search", "arguments": {"q": "x',
        '{"tool_calls": [{"name": "search", "arguments": {"q": "x',
    ],
)
def test_what_looks_like_one_and_cannot_be_read(text: str):
    found = written_calls(text, TOOLS)
    assert found is not None
    assert found.calls == ()


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "search", "arguments": {"q": "x"}}\n```',
        'Write `<tool_call>{"name": "search", "arguments": {}}</tool_call>` for that.',
        'An example:\n```\n<tool_call>{"name": "search", "arguments": {}}</tool_call>\n```',
        "The tag <tool_call> opens a call.",
        '{"name": "Graz", "arguments": {"people": 3}}',
        '{"name": "search", "people": 3}',
        '{"tool_calls": [{"name": "Graz", "arguments": {}}]}',
        '{"tool_calls": 3, "people": 4}',
        '{"tool_calls": []}',
        '{"city": "Graz"}',
        "[1, 2]",
        "42",
        "",
    ],
)
def test_what_is_an_answer(text: str):
    assert written_calls(text, TOOLS) is None


def test_the_dialect_of_function_calling_executes_it():
    text = f"I will look.\n<tool_call>\n{json.dumps(SEARCH)}\n</tool_call>"
    agent = Agent("Answer.", tools=[search], model=ScriptedModel([say(text), say("It is x.")]))
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.usage.tool_calls) == ("It is x.", 1)
    program = agent.program()
    reading = program.dialect.read(say(text), program, ASKING)
    assert isinstance(reading, Calls)
    assert (reading.text, [one.id for one in reading.calls]) == ("I will look.", ["call_1_0"])


def test_markup_that_cannot_be_read_is_never_the_answer():
    broken = say('<tool_call>\nsearch(q="x")\n</tool_call>')
    agent = Agent("Answer.", tools=[search], model=ScriptedModel([broken, call("search", q="x"), say("It is x.")]))
    result = virtual_time.run(agent.run("go"))
    assert result.output == "It is x."
    assert [one.event.step for one in result.events if isinstance(one.event, ReplyRejected)] == [1]
    agent = Agent("Answer.", tools=[search], model=ScriptedModel(lambda _run, _step: broken))
    with pytest.raises(RunFailed) as failure:
        virtual_time.run(agent.run("go"))
    assert failure.value.reason == "unusable_reply"


def test_a_quoted_call_is_an_answer():
    program = Agent("Answer.", tools=[search], model=ScriptedModel([])).program()
    quoted = f"```json\n{json.dumps(SEARCH)}\n```"
    assert program.dialect.read(say(quoted), program, ASKING) == Final(quoted, answer=quoted)
    cut = ModelReply(content='<tool_call>{"name": "se', finish_reason="length")
    assert isinstance(program.dialect.read(cut, program, ASKING), Unusable)


MARKUP = [
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "<function=search>",
    json.dumps(SEARCH),
    "`",
    "```",
    "\n",
    " ",
    "x",
    '{"name": "search"',
]


@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=3), max_size=12).map("".join))
def test_no_text_breaks_it(text: str):
    found = written_calls(text, TOOLS)
    assert found is None or all(one.arguments == {"q": "x"} or one.name == "search" for one in found.calls)


@given(st.dictionaries(st.text(), st.text(), max_size=3), st.data())
def test_a_call_that_was_cut_is_never_executed(arguments: dict[str, str], data: st.DataObject):
    text = json.dumps({"name": "search", "arguments": arguments})
    cut = data.draw(st.integers(0, len(text) - 1))
    for written in (f"<tool_call>{text[:cut]}", f"[TOOL_CALLS][{text}"[: cut + 13], text[:cut]):
        found = written_calls(written, TOOLS)
        assert found is None or found.calls == ()
