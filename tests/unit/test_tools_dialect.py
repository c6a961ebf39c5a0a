"""What a reply means, in every dialect: what was thought is never done or shown, and half a turn is no answer."""

import pytest

from agent.agent import Agent
from agent.dialects.base import Asking, Calls, Final, Reading, Unusable
from agent.dialects.tools import MALFORMED, NOT_CALLED, UNFINISHED
from agent.events import ReplyRejected
from agent.models.base import ModelReply, RawToolCall
from agent.models.scripted import ScriptedModel, say
from agent.tools import tool
from tests.support import virtual_time


@tool
def search(q: str = "") -> str:
    """Searches."""
    return f"found {q}"


DIALECTS = ("tools", "json", "react")
PROGRAMS = {name: Agent("Go.", tools=[search], model=ScriptedModel([]), dialect=name).program() for name in DIALECTS}
ASKED = {
    "tools": '<tool_call>{"name": "search", "arguments": {"q": "x"}}</tool_call>',
    "json": '{"tool": "search", "arguments": {"q": "x"}}',
    "react": 'Action: search\nAction Input: {"q": "x"}',
}
ANSWERED = {"tools": "42", "json": '{"tool": "terminate", "arguments": {"result": "42"}}', "react": "Final Answer: 42"}


def read(
    content: str | None, finish_reason: str | None = "stop", *, dialect: str = "tools", last: bool = False
) -> Reading:
    program = PROGRAMS[dialect]
    asking = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10, last=last)
    return program.dialect.read(ModelReply(content=content, finish_reason=finish_reason), program, asking)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("opening", ["<think>", "<thinking>\n", "", "<|channel|>analysis<|message|>"])
def test_what_was_thought_is_neither_done_nor_shown(dialect: str, opening: str):
    closing = "<|end|>" if opening.startswith("<|") else opening.strip().replace("<", "</") or "</think>"
    thought = f"{opening}I could call\n{ASKED[dialect].replace('x', 'rm')}\nbut no.\n{closing}\n"
    assert read(thought + ANSWERED[dialect], dialect=dialect) == read(ANSWERED[dialect], dialect=dialect)
    assert read(thought + ASKED[dialect], dialect=dialect) == read(ASKED[dialect], dialect=dialect)
    alone = read(thought, dialect=dialect)
    assert isinstance(alone, Unusable)
    assert (alone.reason, alone.text) == ("empty_reply", None)
    if opening:
        assert isinstance(read(thought.partition(closing)[0], dialect=dialect), Unusable)


def test_thoughts_beside_calls_are_no_part_of_what_was_said():
    program = PROGRAMS["tools"]
    asking = Asking(run_id="r1", step=1, attempt=1, max_tokens=100, timeout=10)
    for content, text in (("<think>hm</think>I look.", "I look."), ("<think>hm</think>", None)):
        reply = ModelReply(content=content, tool_calls=(RawToolCall("search", "{}", "c1"),))
        reading = program.dialect.read(reply, program, asking)
        assert isinstance(reading, Calls)
        assert reading.text == text


def test_a_typed_answer_behind_thoughts():
    agent = Agent("Go.", output_schema=int, model=ScriptedModel([say("<think>secret plan</think>\n\n42<|im_end|>")]))
    assert virtual_time.run(agent.run("go")).output == 42


@pytest.mark.parametrize("content", ["\u200b", "<|im_end|>", "<|eot_id|>", "</s>", "<think></think>", "\ufeff"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_holds_no_words_is_empty(content: str, dialect: str):
    """case-020"""
    reading = read(content, dialect=dialect)
    assert isinstance(reading, Unusable)
    assert reading.reason == "empty_reply"


@pytest.mark.parametrize("finish_reason", ["pause_turn", "incomplete", "OTHER", "brand_new_reason"])
def test_a_turn_of_which_nobody_knows_that_it_is_finished_goes_on(finish_reason: str):
    """case-017"""
    assert read("Working on it", finish_reason) == Unusable("unusable_reply", UNFINISHED, "Working on it")
    text = "Final Answer: Working on it"
    assert read(text, finish_reason, dialect="react") == Unusable("unusable_reply", UNFINISHED, text)


@pytest.mark.parametrize("finish_reason", ["brand_new_reason", "partial", "tool_calls"])
def test_a_word_that_may_end_every_turn_is_asked_about_once(finish_reason: str):
    """vLLM says "tool_calls" of every text where calls are required."""
    reply = ModelReply(content="42", finish_reason=finish_reason)
    agent = Agent("Go.", tools=[search], model=ScriptedModel([reply, reply]))
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.steps) == ("42", 2)
    paused = ModelReply(content="Working on it", finish_reason="pause_turn")
    agent = Agent("Go.", tools=[search], model=ScriptedModel([paused, paused, paused, say("42")]))
    assert virtual_time.run(agent.run("go")).output == "42"


@pytest.mark.parametrize("finish_reason", ["tool_calls", "tool_use"])
def test_a_call_that_was_announced_and_did_not_come(finish_reason: str):
    assert read("I will look that up.", finish_reason) == Unusable("unusable_reply", NOT_CALLED, "I will look that up.")


@pytest.mark.parametrize("finish_reason", ["max_new_tokens", "context_length_exceeded", "length"])
def test_half_a_text_is_no_answer(finish_reason: str):
    reading = read("The report: first half of", finish_reason)
    assert isinstance(reading, Unusable)
    assert reading.reason == "cut_off"


@pytest.mark.parametrize("finish_reason", ["upstream_error", "function_call_filter: UNEXPECTED_TOOL_CALL"])
def test_what_went_wrong_at_the_server_is_no_answer(finish_reason: str):
    for last in (False, True):
        assert isinstance(read("Half a", finish_reason, last=last), Unusable)


@pytest.mark.parametrize("finish_reason", ["pause_turn", "tool_calls", "max_new_tokens"])
def test_at_the_last_reply_a_text_is_the_best_there_is(finish_reason: str):
    assert read("So far: 41", finish_reason, last=True) == Final("So far: 41", answer="So far: 41")
    text = "Final Answer: 41"
    assert read(text, finish_reason, dialect="react", last=True) == Final(text, answer="41")


@pytest.mark.parametrize("finish_reason", ["tool_calls", "length", "pause_turn", "stop"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_call_counts_however_the_turn_ended(finish_reason: str, dialect: str):
    reading = read(ASKED[dialect], finish_reason, dialect=dialect)
    assert isinstance(reading, Calls)
    assert [call.arguments for call in reading.calls] == ['{"q":"x"}']


def test_half_a_call_is_named_by_what_cut_it():
    half = '<tool_call>{"name": "search", "arguments": {"q": "x'
    cut, malformed = read(half, "length"), read(half, "tool_calls")
    assert isinstance(cut, Unusable)
    assert cut.reason == "cut_off"
    assert malformed == Unusable("unusable_reply", MALFORMED, half)
    assert isinstance(read(half, "length", last=True), Unusable)


def test_a_paused_turn_goes_on():
    """case-017"""
    paused = ModelReply(content="Working on it", finish_reason="pause_turn")
    agent = Agent("Go.", tools=[search], model=ScriptedModel([paused, say("42")]))
    result = virtual_time.run(agent.run("go"))
    assert result.output == "42"
    assert [one.event.message for one in result.events if isinstance(one.event, ReplyRejected)] == [UNFINISHED]
