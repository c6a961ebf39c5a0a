"""A session by hand: runs one after another, over whatever happens to them, and every request that a model reads."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent.agent import Agent
from agent.budget import Budget
from agent.context import RunIdentity
from agent.conversation import NO_CONTEXT, ContextState
from agent.driver import Driver
from agent.events import RequestOpened, RunCancelled, RunResumed, encode
from agent.journal import NO_NEWS, News
from agent.local import open_requests
from agent.mailbox import Departure
from agent.messages import Message, Role
from agent.models.strict_turns import in_strict_turns
from agent.requests import Answer
from agent.state import RunState
from scheduler.records import StoredEvent
from tests.support import virtual_time
from tests.support.engine import Crashed, Record, RecordingJournal, assert_valid
from worker.recall import earlier_run, known_before

RESUMABLE: Final = ("failed", "budget_exceeded")
RUNS_REMEMBERED: Final = 50
"""As many as a store keeps in the memory of a session."""

ENDED: Final = ("completed", "cancelled", *RESUMABLE)


@dataclass
class Talk:
    """A session as a store would keep it.

    Attributes:
        runs: What is durable of each run, in the order in which they began.
        active: The run at work: the one that began last, or an older one that goes on.
        forgotten: Runs that were rolled back; the session remembers nothing of them.
        left_behind: Runs that ended, so that the session's memory is also theirs; some of them went on later.
        context: What the session knows.
    """

    agent: Agent[Any]
    runs: dict[str, Record] = field(default_factory=dict[str, Record])
    active: str = ""
    forgotten: set[str] = field(default_factory=set[str])
    left_behind: set[str] = field(default_factory=set[str])
    context: ContextState = NO_CONTEXT
    _handed_down: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def record(self) -> Record:
        """The active run."""
        return self.runs[self.active]

    @property
    def remembered(self) -> Sequence[str]:
        """The runs that the session remembers, in the order in which they began."""
        return [run for run in self.runs if run not in self.forgotten][-RUNS_REMEMBERED:]

    def begin(self, task: str, budget: Budget | None = None) -> None:
        """Submits the next run."""
        self.active = f"r{len(self.runs) + 1}"
        self.runs[self.active] = Record.created(task, budget)

    def resume(self, run: str = "") -> None:
        """Lets a run go on that had failed, or had no budget left: the active one, or an older one."""
        self.active = run or self.active
        self.record.events.append(encode(RunResumed(budget=Budget())))
        self.record.status = "queued"

    def stop(self, reason: str) -> None:
        """Ends the active run that no worker has, as a store does."""
        self.record.events.append(encode(RunCancelled(reason=reason)))
        self.record.status = "cancelled"
        self._end(reason)

    def state(self) -> RunState:
        """The active run, as a worker finds it that claims it."""
        context, before = known_before(self.active, self.remembered, self.context)
        earlier = [earlier_run(one, stored(self.runs[one])) for one in before]
        return self.record.restored(earlier=earlier, context=context)

    def asks(self) -> Sequence[RequestOpened]:
        """What a run asks that waits."""
        return open_requests(self.state())

    def activate(
        self,
        *,
        answers: Sequence[Answer] = (),
        news: Sequence[News] = (),
        crash_before: int = 0,
        crash_after: int = 0,
        max_steps: int | None = None,
        started: Callable[[Driver], None] | None = None,
    ) -> Departure | None:
        """One activation of the active run; None where its process crashed.

        Args:
            answers: What arrived before it.
            news: What its commits answer with, one after the other.
        """
        record = self.record
        journal = RecordingJournal(record, news=news, crash_before=crash_before, crash_after=crash_after)

        async def life() -> Departure | None:
            state = self.state()
            driver = Driver(
                RunIdentity(run_id=self.active), self.agent.program(), state, journal, None, max_steps=max_steps
            )
            if started is not None:
                started(driver)
            try:
                return await driver.drive(lost=record.open, news=News(arrived=answers) if answers else NO_NEWS)
            except Crashed:
                await asyncio.sleep(0)
                return None

        departure = virtual_time.run(life())
        if departure and departure.status in ENDED:
            self._end(getattr(record.facts[-1], "reason", ""))
        return departure

    def _end(self, reason: str) -> None:
        """What the run made of the session's memory becomes the session's, unless it was rolled back."""
        done = len(self.record.commits)
        if reason == "rollback":
            self.forgotten.add(self.active)
        else:
            new = self.record.commits[self._handed_down.get(self.active, 0) : done]
            made = [commit.context for commit in new if commit.context is not None]
            self.context = made[-1] if made else self.context
            self.left_behind.add(self.active)
        self._handed_down[self.active] = done


def stored(record: Record) -> list[StoredEvent]:
    """The events as they are stored."""
    return [StoredEvent(seq, 0, body) for seq, body in enumerate(record.events, 1)]


def assert_sendable(messages: Sequence[Message]) -> None:
    """What holds for every request, whatever came before: one system message in front, calls answered, nothing empty."""
    assert messages[0].role is Role.SYSTEM
    spoken = messages[1:]
    assert all(message.role is not Role.SYSTEM for message in spoken)
    assert_valid(spoken)
    for message in spoken:
        assert message.content or message.tool_calls or message.role is Role.TOOL, message
        (message.content or "").encode()
    assert_valid(in_strict_turns(messages)[1:])


def some(luck: random.Random, *choices: Any) -> Any:
    """One of the choices; a pair `(weight, choice)` each."""
    weights, values = zip(*choices, strict=True)
    return luck.choices(values, weights)[0]
