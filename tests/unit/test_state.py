"""The fold: a run is what its events say, wherever one begins to read."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent.agent import Agent
from agent.budget import Budget, Elapsed, Usage
from agent.errors import BrokenRecord, ModelRefusedRequest, ModelUnavailable
from agent.events import (
    BudgetChanged,
    Event,
    ModelFailed,
    ModelReplied,
    Outcome,
    Recorded,
    ReplyRejected,
    RunBudgetExceeded,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunReleased,
    RunResumed,
    ToolReturned,
    UnknownEvent,
    decode,
    encode,
)
from agent.intents import AskModel, Ended, Happen, StartTools
from agent.messages import INTERRUPTED, Role, ToolCall
from agent.models.base import ModelReply, RawToolCall
from agent.models.scripted import ScriptedModel
from agent.outcomes import cancel_events, doubtful, failure_events, lost_call_events, reply_events, tool_events
from agent.state import Checkpoint, Mark, RunState
from agent.step import decide
from agent.tools import tool
from tests.support.engine import assert_valid, folded

CREATED = RunCreated(agent="a", task="go", budget=Budget(max_steps=9))
PAIR = ModelReplied(step=1, content="Let me see.", calls=(ToolCall(id="x", name="one"), ToolCall(id="y", name="two")))


def answer(call: str, content: str = "done", outcome: Outcome = "ok") -> ToolReturned:
    return ToolReturned(call=call, name="one", outcome=outcome, content=content)


def test_a_run_begins_with_its_task():
    state = folded([CREATED])
    assert [(message.role, message.content) for message in state.history] == [(Role.USER, "go")]
    assert state.head.budget == Budget(max_steps=9)
    assert state.created == CREATED


def test_an_exchange_enters_the_history_as_a_whole_and_in_the_order_of_its_calls():
    state = folded([CREATED, PAIR, answer("1.1", "second")])
    assert len(state.history) == 1
    assert state.exchange is not None
    assert [open_call.key for open_call in state.exchange.unanswered] == ["1.0"]
    whole = folded([CREATED, PAIR, answer("1.1", "second"), answer("1.0", "first")])
    assert whole.exchange is None
    assert [message.content for message in whole.history] == ["go", "Let me see.", "first", "second"]
    assert_valid(whole.history)


def test_what_a_run_leaves_open_is_told_as_unknown():
    state = folded([CREATED, PAIR, answer("1.0", "first")])
    assert [message.content for message in state.messages()] == ["go", "Let me see.", "first", INTERRUPTED]
    assert_valid(state.messages())


def test_an_empty_reply_leaves_no_message():
    """case-020"""
    state = folded(
        [CREATED, ModelReplied(step=1), ReplyRejected(step=1, reason="empty_reply", message="Your reply was empty.")]
    )
    assert [message.role for message in state.history] == [Role.USER, Role.USER]
    assert (state.head.unusable, state.head.unusable_reason) == (1, "empty_reply")


def test_tokens_of_the_history_are_summed_as_they_come():
    state = folded([CREATED, PAIR, answer("1.0"), answer("1.1", "word " * 200)])
    assert state.conversation.window_tokens > 100
    again = folded([CREATED])
    assert again.conversation.window_tokens < 10


def test_replies_of_which_nothing_was_executed_are_counted_until_one_is():
    refused = [PAIR, answer("1.0", outcome="invalid"), answer("1.1", outcome="cut_off")]
    state = folded([CREATED, *refused])
    assert (state.head.unusable, state.head.unusable_reason) == (1, "cut_off")
    assert state.head.usage.tool_calls == 0
    second = replace(PAIR, step=2)
    state = folded([CREATED, *refused, second, answer("2.0", outcome="invalid"), answer("2.1", outcome="error")])
    assert (state.head.unusable, state.head.unusable_reason) == (0, None)
    assert state.head.usage.tool_calls == 1


def test_usage_and_attempts():
    used = Usage(model_calls=1, input_tokens=10, output_tokens=5)
    failed = ModelFailed(step=1, error="cut", reason="model_unavailable", usage=used, active_ms=70)
    state = folded([CREATED, failed])
    assert (state.head.attempts, state.head.usage.total_tokens, state.head.usage.active_ms) == (1, 15, 70)
    state = folded([CREATED, failed, ModelReplied(step=1, content="hi", usage=used, active_ms=90)])
    assert (state.head.attempts, state.head.usage.total_tokens, state.head.usage.active_ms) == (0, 30, 90)


def test_every_event_moves_the_active_time():
    state = folded([CREATED, RunReleased(why="yield", active_ms=1500)])
    assert state.head.usage.active_ms == 1500


def test_only_reported_tokens_correct_the_estimates():
    reported = ModelReplied(step=1, content="a", usage=Usage(model_calls=1, input_tokens=50), request_tokens=40)
    assert (folded([CREATED, reported]).head.reported_tokens, folded([CREATED, reported]).head.estimated_tokens) == (
        50,
        40,
    )
    estimated = replace(reported, usage=Usage(model_calls=1, input_tokens=50, estimated_tokens=50))
    assert folded([CREATED, estimated]).head.reported_tokens == 0


def test_a_resumed_run_starts_its_counts_anew_and_may_get_other_limits():
    failed = ModelFailed(step=1, error="down", reason="model_unavailable")
    end = RunFailed(reason="model_unavailable", error="down")
    state = folded([CREATED, failed, end])
    assert (state.head.ended, state.head.attempts) == ("failed", 1)
    state = folded([CREATED, failed, end, RunResumed(budget=Budget(max_steps=99))])
    assert (state.head.ended, state.head.attempts, state.head.budget.max_steps) == ("", 0, 99)
    assert folded([CREATED, failed, end, RunResumed()]).head.budget == CREATED.budget


def test_limits_that_were_raised_just_before_the_end_take_the_end_back():
    end = RunBudgetExceeded(limit="max_steps", used="9", allowed="9")
    changed = BudgetChanged(budget=Budget(max_steps=20))
    assert folded([CREATED, end]).head.ended == "budget_exceeded"
    assert folded([CREATED, end, changed]).head.ended == ""
    assert folded([CREATED, RunCompleted(output="x"), changed]).head.ended == "completed"


def test_events_of_later_versions_are_passed_over():
    strange = decode(b'{"type":"run_reincarnated","as":"cat"}')
    assert strange == UnknownEvent(kind="run_reincarnated", data={"as": "cat"})
    assert folded([CREATED, strange, PAIR]).head.seq == 3


@pytest.mark.parametrize(
    "events",
    [
        [CREATED, answer("1.0")],
        [CREATED, PAIR, answer("1.7")],
        [CREATED, PAIR, answer("1.0"), answer("1.0")],
        [CREATED, PAIR, replace(PAIR, step=2)],
    ],
)
def test_events_that_do_not_fit_together_are_a_broken_record(events: list[Event]):
    with pytest.raises(BrokenRecord):
        folded(events)


def test_events_must_be_complete():
    recorded = [Recorded(seq=seq, at=0, event=event) for seq, event in ((1, CREATED), (3, PAIR))]
    with pytest.raises(BrokenRecord, match="event 2 is missing"):
        RunState.restore(Checkpoint(), recorded)
    with pytest.raises(BrokenRecord, match="only 1 are there"):
        RunState.restore(Checkpoint(seq=2), recorded[:1])


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"type":1}', b"\xff", b'{"type":"tool_returned"}', b"null"])
def test_bytes_that_are_no_event_are_a_broken_record(body: bytes):
    with pytest.raises(BrokenRecord):
        decode(body)


def test_a_checkpoint_is_small_and_survives_its_bytes():
    assert Checkpoint().to_bytes() == b"{}"
    head = folded([CREATED, PAIR, answer("1.0", "x" * 10_000)]).head
    assert Checkpoint.of(head.to_bytes()) == head
    assert len(head.to_bytes()) < 200
    unlimited = Checkpoint(budget=Budget(max_steps=None), ended="failed", unusable_reason="cut_off")
    assert Checkpoint.of(unlimited.to_bytes()) == unlimited
    assert Checkpoint.of(b'{"seq":3,"field_of_tomorrow":1}').seq == 3


@pytest.mark.parametrize("data", [b"{", b'{"seq":"x"}', b'{"schema_version":2}'])
def test_a_checkpoint_that_cannot_be_read_is_a_broken_record(data: bytes):
    with pytest.raises(BrokenRecord):
        Checkpoint.of(data)


def test_restoring_leaves_the_checkpoint_alone():
    checkpoint = Checkpoint()
    RunState.restore(checkpoint, [Recorded(seq=1, at=0, event=CREATED)])
    assert checkpoint == Checkpoint()


# What a run can come to, in any order.


@tool(idempotent=True)
def read() -> str:
    """Reads."""
    return "read"


@tool
def write(text: str = "") -> str:
    """Writes."""
    return "written"


@tool(parallel=False, on_unknown="fail")
def pay() -> str:
    """Pays."""
    return "paid"


AGENT = Agent("Do it.", tools=[read, write, pay], model=ScriptedModel([]), parallel=3)
AT_ONCE = Elapsed(active_ms=0, wall_ms=0)

raw_calls = st.builds(
    RawToolCall,
    name=st.sampled_from(["read", "write", "pay", "nothing_like_it", "terminate", None]),
    arguments=st.sampled_from(["{}", "", '{"text":"x"}', '{"result":"x"}', "{", '{"a":1,"a":2}']),
    id=st.sampled_from(["call_0", "call_1", "", None]),
)
replies = st.builds(
    ModelReply,
    content=st.sampled_from([None, "", "I think", "\ud800"]),
    tool_calls=st.lists(raw_calls, max_size=4),
    finish_reason=st.sampled_from(["stop", "length", "tool_calls", "error", "content_filter"]),
    reasoning=st.sampled_from([None, "hm \udfff"]),
)


class AnyRun(RuleBasedStateMachine):
    """A run of any course, with a worker that may be lost at any time."""

    @initialize(steps=st.integers(1, 12), tool_calls=st.none() | st.integers(0, 5))
    def create(self, steps: int, tool_calls: int | None) -> None:
        self.events: list[Event] = []
        self.heads: list[Checkpoint] = [Checkpoint()]
        self.state = RunState()
        self.program = AGENT.program()
        self.happened([RunCreated(agent="a", task="go", budget=Budget(max_steps=steps, max_tool_calls=tool_calls))])

    def happened(self, events: Sequence[Event]) -> None:
        for event in events:
            self.state.apply(Recorded(seq=self.state.head.seq + 1, at=0, event=event))
            self.events.append(decode(encode(event)))
            self.heads.append(Checkpoint.of(self.state.head.to_bytes()))

    def asked(self) -> AskModel | None:
        intent = decide(self.state, self.program, "r1", AT_ONCE)
        return intent if isinstance(intent, AskModel) else None

    def startable(self) -> bool:
        return isinstance(decide(self.state, self.program, "r1", AT_ONCE), StartTools)

    def started(self) -> list[str]:
        calls = self.state.exchange.unanswered if self.state.exchange else ()
        return [open_call.key for open_call in calls if open_call.mark is Mark.STARTED]

    @precondition(lambda self: self.asked() is not None)
    @rule(reply=replies)
    def model_replies(self, reply: ModelReply) -> None:
        asked = self.asked()
        assert asked is not None
        self.happened(reply_events(self.state, self.program, asked, reply, ms=0, active_ms=0))

    @precondition(lambda self: self.asked() is not None)
    @rule(refused=st.booleans())
    def model_fails(self, refused: bool) -> None:
        asked = self.asked()
        assert asked is not None
        error = ModelRefusedRequest("no", billed=True) if refused else ModelUnavailable("busy")
        self.happened(failure_events(self.state, self.program, asked, error, jitter=0.5, ms=0, active_ms=0))

    @precondition(lambda self: self.asked() is not None)
    @rule()
    def worker_is_lost_in_a_model_call(self) -> None:
        asked = self.asked()
        assert asked is not None
        self.happened(lost_call_events(self.state, asked.reservation, active_ms=0))

    @precondition(startable)
    @rule()
    def tools_start(self) -> None:
        intent = decide(self.state, self.program, "r1", AT_ONCE)
        assert isinstance(intent, StartTools)
        for open_call in intent.calls:
            open_call.mark = Mark.STARTED

    @precondition(lambda self: bool(self.started()))
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "error", "invalid", "unknown"]))
    def tool_ends(self, data: st.DataObject, outcome: Outcome) -> None:
        assert self.state.exchange is not None
        open_call = self.state.exchange.calls[data.draw(st.sampled_from(self.started()))]
        self.happened(tool_events(self.program, open_call, outcome, "text", result="text", ms=0, active_ms=0))

    @precondition(lambda self: bool(self.started()))
    @rule()
    def worker_is_lost_with_its_tools(self) -> None:
        assert self.state.exchange is not None
        for key in self.started():
            self.state.exchange.calls[key].mark = Mark.DOUBTFUL
        events, again = doubtful(self.state.exchange, self.program, active_ms=0)
        assert all(open_call.call.name == "read" or open_call.call.name == "terminate" for open_call in again)
        self.happened(events)
        for open_call in again:
            open_call.mark = Mark.PLANNED

    @rule()
    def it_is_handed_over(self) -> None:
        self.happened([RunReleased(why="yield")])

    @precondition(lambda self: not self.state.head.ended)
    @rule()
    def somebody_cancels(self) -> None:
        self.happened(cancel_events(self.state, self.program, self.asked(), "user", active_ms=0))

    @precondition(lambda self: isinstance(decide(self.state, self.program, "r1", AT_ONCE), Happen))
    @rule()
    def a_limit_ends_it(self) -> None:
        finish = decide(self.state, self.program, "r1", AT_ONCE)
        assert isinstance(finish, Happen)
        self.happened([finish.events[0]])

    @precondition(lambda self: self.state.head.ended in ("failed", "budget_exceeded"))
    @rule()
    def somebody_resumes(self) -> None:
        self.happened([RunResumed(budget=Budget(max_steps=self.state.head.step + 3))])

    @invariant()
    def the_history_is_valid(self) -> None:
        assert_valid(self.state.history)
        assert_valid(self.state.messages())

    @invariant()
    def the_same_question_has_the_same_answer(self) -> None:
        intent = decide(self.state, self.program, "r1", AT_ONCE)
        assert intent == decide(self.state, self.program, "r1", AT_ONCE)
        if self.state.head.ended:
            assert intent == Ended(self.state.head.ended)

    def teardown(self) -> None:
        """From any checkpoint, the events give the same state as from none."""
        recorded = [Recorded(seq=seq, at=0, event=event) for seq, event in enumerate(self.events, start=1)]
        whole = RunState.restore(Checkpoint(), recorded)
        assert whole.head == self.state.head
        assert whole.history == self.state.history
        assert (whole.conversation, whole.context) == (self.state.conversation, self.state.context)
        for head in self.heads:
            assert RunState.restore(replace(head), recorded) == whole


TestAnyRun = AnyRun.TestCase
TestAnyRun.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
