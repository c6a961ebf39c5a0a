"""Where sessions are kept, and runs moved.

A session is a conversation; a run is one attempt at one task in it; an event is anything that happens in a run; a checkpoint is
the small head of a run at its newest event, and the only one of the run. `MemorySessionRepository` keeps them in memory,
`worker.session_repository` in the store.

An event and the checkpoint that contains it are one commit of the run's journal: nobody writes one without the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agent.documents.messages import Message
from agent.events import Event, Recorded, RequestOpened, RunClaimed, RunCreated, fields_of
from agent.state import Checkpoint

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.report import Observer
    from agent.requests import Answer

Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "budget_exceeded"]

ENDED: Final = frozenset({"completed", "failed", "cancelled", "budget_exceeded"})
TRACE: Final = "trace_id"
MOVER: Final = "runtime-"
"""What the name of a worker begins with that is a call of `AgentRuntime.run`; behind it stands the trace id."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation.

    Attributes:
        status: Whether one of its runs has not ended.
        metadata: What it knows from run to run: the fields of `ContextState`.
    """

    id: str
    status: Literal["idle", "busy"]
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at one task.

    Attributes:
        loop_count: Model replies so far.
        requests: What it asks of a person now.
        ending: The event that ended it.
    """

    id: str
    session_id: str
    status: Status
    loop_count: int
    created_at: datetime
    updated_at: datetime
    requests: tuple[RequestOpened, ...] = ()
    ending: Event | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """Something that happened in a run. Its number counts 1, 2, 3, … within the run."""

    session_id: str
    run_id: str
    sequence: int
    created_at: datetime
    event: Event
    trace_id: str

    @property
    def event_type(self) -> str:
        """The word for what happened."""
        return self.event.type

    @property
    def payload(self) -> dict[str, Any]:
        """What there is to say of it, as JSON carries it, with the trace id of the call in which it happened."""
        return {**fields_of(self.event), TRACE: self.trace_id}


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """The head of a run at its newest event."""

    run_id: str
    sequence: int
    state: Checkpoint
    created_at: datetime


class SessionRepository(Protocol):
    """Where sessions are kept. Ids are texts; those of sessions are the caller's choice."""

    async def init(self) -> None:
        """Makes it ready. What is used before does it by itself."""
        ...

    async def get_session(self, session_id: str) -> Session | None:
        """A session that has had a run."""
        ...

    async def create_run(self, session_id: str, user_message: str, agent: Agent[Any], *, trace_id: str) -> str:
        """Accepts a task. The first run of a session makes the session.

        Raises:
            Conflict: Another run of the session has not ended.
        """
        ...

    async def get_run(self, run_id: str, session_id: str) -> Run | None:
        """A run of that session."""
        ...

    async def list_runs(self, session_id: str) -> list[Run]:
        """The runs of a session, the oldest first; of very many the latest."""
        ...

    async def list_events(self, run_id: str) -> list[StoredEvent]:
        """All that happened in a run, in order."""
        ...

    async def get_checkpoint(self, run_id: str) -> StoredCheckpoint | None:
        """The newest checkpoint of a run; there is no other."""
        ...

    async def list_messages(self, session_id: str) -> list[Message]:
        """What was said in a session so far."""
        ...

    async def answer(self, run_id: str, answer: Answer) -> None:
        """Answers a request of a run.

        Raises:
            Conflict: There is no such request.
        """
        ...

    async def advance(self, run_id: str, agent: Agent[Any], *, trace_id: str, observer: Observer | None) -> None:
        """Moves a run, in this process, until it has ended or waits for a person."""
        ...


def stored_events(session_id: str, run_id: str, events: Sequence[Recorded]) -> list[StoredEvent]:
    """A run's events, each with the trace id of the call in which it happened; '' where that was no call of a runtime's."""
    stored: list[StoredEvent] = []
    trace_id = ""
    for recorded in events:
        event = recorded.event
        if isinstance(event, RunCreated):
            trace_id = str(event.metadata.get(TRACE, ""))
        elif isinstance(event, RunClaimed):
            trace_id = event.worker.removeprefix(MOVER) if event.worker.startswith(MOVER) else ""
        stored.append(StoredEvent(session_id, run_id, recorded.seq, moment(recorded.at), event, trace_id))
    return stored


def moment(milliseconds: int) -> datetime:
    """A time as a run's record has it."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
