"""Whatever happens to the runs of a session, every request is one that a model's server takes.

Crashes before and behind commits, cancels, hand-overs, approvals, rejections, replies and silence, messages that interrupt a
run or roll it back, replies of nothing, calls that are none, failures, budgets that end, runs that go on behind later ones,
trims and compactions: in any order, over several runs.
"""

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from agent import Agent, Approval, Budget, FunctionModel, ModelReply, ModelRequest, ToolContext, tool
from agent.context_window import ContextManager, Strategy
from agent.conversation import Conversation, tokens_of
from agent.driver import Driver
from agent.errors import ModelRefusedRequest, ModelUnavailable
from agent.events import (
    ContextCompacted,
    Event,
    Remembered,
    ReplyRejected,
    RequestAnswered,
    RequestOpened,
    RunBudgetExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunReleased,
    RunResumed,
    ToolReturned,
)
from agent.journal import News
from agent.mailbox import Cancel, Departure, Leave
from agent.messages import Message, Role
from agent.models.base import RawToolCall
from agent.models.scripted import call, calls, say
from agent.requests import Answer, question_tool, remember_tool
from agent.state import Exchange, Mark, OpenCall
from tests.support.talk import ENDED, RESUMABLE, Talk, assert_sendable, some

Value = TypeVar("Value")

MAX_TOKENS: Final = 1_500
BROKEN: Final = "\ud83d"

executed: Counter[str] = Counter()
seen: defaultdict[type[Event], set[str]] = defaultdict(set)


@tool(idempotent=True)
async def note(text: str) -> str:
    """Notes."""
    await asyncio.sleep(1)
    return text * 300


@tool
async def pay(context: ToolContext, amount: int = 1) -> str:
    """Pays."""
    executed[context.idempotency_key] += 1
    await asyncio.sleep(2)
    return "" if amount > 1 else "paid"


@tool(approval=Approval(timeout=60, default="approve"))
async def send(context: ToolContext, text: str = "") -> str:
    """Sends."""
    executed[context.idempotency_key] += 1
    return f"sent {BROKEN}{text}"


@tool(on_unknown="ask")
async def launch() -> str:
    """Launches."""
    await asyncio.sleep(1)
    raise RuntimeError("down \udc9d")


def _one_call(luck: random.Random, run: str) -> ModelReply:
    return some(
        luck,
        (4, call("note", text=luck.choice(["a ", "\U0001f680", "word "]))),
        (3, call("pay")),
        (1, call("pay", amount=2)),
        (2, call("send")),
        (1, call("launch")),
        (1, call("ask_user", question="Which one?")),
        (1, call("remember", text=f"fact of {run}.")),
        (1, call("no_such_tool")),
        (1, call("note", number=1)),
        (1, ModelReply(tool_calls=(RawToolCall("note", '{"text": "x', "same"),), finish_reason="length")),
    )


def _reply(luck: random.Random, run: str) -> ModelReply | Exception:
    return some(
        luck,
        (8, calls(*(_one_call(luck, run) for _ in range(luck.randint(1, 4))))),
        (1, say("done")),
        (1, say("")),
        (1, say("  \n")),
        (1, ModelReply(content="cut", finish_reason="length")),
        (1, ModelReply(content=None, finish_reason="tool_calls")),
        (1, ModelUnavailable("busy \udc9d")),
        (1, ModelRefusedRequest("never")),
    )


STEPS: Final = {"activate": 10, "message": 4, "withdraw": 1, "resume": 2}
"""How often each of the methods of the machine is the next step."""

steps = st.sampled_from([step for step, weight in STEPS.items() for _ in range(weight)])
chance = st.randoms(use_true_random=False)


class Session(RuleBasedStateMachine):
    """One session. It has one rule only, for hypothesis would leave out most of several: anything comes behind anything."""

    def __init__(self) -> None:
        super().__init__()
        self.luck = random.Random(0)
        self.unseen: list[ModelRequest] = []
        self.tasks = itertools.count(1)

    @initialize(strategy=st.sampled_from(["window", "summary", "llm_summary"]), recent=st.sampled_from([2, 6]))
    def begin(self, strategy: Strategy, recent: int) -> None:
        """The session's first run."""
        executed.clear()
        context = ContextManager(max_tokens=MAX_TOKENS, recent_messages=recent, strategy=strategy)
        tools = [note, pay, send, launch, question_tool(), remember_tool()]
        model = FunctionModel(self._answer)
        self.talk = Talk(Agent("Do it.", tools=tools, model=model, context=context, max_attempts=2))
        self._next()

    @rule(luck=chance, step=steps)
    def step(self, luck: random.Random, step: str) -> None:
        """What happens next."""
        self.luck = luck
        getattr(self, step)(luck)
        self._check()

    # ---- what can happen to a run -----------------------------------------------------------------------------------

    def activate(self, luck: random.Random) -> None:
        """A worker has the run until it ends, waits, is given back, or the worker dies."""
        if self.talk.record.status in ENDED:
            self._next()
        answers = [_said(luck, one.request, one.kind) for one in self.talk.asks() if luck.random() < 0.7]
        if self.talk.record.status == "waiting" and not answers:
            return
        happens: dict[str, Any] = some(
            luck,
            (4, {}),
            (2, {"crash_before": luck.randint(1, 6)}),
            (2, {"crash_after": luck.randint(1, 6)}),
            (1, {"started": _at(luck.uniform(0, 6), Cancel("user"))}),
            (1, {"started": _at(luck.uniform(0, 6), Leave("drain", at_once=luck.random() < 0.5))}),
            (1, {"max_steps": luck.randint(1, 3)}),
            (1, {"news": [News(arrived=[_any(luck)]) for _ in range(6)]}),
        )
        self._live(answers=answers, **happens)

    def message(self, luck: random.Random) -> None:
        """A message arrives while a run is active, and ends it: while a worker has it, or before one has."""
        reason = luck.choice(["interrupt", "rollback"])
        is_held = luck.random() < 0.5
        ended = self.talk.record.status in ENDED or (
            is_held and self._live(started=_at(luck.uniform(0, 6), Cancel(reason)))
        )
        if not ended:
            self.talk.stop(reason)
        self._note()
        self._next()

    def withdraw(self, _: random.Random) -> None:
        """A run that no worker has is cancelled."""
        if self.talk.record.status not in ENDED:
            self.talk.stop("user")

    def resume(self, luck: random.Random) -> None:
        """A run that failed or had no budget left goes on, be it behind later ones."""
        if self.talk.record.status not in ENDED:
            return
        found = [run for run in self.talk.remembered if self.talk.runs[run].status in RESUMABLE]
        if found:
            self.talk.resume(luck.choice(found))

    def _next(self) -> None:
        self.talk.begin(f"task {next(self.tasks)}.", Budget(max_steps=self.luck.choice([3, 8, 50])))

    def _live(self, **happens: Any) -> bool:
        """Whether the run has ended by it."""
        departure: Departure | None = self.talk.activate(**happens)
        self.talk.record.status = departure.status if departure else "queued"
        return self.talk.record.status in ENDED

    # ---- what the model reads ---------------------------------------------------------------------------------------

    async def _answer(self, request: ModelRequest) -> ModelReply:
        self.unseen.append(request)
        await asyncio.sleep(1)
        if request.purpose == "summary":
            return some(self.luck, (3, say("summary")), (1, say("")), (1, ModelReply(content=None)))
        reply = _reply(self.luck, request.run_id)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _check(self) -> None:
        for request in self.unseen:
            self._check_request(request)
        self.unseen.clear()
        self._note()
        for key, times in executed.items():
            assert times == 1, f"{key} was executed {times} times"
        record = self.talk.record
        opened, answered = (
            Counter(event.request for event in record.all_of(kind)) for kind in (RequestOpened, RequestAnswered)
        )
        assert answered <= opened, "each request is answered once"
        assert self._positions() == sorted(set(self._positions())), "each message is summarised once"

    def _check_request(self, request: ModelRequest) -> None:
        assert_sendable(request.messages)
        assert sum(tokens_of(message) for message in request.messages) <= MAX_TOKENS
        if request.purpose == "summary":
            return
        texts = [message.content or "" for message in request.messages]
        task = self.talk.runs[request.run_id].recorded[0].event
        said = [text for message, text in zip(request.messages, texts, strict=True) if message.role is Role.USER]
        assert any(getattr(task, "task", "") in text for text in said), "the task at work is always there"
        whole = "\n".join(texts)
        for number, run in enumerate(self.talk.runs, 1):
            if run in self.talk.forgotten - self.talk.left_behind and run != request.run_id:
                assert f"task {number}." not in whole, "what is rolled back was never said"
                assert f"fact of {run}." not in whole
        for run in self.talk.remembered:
            if any(self._knew(run, request) for _ in self.talk.runs[run].all_of(Remembered)):
                assert f"- fact of {run}." in texts[0], "what was to be remembered is in every later request"

    def _knew(self, run: str, request: ModelRequest) -> bool:
        """Whether a run had ended when a request was made."""
        return list(self.talk.runs).index(run) < list(self.talk.runs).index(request.run_id)

    def _note(self) -> None:
        for event in self.talk.record.facts:
            seen[type(event)].add(_word(event))

    def _positions(self) -> list[tuple[int, int]]:
        """Where the active run's compactions let the window begin."""
        runs = list(self.talk.runs)
        return [
            (runs.index(event.run or self.talk.active), event.offset)
            for event in self.talk.record.all_of(ContextCompacted)
        ]


def _said(luck: random.Random, request: str, asked: str) -> Answer:
    if asked == "clarification":
        return Answer(request, some(luck, (3, "reply"), (1, "expired")), text=luck.choice(["", f"the first {BROKEN}"]))
    edited = some(luck, (4, None), (2, {"text": "edited"}), (1, {"wrong": 1}), (1, {"text": BROKEN}))
    return Answer(
        request, some(luck, (3, "approve"), (2, "reject"), (1, "expired")), text=f"no {BROKEN}", arguments=edited
    )


def _any(luck: random.Random) -> Answer | Budget:
    """What may arrive at any time, be it to something that was never asked."""
    key = f"{luck.randint(1, 6)}.{luck.randint(0, 2)}"
    return some(luck, (3, _said(luck, key, luck.choice(["clarification", "approval"]))), (1, Budget(max_steps=1)))


def _at(second: float, message: Cancel | Leave) -> Callable[[Driver], None]:
    return lambda driver: asyncio.get_running_loop().call_later(second, driver.post, message) and None


WALKS: Final = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],  # what is smaller is no easier to read
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
EXPECTED: Final = {
    RunCompleted: {""},
    RunFailed: {"model_refused_request", "model_unavailable"},
    RunCancelled: {"user", "interrupt", "rollback"},
    RunBudgetExceeded: {""},
    RunReleased: {"drain", "yield", "waiting"},
    RunResumed: {""},
    ContextCompacted: {""},
    ReplyRejected: {"cut_off", "empty_reply"},
    RequestAnswered: {"reply", "approve", "reject", "expired"},
    ToolReturned: {"ok", "error", "invalid", "cut_off", "rejected", "unknown", "interrupted"},
}


def _word(event: Event) -> str:
    """What an event is told apart by from others of its type."""
    return next(
        (str(value) for name in ("reason", "why", "answer", "outcome") if (value := getattr(event, name, ""))), ""
    )


def test_every_request_of_any_session_can_be_sent() -> None:
    seen.clear()
    run_state_machine_as_test(Session, settings=WALKS)

    assert {kind: words - seen[kind] for kind, words in EXPECTED.items() if not words <= seen[kind]} == {}


def _parting(window: ContextManager, *given: Any) -> int | None:
    index = DUE(window, *given)
    return None if index is None else index + 1


def _repeating(exchange: Exchange, *_: object, **__: object) -> tuple[list[Event], list[OpenCall]]:
    return [], [open_call for open_call in exchange.unanswered if open_call.mark is Mark.DOUBTFUL]


def _as_it_was(_: Conversation, message: Message, __: int) -> Message:
    return message


def _unchanged(value: Value, *_: object) -> Value:
    return value


DUE: Final = ContextManager.due
FAULTS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "a window that begins within an exchange": ("agent.context_window.ContextManager.due", _parting),
    "ids that the calls of several runs share": ("agent.conversation.Conversation._with_own_ids", _as_it_was),
    "calls in doubt that are executed again": ("agent.driver.doubtful", _repeating),
    "memories that are lost": ("agent.conversation.ContextState.remembering", _unchanged),
    "text that is not mended": ("agent.requests.well_formed", _unchanged),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])

    with pytest.raises(Exception):  # noqa: B017 - whatever it is that breaks
        run_state_machine_as_test(Session, settings=settings(WALKS, max_examples=500))
