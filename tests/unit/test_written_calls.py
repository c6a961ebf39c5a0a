"""Tool calls that a model wrote into its text (case-037)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Final, Unusable
from agent.dialects.written_calls import WrittenCalls, written_calls
from agent.errors import RunFailed
from agent.events import ReplyRejected
from agent.models.base import ModelReply, RawToolCall
from agent.models.scripted import ScriptedModel, call, say
from agent.output import OutputSchema
from agent.tools import tool
from tests.support import virtual_time

TOOLS = frozenset({"search", "multiply"})
SEARCH = {"name": "search", "arguments": {"q": "x"}}
KIMI = '<|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{"q": "x"}<|tool_call_end|>'
DEEPSEEK = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{"q": "x"}\n```<｜tool▁call▁end｜>'
ASKING = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10)


READABLE = [
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
    ('{"type": "tool_use", "id": "t", "name": "search", "input": {"q": "x"}}', None),
    ('{"name": "search", "args": {"q": "x"}}', None),
    ('{"tool_name": "search", "tool_input": {"q": "x"}}', None),
    ('{"tool": "search", "parameters": {"q": "x"}}', None),
    ('{"function": "search", "arguments": {"q": "x"}}', None),
    ('{"action": "search", "action_input": {"q": "x"}}', None),
    ('<TOOL_CALL>{"name": "search", "arguments": {"q": "x"}}</TOOL_CALL>', None),
    ('<functioncall> {"name": "search", "arguments": {"q": "x"}}', None),
    ('<minimax:tool_call>{"name": "search", "arguments": {"q": "x"}}</minimax:tool_call>', None),
    ('<function name="search">{"q": "x"}</function>', None),
    ('<function(search)>{"q": "x"}</function>', None),
    ('[TOOL_CALLS]search{"q": "x"}', None),
    ('Sure.[TOOL_CALLS]search[ARGS]{"q": "x"}</s>', "Sure."),
    ('[TOOL_CALLS]search[CALL_ID]123456789[ARGS]{"q": "x"}', None),
    (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": {"q": "x"}}]<|END_ACTION|>',
        None,
    ),
    ('<|action_start|><|plugin|>{"name": "search", "parameters": {"q": "x"}}<|action_end|>', None),
    ('<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "x"}<|call|>', None),
    ('I look.<|start|>assistant<|channel|>commentary to=functions.search<|message|>{"q": "x"}', "I look."),
    ('<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{"q": "x"}', None),
    ('commentary to=functions.search json\n{"q": "x"}', None),
    (f"<|tool_calls_section_begin|>{KIMI}<|tool_calls_section_end|>", None),
    (f"<｜tool▁calls▁begin｜>{DEEPSEEK}<｜tool▁calls▁end｜>", None),
    ('<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{"q": "x"}<｜tool▁call▁end｜>', None),
    ('```tool_call\n{"name": "search", "arguments": {"q": "x"}}\n```', None),
    ('✿FUNCTION✿: search\n✿ARGS✿: {"q": "x"}', None),
]


@tool
def search(q: str) -> str:
    """Searches."""
    return f"found {q}"


@pytest.mark.parametrize(("text", "before"), READABLE)
def test_it_is_recovered(text: str, before: str | None):
    assert written_calls(text, TOOLS) == WrittenCalls((RawToolCall("search", {"q": "x"}),), before)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "tool_use", "name": "search"}',
        '{"type": "function", "function": {"name": "search"}}',
        '{"type": "tool_use", "name": "search", "input": null}',
        '{"name": "search", "arguments": null}',
        '{"name": "search", "arguments": ""}',
        '<tool_call>{"name": "search"}</tool_call>',
        '<tool_call>{"name": "search", "arguments": {}}</tool_call>',
        "[TOOL_CALLS]search{}",
    ],
)
def test_no_arguments_are_an_empty_object(text: str):
    assert written_calls(text, TOOLS) == WrittenCalls((RawToolCall("search", {}),))


@pytest.mark.parametrize("arguments", ["[]", "[1]", "5"])
def test_arguments_of_another_shape_are_left_to_who_reads_calls(arguments: str):
    found = written_calls(f'<tool_call>{{"name": "search", "arguments": {arguments}}}</tool_call>', TOOLS)
    assert found == WrittenCalls((RawToolCall("search", arguments),))


@pytest.mark.parametrize(
    "text",
    [
        KIMI + '<|tool_call_begin|>functions.multiply:1<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>',
        DEEPSEEK + "\n" + DEEPSEEK.replace("search", "multiply").replace('"q": "x"', '"a": 1'),
        '[TOOL_CALLS]search[ARGS]{"q": "x"}[TOOL_CALLS]multiply[ARGS]{"a": 1}',
        '<function=search>{"q": "x"}</function>\n<function=multiply>{"a": 1}</function>',
    ],
)
def test_several_whose_tools_the_markup_names(text: str):
    assert written_calls(text, TOOLS) == WrittenCalls(
        (RawToolCall("search", {"q": "x"}), RawToolCall("multiply", {"a": 1}))
    )


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
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{"q": ',
        '<invoke name="search">\n<parameter name="q">x</parameter>\n</invoke>',
        '<minimax:tool_call>\n<invoke name="search">\n<parameter name="q">x</parameter>\n</invoke>\n</minimax:tool_call>',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">\n<｜DSML｜parameter name="q">x</｜DSML｜parameter>',
        "I look. <tool_call>search\n<arg_key>q</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
        "I look. <tool_call>other\n<arg_key>q</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
        '<tool_call>other {"name": "search", "arguments": {}}</tool_call>',
        '[TOOL_CALLS]search[ARGS]{"q": "x"}{"q": "y"}',
        '[TOOL_CALLS]search[ARGS]{"q": "x"}[TOOL_CALLS]multiply[ARGS]{"a": ',
        '<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": "x',
        '<tools>\n{"name": "search", "arguments": {"q": "x"}}\n</tools>',
        '>>>search\n{"q": "x"}',
        '[search(q="x")]',
        '<tool>search(q="x")</tool>',
        '<useTool name="search"><param>x</param></useTool>',
        "<function=search>\n</function>",
        'Here:\n```tool_code\nprint(search(q="x"))\n```',
        '```tool_code\nfound = search(q="x")\nprint(found)\n```',
        '{"type": "tool_use", "id": "t", "name": "search", "input": {"q": "x',
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
        "<tool_call> opens a call, and you can search for it.",
        "The tag <invoke name=...> opens a call; so does <|channel|>. I search for more.",
        '```xml\n<invoke name="search">\n</invoke>\n```',
        "```tool_code\nprint(42)\n```\nThat is `search`.",
        "<tooltip>All that you can search for</tooltip>",
        '<input type="search" class="toolbar">',
        "It returns List<ToolCall> and no search.",
        "search (noun): the act of looking for something (or somebody)",
        "f(search) = [1]",
        'search(q="x")',
        "search()",
        "I used <tool_name>search</tool_name> and found 3.",
        '<Tooltip title="search"><Icon/></Tooltip>',
        '<el-tooltip content="search" placement="top">',
        "<toolbar>search</toolbar>",
        '<QToolBar name="search">',
        "<ToolBar>search {</ToolBar>",
        "<function>search</function>",
        '<tools><tool name="search"/></tools>',
        '<tools>\n<tool name="search">finds things</tool>\n</tools>',
        '<functions>\n<function name="other">\n</function>\n</functions>',
        'Use <invoke method="search"> in the XML.',
        ">>>search(1, 2)",
        ">>>search",
        '{"name": "search"}',
        '{"id": 3, "name": "search"}',
        '{"name": "search", "type": "language"}',
        '{"name": "search", "input": "x"}',
        '{"action": "search", "input": null}',
        '[{"name": "search"}, {"name": "multiply"}]',
        'Results:\n{"name": "search", "index": 1}',
        'Entries:\n{"name": "search", "version": 3.12, "note": unquoted}',
        '{"name": "search", "tool": "multiply"}',
        '{"name": "search", "args": {}, "input": {}}',
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


class Pair(BaseModel):
    tool: str
    input: str = ""


class Anything(BaseModel):
    note: str = ""


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (Pair, '{"tool": "search", "input": "x"}'),
        (Pair, '```json\n{"tool": "search", "input": "x"}\n```'),
        (Pair, '{"tool": "other", "input": "<tool_call>{}</tool_call>"}'),
        (list[Pair], '[{"tool": "search", "input": "{}"}, {"tool": "search"}]'),
        (list[str], '["<tool_call>"]'),
        (str, '[{"name": "search"}, {"name": "search"}]'),
    ],
)
def test_what_fits_the_output_is_the_answer(output: type[object], answer: str):
    """case-037"""
    agent = Agent("Answer.", tools=[search], output_schema=output, model=ScriptedModel([say(answer)]))
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.usage.tool_calls) == (OutputSchema(output).of_text(answer), 0)


@pytest.mark.parametrize("output", [Pair, Anything, dict[str, object], str | None, None])
@pytest.mark.parametrize("markup", ["", "<tool_call>"])
def test_a_call_is_no_answer_for_that_anything_fits(output: type[object], markup: str):
    program = Agent("Answer.", tools=[search], output_schema=output, model=ScriptedModel([])).program()
    assert isinstance(program.dialect.read(say(f"{markup}{json.dumps(SEARCH)}"), program, ASKING), Calls)


@pytest.mark.parametrize(
    "unit",
    [
        "<tool>{",
        "<tool>[",
        "<tool>",
        "<Tooltip>{x: 'a\n",
        '<|tool|>{"a":',
        "\n>>>a{",
        "x <tool_call> search, ",
        "x [TOOL_CALLS] a, ",
        '<tool>{"name":"search","arguments":{},"z":1}',
        '<tool>{"name":"search","arguments":{},"z":"',
        "<tool_call>{'name': 'search', 'arguments': {}}</tool_call>",
        '{"name": "search", "arguments": ',
    ],
)
def test_no_text_takes_long(unit: str):
    begun = time.process_time()
    written_calls(unit * (200_000 // len(unit)), TOOLS)
    assert time.process_time() - begun < 2


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


@pytest.mark.parametrize("text", [text for text, _ in READABLE])
def test_markup_that_was_cut_is_read_whole_or_not_at_all(text: str):
    """case-005"""
    for cut in range(len(text)):
        found = written_calls(text[:cut], TOOLS)
        assert found is None or found.calls in ((), (RawToolCall("search", {"q": "x"}),)), text[:cut]
