"""The step machine: what is decided, and what a reply means."""

from decimal import Decimal
from typing import Any

import pytest

from agent.agent import Agent
from agent.budget import Budget, Elapsed, Usage
from agent.events import (
    ModelReplied,
    ReplyRejected,
    RunBudgetExceeded,
    RunCompleted,
    RunFailed,
    ToolReturned,
)
from agent.intents import AskModel, Ended, Happen, Hold
from agent.messages import ToolCall
from agent.models.base import ModelReply, Price, RawToolCall
from agent.models.scripted import ScriptedModel, call, calls, say, with_usage
from agent.outcomes import RESULT_LIMIT, completed
from agent.step import budget_note
from agent.tools import tool
from tests.support.engine import assert_valid
from tests.support.stepping import AT_ONCE, Answer, answers, asked, ended, next_of, program, replied, start, started


def test_a_step_is_a_reply_and_the_tool_calls_that_it_asks_for():
    state, machine = start(), program()
    first = asked(state, machine)
    assert (first.asking.step, first.asking.attempt, first.asking.last) == (1, 1, False)
    replied(state, machine, call("read"))
    assert started(state, machine) == ["1.0"]
    assert next_of(state, machine) == Hold()
    ended(state, machine, "1.0")
    assert asked(state, machine).asking.step == 2


def test_a_text_is_the_answer_of_an_agent_without_a_typed_output():
    state, machine = start(), program()
    *_, end = replied(state, machine, say("42"))
    assert end == RunCompleted(output="42")
    assert next_of(state, machine) == Ended("completed")


def test_a_text_that_fits_the_typed_output_is_the_answer_and_another_is_sent_back():
    state, machine = start(), program(Answer)
    *_, rejected = replied(state, machine, say("forty-two"))
    assert isinstance(rejected, ReplyRejected)
    assert rejected.reason == "invalid_output"
    assert "terminate" in rejected.message
    *_, end = replied(state, machine, say('```json\n{"value": 42}\n```'))
    assert end == RunCompleted(output={"value": 42})


def test_a_text_is_no_answer_where_a_tool_of_the_agent_is_the_exit():
    @tool(terminal=True)
    def finish(answer: str) -> str:
        """Finishes."""
        return answer

    state = start()
    machine = Agent("Do it.", tools=[finish], model=ScriptedModel([])).program()
    *_, rejected = replied(state, machine, say("42"))
    assert isinstance(rejected, ReplyRejected)
    assert "`finish`" in rejected.message


def test_calls_run_at_once_up_to_the_limit_and_a_free_place_is_taken():
    state, machine = start(), program(parallel=2)
    replied(state, machine, calls(call("read"), call("index"), call("read"), call("read")))
    assert started(state, machine) == ["1.0", "1.1"]
    assert started(state, machine) == []
    ended(state, machine, "1.1")
    assert started(state, machine) == ["1.2"]


def test_a_tool_that_is_not_parallel_runs_alone():
    state, machine = start(), program()
    replied(state, machine, calls(call("read"), call("pay"), call("read"), call("read")))
    assert started(state, machine) == ["1.0"]
    ended(state, machine, "1.0")
    assert started(state, machine) == ["1.1"]
    assert started(state, machine) == []
    ended(state, machine, "1.1")
    assert started(state, machine) == ["1.2", "1.3"]


def test_the_exit_is_executed_last_and_alone():
    state, machine = start(), program()
    replied(state, machine, calls(call("terminate", result="x"), call("read"), call("read")))
    assert started(state, machine) == ["1.1", "1.2"]
    ended(state, machine, "1.2")
    assert started(state, machine) == []
    ended(state, machine, "1.1")
    assert started(state, machine) == ["1.0"]
    *_, end = ended(state, machine, "1.0", "x")
    assert end == RunCompleted(output="x")
    assert_valid(state.messages())


def test_an_unknown_tool_is_named_to_the_model_and_executes_nothing():
    state, machine = start(), program()
    _, returned = replied(state, machine, call("rm_rf"))
    assert isinstance(returned, ToolReturned)
    assert returned.outcome == "invalid"
    assert returned.content.startswith("Tool 'rm_rf' not found. The tools are: index, launch, pay")
    assert state.head.usage.tool_calls == 0
    assert isinstance(next_of(state, machine), AskModel)


def test_unusable_arguments_are_answered_beside_calls_that_are_fine():
    state, machine = start(), program()
    raw = ModelReply(tool_calls=[RawToolCall("read", "{bad", "a"), RawToolCall("index", "{}", "b")])
    assert answers(replied(state, machine, raw)) == [("1.0", "invalid")]
    assert started(state, machine) == ["1.1"]


def test_arguments_that_the_output_limit_cut_are_never_executed():
    """case-005"""
    state, machine = start(), program()
    cut = ModelReply(tool_calls=[RawToolCall("pay", '{"amount": 1', "a")], finish_reason="length")
    for step in range(1, 5):
        assert answers(replied(state, machine, cut)) == [(f"{step}.0", "cut_off")]
    finish = next_of(state, machine)
    assert isinstance(finish, Happen)
    assert isinstance(finish.events[0], RunFailed)
    assert finish.events[0].reason == "cut_off"


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_empty_replies_are_asked_again_a_few_times_and_then_a_failure_of_their_own(content: str | None):
    """case-020"""
    state, machine = start(), program()
    empty = ModelReply(content=content, finish_reason="stop")
    for _ in range(4):
        events = replied(state, machine, empty)
        assert [type(event) for event in events] == [ModelReplied, ReplyRejected]
    assert all(message.content for message in state.history)
    finish = next_of(state, machine)
    assert isinstance(finish, Happen)
    assert isinstance(finish.events[0], RunFailed)
    assert finish.events[0].reason == "empty_reply"
    assert state.head.usage.model_calls == 4


def test_the_budget_bounds_empty_replies_too():
    """case-020"""
    state, machine = start(Budget(max_steps=2)), program()
    replied(state, machine, ModelReply())
    replied(state, machine, ModelReply())
    finish = next_of(state, machine)
    assert isinstance(finish, Happen)
    assert isinstance(finish.events[0], RunBudgetExceeded)


@pytest.mark.parametrize("output", [str, Answer])
def test_a_refusal_ends_the_run_at_once(output: type[Any]):
    """case-032"""
    state, machine = start(), program(output)
    _, end = replied(state, machine, ModelReply(refusal="I can't help with that.", finish_reason="stop"))
    assert end == RunFailed(
        reason="refused", error="the model declined: I can't help with that.", partial="I can't help with that."
    )


def test_a_reply_that_the_server_broke_off_is_no_answer():
    """case-018"""
    state, machine = start(), program()
    _, rejected = replied(state, machine, ModelReply(content="The answer is", finish_reason="network_error"))
    assert isinstance(rejected, ReplyRejected)
    assert [message.content for message in state.history][1] == "The answer is"


def test_calls_over_the_budget_are_answered_and_not_executed():
    state, machine = start(Budget(max_tool_calls=1)), program()
    events = replied(state, machine, calls(call("read"), call("read"), call("terminate", result="x")))
    assert answers(events) == [("1.1", "over_budget")]
    assert started(state, machine) == ["1.0"]
    ended(state, machine, "1.0")
    assert started(state, machine) == ["1.2"]


def test_calls_that_execute_nothing_use_no_budget():
    state, machine = start(Budget(max_tool_calls=1)), program()
    assert answers(replied(state, machine, calls(call("nothing"), call("read")))) == [("1.0", "invalid")]
    assert started(state, machine) == ["1.1"]


def test_with_the_tool_calls_used_up_only_the_exit_is_offered():
    state, machine = start(Budget(max_tool_calls=0)), program()
    assert asked(state, machine).asking.last
    request = machine.dialect.request(machine, state.history, asked(state, machine).asking)
    assert [offered.name for offered in request.tools] == ["terminate"]
    assert request.tool_choice == "terminate"


def test_an_answer_that_went_over_a_limit_is_kept():
    """case-107"""
    state, machine = start(Budget(max_total_tokens=1000)), program()
    *_, end = replied(state, machine, with_usage(say("42"), input_tokens=600, output_tokens=600))
    assert end == RunCompleted(output="42")
    assert state.head.usage.total_tokens == 1200


def test_a_limit_ends_the_run_with_what_there_is_of_an_answer():
    state, machine = start(Budget(max_steps=1)), program()
    replied(state, machine, ModelReply(content="So far: 41", tool_calls=[RawToolCall("read", "{}", "a")]))
    started(state, machine)
    ended(state, machine, "1.0")
    assert next_of(state, machine) == Happen(
        (RunBudgetExceeded(limit="max_steps", used="1", allowed="1", partial="So far: 41"),)
    )


def test_a_money_limit_without_a_price_ends_the_run():
    """case-114"""
    state, machine = start(Budget(max_cost_usd=Decimal(1))), program()
    finish = next_of(state, machine)
    assert isinstance(finish, Happen)
    assert isinstance(finish.events[0], RunFailed)
    assert (finish.events[0].reason, "no price is known for scripted" in finish.events[0].error) == (
        "unknown_price",
        True,
    )
    free = program(model=ScriptedModel([], price=Price(Decimal(0), Decimal(0))))
    assert asked(state, free).reservation.cost_nanousd == 0


def test_the_model_is_told_what_is_left_once_it_gets_low():
    state = start(Budget(max_steps=10, max_output_tokens=1_000_000, max_active_seconds=100))
    assert budget_note(state, AT_ONCE) is None
    state.head.step = 9
    state.head.usage = Usage(output_tokens=876_544)
    assert budget_note(state, Elapsed(active_ms=90_500, wall_ms=0)) == (
        "[Budget left: 1 steps, 123456 output tokens, 9.5 active seconds. Come to an end before it is used up.]"
    )


def test_an_attempt_takes_no_longer_than_the_time_that_is_left():
    state, machine = start(Budget(max_active_seconds=10, max_wall_seconds=60)), program(model_timeout=30.0)
    assert asked(state, machine).asking.timeout == 10
    assert asked(state, machine, Elapsed(active_ms=4000, wall_ms=57_000)).asking.timeout == 3


def test_estimates_are_corrected_by_what_the_server_reports():
    state, machine = start(), program()
    before = asked(state, machine)
    assert before.reservation.input_tokens == before.request_tokens
    reply = with_usage(call("read"), input_tokens=before.request_tokens * 2, output_tokens=1)
    replied(state, machine, reply)
    started(state, machine)
    ended(state, machine, "1.0")
    after = asked(state, machine)
    assert after.reservation.input_tokens == after.request_tokens * 2


def test_usage_that_was_not_reported_is_estimated_and_marked():
    """case-023"""
    state, machine = start(), program()
    reserved = asked(state, machine).reservation
    replied(state, machine, call("read"))
    usage = state.head.usage
    assert usage.input_tokens == reserved.input_tokens
    assert usage.output_tokens > 0
    assert usage.estimated_tokens == usage.total_tokens
    assert usage.unpriced_calls == 1


def test_what_the_server_says_it_charged_is_the_cost():
    state, machine = start(), program()
    replied(state, machine, ModelReply(content="42", cost=77))
    assert (state.head.usage.cost_nanousd, state.head.usage.unpriced_calls) == (77, 0)


def test_ids_that_a_server_counts_anew_in_every_reply_stay_apart():
    """case-009"""
    state, machine = start(), program()
    for step in (1, 2, 3):
        raw = [RawToolCall("read", "{}", f"call_{index}") for index in range(2)]
        replied(state, machine, ModelReply(tool_calls=raw))
        started(state, machine)
        ended(state, machine, f"{step}.0")
        ended(state, machine, f"{step}.1")
    assert_valid(state.history)


def test_equal_calls_stay_two_calls():
    """case-138"""
    state, machine = start(), program()
    raw = ModelReply(tool_calls=[RawToolCall("read", "{}", "c1"), RawToolCall("read", "{}", "c2")])
    replied(state, machine, raw)
    assert started(state, machine) == ["1.0", "1.1"]


def test_a_result_beyond_the_limit_is_a_failure_that_says_so():
    end = completed("x" * (RESULT_LIMIT + 1))
    assert isinstance(end, RunFailed)
    assert end.reason == "result_too_large"
    assert completed("x") == RunCompleted(output="x")


def test_a_reply_keeps_what_the_server_said():
    state, machine = start(), program()
    reply = ModelReply(
        content="Let me see. \ud83d",
        tool_calls=[RawToolCall("pay", {"amount": 2}, "c1")],
        finish_reason="tool_calls",
        reasoning="hm \ud800",
        model="gpt-4o-2024",
        provider_fields={"signature": "s"},
    )
    (event,) = replied(state, machine, reply)
    assert isinstance(event, ModelReplied)
    assert event.calls == (ToolCall(id="c1", name="pay", arguments='{"amount":2}'),)
    assert (event.content, event.reasoning, event.model) == ("Let me see. \ufffd", "hm \ufffd", "gpt-4o-2024")
    assert state.exchange is not None
    assert state.exchange.reply.provider_fields == {"signature": "s"}
