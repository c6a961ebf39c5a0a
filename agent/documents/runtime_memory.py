"""Sessions in memory: for tests, and to try things out."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agent.budget import Reservation
from agent.context import RunIdentity
from agent.conversation import NO_CONTEXT, ContextState
from agent.documents.messages import Message, message_of
from agent.documents.runtime_sessions import (
    ENDED,
    MOVER,
    TRACE,
    Run,
    Session,
    Status,
    StoredCheckpoint,
    StoredEvent,
    moment,
    stored_events,
)
from agent.driver import Driver
from agent.earlier import earlier_run, messages_so_far
from agent.errors import Conflict
from agent.events import Event, RunClaimed, RunCreated, RunFailed
from agent.journal import Commit, MemoryJournal, News
from agent.local import open_requests
from agent.state import Checkpoint, Mark, RunState
from agent.text import well_formed

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.report import Observer
    from agent.requests import Answer


@dataclass(slots=True)
class _MemoryRun:
    identity: RunIdentity
    state: RunState
    journal: _Journal
    arrived: list[Answer] = field(default_factory=list["Answer"])
    status: Status = "queued"


class _Journal(MemoryJournal):
    """Keeps as well what a run leaves to its session, and the model call that is under way."""

    context: ContextState | None = None
    opening: Reservation | None = None

    async def commit(self, commit: Commit) -> News:
        self.context = commit.context or self.context
        self.opening = commit.opening
        return await super().commit(commit)


class MemorySessionRepository:
    """Sessions that live as long as the object; for tests, and to try things out."""

    def __init__(self) -> None:
        self._runs: dict[str, _MemoryRun] = {}
        self._contexts: dict[str, ContextState] = {}

    async def init(self) -> None:
        """There is nothing to make ready."""

    async def get_session(self, session_id: str) -> Session | None:
        runs = self._runs_of(session_id)
        if not runs:
            return None
        busy = any(run.status not in ENDED for run in runs)
        return Session(
            id=session_id,
            status="busy" if busy else "idle",
            metadata=asdict(self._contexts.get(session_id, NO_CONTEXT)),
            created_at=moment(runs[0].journal.events[0].at),
            updated_at=moment(runs[-1].journal.events[-1].at),
        )

    async def create_run(self, session_id: str, user_message: str, agent: Agent[Any], *, trace_id: str) -> str:
        for run in self._runs_of(session_id):
            if run.status not in ENDED:
                raise Conflict(f"The session {session_id!r} is busy with run {run.identity.run_id}.")
        identity = RunIdentity(run_id=f"local-{uuid.uuid4().hex}", session=session_id, agent=agent.name or "agent")
        run = _MemoryRun(identity, self._beginning(session_id), _Journal())
        created = RunCreated(
            agent=identity.agent,
            task=well_formed(user_message),
            budget=agent.budget,
            session=session_id,
            metadata={TRACE: trace_id},
        )
        await _happened(run, created)
        self._runs[identity.run_id] = run
        return identity.run_id

    async def get_run(self, run_id: str, session_id: str) -> Run | None:
        run = self._runs.get(run_id)
        return _seen(run) if run is not None and run.identity.session == session_id else None

    async def list_runs(self, session_id: str) -> list[Run]:
        return [_seen(run) for run in self._runs_of(session_id)]

    async def list_events(self, run_id: str) -> list[StoredEvent]:
        run = self._runs[run_id]
        return stored_events(run.identity.session, run_id, run.journal.events)

    async def get_checkpoint(self, run_id: str) -> StoredCheckpoint | None:
        run = self._runs.get(run_id)
        if run is None:
            return None
        head = Checkpoint.of(run.state.head.to_bytes())  # a copy
        return StoredCheckpoint(run_id, head.seq, head, moment(run.journal.events[-1].at))

    async def list_messages(self, session_id: str) -> list[Message]:
        return [
            message_of(message) for run in self._runs_of(session_id) for message in messages_so_far(run.journal.events)
        ]

    async def answer(self, run_id: str, answer: Answer) -> None:
        run = self._runs[run_id]
        if answer.request not in [request.request for request in open_requests(run.state)]:
            raise Conflict(f"Run {run_id} has no open request {answer.request!r}.")
        run.arrived.append(answer)
        run.status = "queued"

    async def advance(self, run_id: str, agent: Agent[Any], *, trace_id: str, observer: Observer | None) -> None:
        run = self._runs[run_id]
        if run.status == "running":
            raise Conflict(f"Run {run_id} is being moved by another call.")
        run.status = "running"
        try:
            run.status = await self._moved(run, agent, trace_id, observer)
        except Exception as error:
            await _happened(run, RunFailed(reason="agent_error", error=f"{type(error).__name__}: {error}"))
            run.status = "failed"
        finally:
            if run.status == "running":  # the call was cancelled: the next one goes on
                run.status = "queued"

    async def _moved(self, run: _MemoryRun, agent: Agent[Any], trace_id: str, observer: Observer | None) -> Status:
        lost = run.journal.opening
        for call in run.state.exchange.unanswered if run.state.exchange else ():
            call.mark = Mark.DOUBTFUL if call.mark is Mark.STARTED else call.mark
        await _happened(run, RunClaimed(worker=f"{MOVER}{trace_id}"))
        arrived, run.arrived = run.arrived, []
        async with agent.provider.opened() as opened:
            dependencies = await opened.for_run(run.identity)
            program = agent.program()
            driver = Driver(
                run.identity, program, run.state, run.journal, dependencies, observer=observer, hold_ms=None
            )
            departure = await driver.drive(lost=lost, news=News(arrived=arrived))
        if run.journal.context is not None:
            self._contexts[run.identity.session] = run.journal.context
        return departure.status

    def _runs_of(self, session_id: str) -> list[_MemoryRun]:
        return [run for run in self._runs.values() if run.identity.session == session_id]

    def _beginning(self, session_id: str) -> RunState:
        """A state behind all that the session knows."""
        context = self._contexts.get(session_id, NO_CONTEXT)
        runs = self._runs_of(session_id)
        names = [run.identity.run_id for run in runs]
        since = names.index(context.run) if context.run in names else 0
        earlier = [earlier_run(run.identity.run_id, run.journal.events) for run in runs[since:]]
        return RunState.restore(Checkpoint(), [], earlier=earlier, context=context)


def _seen(run: _MemoryRun) -> Run:
    events = run.journal.events
    return Run(
        id=run.identity.run_id,
        session_id=run.identity.session,
        status=run.status,
        loop_count=run.state.head.step,
        created_at=moment(events[0].at),
        updated_at=moment(events[-1].at),
        requests=tuple(open_requests(run.state)),
        ending=events[-1].event if run.status in ENDED else None,
    )


async def _happened(run: _MemoryRun, event: Event) -> None:
    await run.journal.commit(Commit(events=[event], checkpoint=run.state.head))
    run.state.apply(run.journal.events[-1])
