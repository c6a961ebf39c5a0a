"""The step machine: failed attempts, lost workers, calls in doubt and cancels."""

import pytest

from agent.budget import Budget, Usage
from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.events import (
    Event,
    ModelFailed,
    RunBudgetExceeded,
    RunFailed,
    RunResumed,
)
from agent.intents import Ended, Happen
from agent.messages import INTERRUPTED
from agent.models.scripted import call, calls
from agent.outcomes import cancel_events, doubtful, lost_call_events
from agent.program import Program
from agent.state import Mark, RunState
from tests.support.engine import assert_valid
from tests.support.stepping import answers, apply, asked, ended, failed, next_of, program, read, replied, start, started


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
    [(2, 2000), (0.5, 500), (0, 325), (-5, 325), (86_400, 3_600_000), (float("inf"), 3_600_000), (float("nan"), 325)],
)
def test_the_server_says_when_to_come_back(seconds: float, milliseconds: int):
    """case-024: later than the own wait, never sooner."""
    assert retry_ms(ModelUnavailable("busy", retry_after=seconds), jitter=0.3) == milliseconds


@pytest.mark.parametrize("retry_after", [None, 0.0, -5.0])
def test_the_attempts_at_a_rate_limit_last_longer_than_a_minute(retry_after: float | None):
    """Most limits are by the minute; how long the first waits are does not matter to those."""
    busy = ModelUnavailable("busy", status=429, retry_after=retry_after)
    for jitter, sooner in ((0.0, 500), (1.0, 1000)):
        state, machine = start(), program()
        events = [failed(state, machine, busy, jitter)[0] for _ in range(machine.max_attempts)]
        waits = [event.retry_ms for event in events if isinstance(event, ModelFailed)]
        assert waits[0] == sooner
        assert waits[-1] is None
        assert sum(wait or 0 for wait in waits) > 60_000
        assert max(wait or 0 for wait in waits) <= 60_000


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
    assert isinstance(finish, Happen)
    assert finish.events[0] == RunBudgetExceeded(limit="max_model_calls", used="2", allowed="2")


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
