"""The step machine: what is decided, and what an outcome means."""

import ast
import inspect
from collections.abc import Sequence
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

import agent.budget
import agent.dialects.calls
import agent.dialects.json
import agent.dialects.tools
import agent.state
import agent.step
from agent.agent import Agent
from agent.budget import Budget, Elapsed, Usage
from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.events import (
    Event,
    ModelFailed,
    ModelReplied,
    Recorded,
    ReplyRejected,
    RunBudgetExceeded,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunResumed,
    ToolReturned,
)
from agent.messages import INTERRUPTED, ToolCall
from agent.models.base import ModelReply, Price, RawToolCall
from agent.models.scripted import ScriptedModel, call, calls, say, with_usage
from agent.program import Program
from agent.state import Mark, RunState
from agent.step import (
    RESULT_LIMIT,
    AskModel,
    Ended,
    Finish,
    Hold,
    StartTools,
    budget_note,
    cancel_events,
    completed,
    decide,
    doubtful,
    failure_events,
    lost_call_events,
    reply_events,
    tool_events,
)
from agent.tools import tool
from tests.support.engine import assert_valid, folded

AT_ONCE = Elapsed(active_ms=0, wall_ms=0)


@tool
def read() -> str:
    """Reads."""
    return "read"


@tool(idempotent=True)
def index() -> str:
    """Indexes."""
    return "indexed"


@tool(parallel=False)
def pay(amount: int = 1) -> str:
    """Pays."""
    return "paid"


@tool(on_unknown="retry")
def ping() -> str:
    """Pings."""
    return "pong"


@tool(on_unknown="fail")
def launch() -> str:
    """Launches."""
    return "launched"


class Answer(BaseModel):
    """A typed result."""

    value: int


def program(output: type[Any] = str, **options: Any) -> Program:
    defaults: dict[str, Any] = {"model": ScriptedModel([]), "tools": [read, index, pay, ping, launch]}
    return Agent("Do it.", output_schema=output, **defaults | options).program()


def start(budget: Budget | None = None) -> RunState:
    return folded([RunCreated(agent="a", task="go", budget=budget or Budget())])


def next_of(state: RunState, machine: Program, elapsed: Elapsed = AT_ONCE) -> object:
    return decide(state, machine, "r1", elapsed)


def asked(state: RunState, machine: Program, elapsed: Elapsed = AT_ONCE) -> AskModel:
    intent = next_of(state, machine, elapsed)
    assert isinstance(intent, AskModel), intent
    return intent


def apply(state: RunState, events: Sequence[Event]) -> None:
    for event in events:
        state.apply(Recorded(seq=state.head.seq + 1, at=0, event=event))


def replied(state: RunState, machine: Program, reply: ModelReply) -> list[Event]:
    events = reply_events(state, machine, asked(state, machine), reply, ms=0, active_ms=0)
    apply(state, events)
    return events


def failed(state: RunState, machine: Program, error: ModelError, jitter: float = 0.0) -> list[Event]:
    events = failure_events(state, machine, asked(state, machine), error, jitter=jitter, ms=0, active_ms=0)
    apply(state, events)
    return events


def started(state: RunState, machine: Program) -> list[str]:
    """The calls that start now."""
    intent = next_of(state, machine)
    if not isinstance(intent, StartTools):
        return []
    for open_call in intent.calls:
        open_call.mark = Mark.STARTED
    return [open_call.key for open_call in intent.calls]


def ended(state: RunState, machine: Program, key: str, result: object = "done") -> list[Event]:
    assert state.exchange is not None
    events = tool_events(machine, state.exchange.calls[key], "ok", str(result), result=result, ms=0, active_ms=0)
    apply(state, events)
    return events


def answers(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.call, event.outcome) for event in events if isinstance(event, ToolReturned)]


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
    assert isinstance(finish, Finish)
    assert isinstance(finish.event, RunFailed)
    assert finish.event.reason == "cut_off"


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
    assert isinstance(finish, Finish)
    assert isinstance(finish.event, RunFailed)
    assert finish.event.reason == "empty_reply"
    assert state.head.usage.model_calls == 4


def test_the_budget_bounds_empty_replies_too():
    """case-020"""
    state, machine = start(Budget(max_steps=2)), program()
    replied(state, machine, ModelReply())
    replied(state, machine, ModelReply())
    finish = next_of(state, machine)
    assert isinstance(finish, Finish)
    assert isinstance(finish.event, RunBudgetExceeded)


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
    assert next_of(state, machine) == Finish(
        RunBudgetExceeded(limit="max_steps", used="1", allowed="1", partial="So far: 41")
    )


def test_a_money_limit_without_a_price_ends_the_run():
    """case-114"""
    state, machine = start(Budget(max_cost_usd=Decimal(1))), program()
    finish = next_of(state, machine)
    assert isinstance(finish, Finish)
    assert isinstance(finish.event, RunFailed)
    assert (finish.event.reason, "no price is known for scripted" in finish.event.error) == ("unknown_price", True)
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


def test_attempts_wait_twice_as_long_each_time_and_end():
    state, machine = start(), program(max_attempts=4)
    events = [event for _ in range(4) for event in failed(state, machine, ModelUnavailable("busy"))]
    waits = [event.retry_ms for event in events if isinstance(event, ModelFailed)]
    assert waits == [250, 500, 1000, None]
    assert state.head.ended == "failed"


def retry_ms(error: ModelError, jitter: float = 0.0) -> int | None:
    event = failed(start(), program(), error, jitter)[0]
    assert isinstance(event, ModelFailed)
    return event.retry_ms


def test_waits_are_spread_and_bounded():
    assert retry_ms(ModelUnavailable("busy"), jitter=1.0) == 500
    state, machine = start(), program(max_attempts=50)
    last = [failed(state, machine, ModelUnavailable("busy"), jitter=1.0)[0] for _ in range(40)][-1]
    assert isinstance(last, ModelFailed)
    assert last.retry_ms == 30_000


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(2, 2000), (0.5, 500), (0, 0), (-5, 0), (86_400, 3_600_000), (float("inf"), 3_600_000)],
)
def test_the_server_says_when_to_come_back(seconds: float, milliseconds: int):
    """case-024"""
    assert retry_ms(ModelUnavailable("busy", retry_after=seconds), jitter=0.3) == milliseconds


def test_a_request_that_is_refused_is_not_sent_again():
    state, machine = start(), program()
    first, end = failed(state, machine, ModelRefusedRequest("no such model", status=404))
    assert isinstance(first, ModelFailed)
    assert (first.retry_ms, first.usage) == (None, Usage())
    assert isinstance(end, RunFailed)
    assert end.reason == "model_refused_request"


def test_what_may_be_billed_is_charged_as_reserved():
    state, machine = start(), program()
    reserved = asked(state, machine).reservation
    failed(state, machine, ModelUnavailable("cut", billed=True))
    assert state.head.usage == reserved.as_usage()
    assert asked(state, machine).asking.attempt == 2
    apply(state, lost_call_events(state, reserved, active_ms=0))
    assert state.head.usage.model_calls == 2


def test_failed_attempts_that_are_billed_end_a_run_at_its_limit():
    """case-109"""
    state, machine = start(Budget(max_model_calls=2)), program()
    for _ in range(2):
        failed(state, machine, ModelUnavailable("cut", billed=True))
    finish = next_of(state, machine)
    assert isinstance(finish, Finish)
    assert finish.event == RunBudgetExceeded(limit="max_model_calls", used="2", allowed="2")


def in_doubt(name: str) -> tuple[RunState, Program, list[Event], list[str]]:
    """A call that had started when its worker was lost, and one that was only planned."""
    state, machine = start(), program()
    replied(state, machine, calls(call(name), call("read")))
    assert state.exchange is not None
    state.exchange.calls["1.0"].mark = Mark.DOUBTFUL
    events, again = doubtful(state.exchange, machine, active_ms=0)
    return state, machine, events, [open_call.key for open_call in again]


def test_in_doubt_an_idempotent_tool_is_executed_again_and_so_is_one_that_says_retry():
    for name in ("index", "ping"):
        _, _, events, again = in_doubt(name)
        assert (events, again) == ([], ["1.0"])


def test_in_doubt_the_model_is_told():
    state, machine, events, again = in_doubt("pay")
    assert (answers(events), again) == ([("1.0", "unknown")], [])
    apply(state, events)
    assert started(state, machine) == ["1.1"]
    ended(state, machine, "1.1")
    assert [message.content for message in state.history[2:]] == [INTERRUPTED, "done"]


def test_in_doubt_the_run_fails_where_the_tool_says_so_and_can_be_resumed():
    state, machine, events, again = in_doubt("launch")
    assert (answers(events), again) == ([("1.0", "unknown")], [])
    assert isinstance(events[-1], RunFailed)
    assert events[-1].reason == "outcome_unknown"
    apply(state, [*events, RunResumed()])
    assert started(state, machine) == ["1.1"]


def test_a_tool_that_is_gone_is_in_doubt_like_any_other():
    state, machine = start(), program()
    replied(state, machine, call("pay"))
    assert state.exchange is not None
    state.exchange.calls["1.0"].mark = Mark.DOUBTFUL
    events, _ = doubtful(state.exchange, program(tools=[read]), active_ms=0)
    assert answers(events) == [("1.0", "unknown")]


def test_a_cancelled_run_says_what_was_interrupted_and_what_it_may_have_cost():
    state, machine = start(), program(parallel=1)
    open_call = asked(state, machine)
    events = cancel_events(state, machine, open_call, "user", active_ms=0)
    assert [event.type for event in events] == ["model_failed", "run_cancelled"]
    replied(state, machine, calls(call("read"), call("pay")))
    started(state, machine)
    events = cancel_events(state, machine, None, "user", active_ms=0)
    assert answers(events) == [("1.0", "interrupted")]
    apply(state, events)
    assert next_of(state, machine) == Ended("cancelled")
    assert_valid(state.messages())


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


PURE = [agent.step, agent.state, agent.budget, agent.dialects.calls, agent.dialects.json, agent.dialects.tools]


@pytest.mark.parametrize("module", PURE, ids=lambda module: module.__name__)
def test_the_step_machine_is_pure(module: ModuleType):
    """No await, no clock, no chance, no I/O: neither in a statement nor through an import."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith)
        imported = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in imported:
            assert name.partition(".")[0] in {
                "agent", "collections", "dataclasses", "decimal", "enum", "json", "pydantic", "pydantic_core", "re", "typing",
            }  # fmt: skip
            assert name not in {"agent.driver", "agent.execution", "agent.environment", "agent.agent", "agent.journal"}
        if isinstance(node, ast.Name):
            assert node.id not in {"open", "print", "input", "exec", "eval"}
