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
from agent.events import RunResumed, encode
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
        runs: What is durable of each run, in the order in which they began; the last is the active one.
        context: What the session knows.
    """

    agent: Agent[Any]
    runs: dict[str, Record] = field(default_factory=dict[str, Record])
    context: ContextState = NO_CONTEXT

    @property
    def record(self) -> Record:
        """The active run."""
        return list(self.runs.values())[-1]

    def begin(self, task: str, budget: Budget | None = None) -> None:
        """Submits the next run."""
        self.runs[f"r{len(self.runs) + 1}"] = Record.created(task, budget)

    def resume(self) -> None:
        """Lets the active run go on that had failed, or had no budget left."""
        self.record.events.append(encode(RunResumed(budget=Budget())))
        self.record.status = "queued"

    def state(self) -> RunState:
        """The active run, as a worker finds it that claims it."""
        run = list(self.runs)[-1]
        context, before = known_before(run, list(self.runs)[-RUNS_REMEMBERED:], self.context)
        earlier = [earlier_run(one, stored(self.runs[one])) for one in before]
        return self.record.restored(earlier=earlier, context=context)

    def asks(self) -> Sequence[str]:
        """The ids of the requests of a run that waits."""
        return [request.request for request in open_requests(self.state())]

    def activate(
        self,
        *,
        answers: Sequence[Answer] = (),
        crash_before: int = 0,
        crash_after: int = 0,
        started: Callable[[Driver], None] | None = None,
    ) -> Departure | None:
        """One activation of the active run; None where its process crashed."""
        record = self.record
        journal = RecordingJournal(record, crash_before=crash_before, crash_after=crash_after)
        news = News(arrived=answers) if answers else NO_NEWS

        async def life() -> Departure | None:
            run = list(self.runs)[-1]
            driver = Driver(RunIdentity(run_id=run), self.agent.program(), self.state(), journal, None)
            if started is not None:
                started(driver)
            try:
                return await driver.drive(lost=record.open, news=news)
            except Crashed:
                await asyncio.sleep(0)
                return None

        departure = virtual_time.run(life())
        if departure and departure.status in ENDED:
            made = [commit.context for commit in record.commits if commit.context is not None]
            self.context = made[-1] if made else self.context
        return departure


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
