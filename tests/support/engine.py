"""What tests of the engine share: a record that keeps what a journal commits, and activations that live from it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent.agent import Agent
from agent.budget import Budget, Reservation
from agent.context import RunIdentity
from agent.conversation import NO_CONTEXT, ContextState, EarlierRun
from agent.driver import Driver
from agent.events import Event, Recorded, RunCreated, decode, encode
from agent.journal import NO_NEWS, Commit, News
from agent.mailbox import Departure
from agent.messages import Message, Role
from agent.state import Checkpoint, Mark, RunState

RUN = "r1"

Kind = TypeVar("Kind", bound=Event)


class Crashed(BaseException):
    """The process of an activation is gone."""


@dataclass
class Record:
    """What is durable of a run: bytes, as a store would keep them."""

    events: list[bytes] = field(default_factory=list[bytes])
    checkpoint: bytes = b""
    marks: dict[str, Mark] = field(default_factory=dict[str, Mark])
    open: Reservation | None = None
    status: str = "queued"
    commits: list[Commit] = field(default_factory=list[Commit])

    @classmethod
    def created(cls, task: str = "go", budget: Budget | None = None) -> "Record":
        """A run that was just submitted."""
        return cls([encode(RunCreated(agent="a", task=task, budget=budget or Budget()))])

    @property
    def recorded(self) -> list[Recorded]:
        """The events in their places."""
        return [Recorded(seq=seq, at=0, event=decode(body)) for seq, body in enumerate(self.events, start=1)]

    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [event.type for event in self.facts]

    @property
    def facts(self) -> list[Event]:
        """The events."""
        return [recorded.event for recorded in self.recorded]

    def all_of(self, kind: type[Kind]) -> list[Kind]:
        """The events of one type."""
        return [event for event in self.facts if isinstance(event, kind)]

    def restored(self, *, earlier: Sequence[EarlierRun] = (), context: ContextState = NO_CONTEXT) -> RunState:
        """The state that a worker makes of the record: calls that had started are in doubt."""
        state = RunState.restore(Checkpoint.of(self.checkpoint), self.recorded, earlier=earlier, context=context)
        if state.exchange is not None:
            for key, mark in self.marks.items():
                if key in state.exchange.calls and mark is Mark.STARTED:
                    state.exchange.calls[key].mark = Mark.DOUBTFUL
        return state


class RecordingJournal:
    """Commits into a record.

    Args:
        news: What the commits answer with, one after the other; then nothing.
        crash: Ends the process at this commit (the first is 1): before it is stored, or behind it.
    """

    def __init__(
        self, record: Record, *, news: Sequence[News] = (), crash_before: int = 0, crash_after: int = 0
    ) -> None:
        self.record = record
        self.acknowledged: set[str] = set()
        self._news = list(news)
        self._crash_before = crash_before
        self._crash_after = crash_after
        self._count = 0
        self.secured = 0
        self.wall = 0

    async def commit(self, commit: Commit) -> News:
        """Stores it, unless the process ends here."""
        self._count += 1
        if self._count == self._crash_before:
            raise Crashed
        self._store(commit)
        if self._count == self._crash_after:
            raise Crashed
        self.acknowledged |= {key for key, mark in commit.marks.items() if mark is Mark.STARTED}
        return self._news.pop(0) if self._news else News()

    def owns_run(self) -> bool:
        """Nobody else owns the run."""
        return True

    async def permit(self) -> None:
        """Nobody else owns the run."""

    async def secure(self) -> None:
        """Counts how often an effect waited."""
        self.secured += 1

    def wall_ms(self) -> int:
        """As the test says."""
        return self.wall

    def _store(self, commit: Commit) -> None:
        record = self.record
        record.commits.append(commit)
        record.events += [encode(event) for event in commit.events]
        record.checkpoint = commit.checkpoint.to_bytes()
        record.open = commit.opening
        record.status = commit.to
        for key, mark in commit.marks.items():
            if mark is None:
                record.marks.pop(key, None)
            else:
                record.marks[key] = mark


async def activate(
    agent: Agent[Any],
    record: Record,
    journal: RecordingJournal | None = None,
    *,
    started: Callable[[Driver], None] | None = None,
    max_steps: int | None = None,
    news: News = NO_NEWS,
) -> Departure:
    """One activation of a run, from what is durable of it.

    Args:
        started: Called with the driver before it drives.
    """
    driver = Driver(
        RunIdentity(run_id=RUN, agent="a"),
        agent.program(),
        record.restored(),
        journal or RecordingJournal(record),
        None,
        max_steps=max_steps,
    )
    if started is not None:
        started(driver)
    return await driver.drive(lost=record.open, news=news)


def folded(events: Iterable[Event]) -> RunState:
    """The state that all these events make."""
    return RunState.restore(
        Checkpoint(), [Recorded(seq=seq, at=0, event=event) for seq, event in enumerate(events, start=1)]
    )


def assert_valid(messages: Sequence[Message]) -> None:
    """Every call is answered exactly once, in order, directly behind the message that made it."""
    ids: list[str] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        assert message.role is not Role.TOOL, f"an answer to nothing: {message}"
        answers = messages[position + 1 : position + 1 + len(message.tool_calls)]
        assert [answer.tool_call_id for answer in answers] == [call.id for call in message.tool_calls]
        assert all(answer.role is Role.TOOL and answer.content is not None for answer in answers)
        ids += [call.id for call in message.tool_calls]
        position += 1 + len(answers)
    assert len(ids) == len(set(ids)), "two calls of one id"
