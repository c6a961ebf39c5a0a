"""The documents' session repository over the store: each run is a durable one, moved in the calling process.

    async with StoredSessions() as repository:
        runtime = AgentRuntime(repository, llm="openai:gpt-4o", system_instruction="Help.")
        result = await runtime.run("s1", "Which of my orders is late?")

`agent` knows no store: it says what it needs as `SessionRepository`. What moves durable runs is the worker's trade, so that this
form of it stands here, on the top storey.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from agent.conversation import ContextState
from agent.documents.messages import Message, message_of
from agent.documents.runtime_sessions import (
    MOVER,
    TRACE,
    Run,
    Session,
    StoredCheckpoint,
    StoredEvent,
    moment,
    stored_events,
)
from agent.earlier import messages_so_far
from agent.errors import RunNotFound
from agent.events import Recorded, decode
from agent.local import open_requests
from agent.state import Checkpoint, RunState
from scheduler.client.services import Services
from scheduler.client.submission import Submission, Target, new_run
from scheduler.deployment import Deployment
from scheduler.keys import scoped
from scheduler.listing import MAX_PAGE, Query
from scheduler.records import RunRecord
from scheduler.run_ids import new_run_id
from scheduler.sessions import OnBusy
from scheduler.settings import Settings
from scheduler.wire import ask, blob
from worker.actor import ServedAgent
from worker.mover import Mover

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.report import Observer
    from agent.requests import Answer

_FIELDS: Final = {"reply": "text", "approve": "text", "reject": "reason"}


class StoredSessions:
    """Sessions in the store of a deployment. To be used on one event loop, and closed.

    Args:
        settings: None: what the environment says (`PAWL_...`).
        tenant: Whose sessions they are.
    """

    def __init__(self, settings: Settings | None = None, *, tenant: str = "") -> None:
        self._settings = settings
        self._tenant = tenant
        self._opening: asyncio.Task[Services] | None = None

    async def __aenter__(self) -> StoredSessions:
        await self.init()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def init(self) -> None:
        """Opens the store.

        Raises:
            StoreUnavailable: It cannot be reached; the message says what to do.
            ConfigurationError: There is no Redis to use.
        """
        await self._services()

    async def close(self) -> None:
        """Closes the connections. It may be used again afterwards."""
        opening, self._opening = self._opening, None
        if opening is not None:
            services = await opening
            await services.close()
            services.deployment.close()

    async def get_session(self, session_id: str) -> Session | None:
        records = await self._runs_of(session_id)
        if not records:
            return None
        services = await self._services()
        (state,) = await ask(services.redis, ("HGET", services.keys.session(self._scoped(session_id)), "state"))
        return Session(
            id=session_id,
            status="idle" if all(record.ended for record in records) else "busy",
            metadata=asdict(ContextState.of(blob(state) if state else b"")),
            created_at=moment(records[0].created_at),
            updated_at=moment(max(record.status_at for record in records)),
        )

    async def create_run(self, session_id: str, user_message: str, agent: Agent[Any], *, trace_id: str) -> str:
        submission = Submission(
            task=user_message,
            session=session_id,
            tenant=self._tenant,
            metadata={TRACE: trace_id},
            on_busy=OnBusy.REJECT,
        )
        new = new_run(new_run_id(), Target.of_agent(agent, submission), submission)
        return (await (await self._services()).store.create(new)).run

    async def get_run(self, run_id: str, session_id: str) -> Run | None:
        try:
            record = await (await self._services()).store.info(run_id)
        except RunNotFound:
            return None
        return await self._seen(record) if (record.session, record.tenant) == (session_id, self._tenant) else None

    async def list_runs(self, session_id: str) -> list[Run]:
        return [await self._seen(record) for record in await self._runs_of(session_id)]

    async def list_events(self, run_id: str) -> list[StoredEvent]:
        record = await (await self._services()).store.info(run_id)
        return stored_events(record.session, run_id, await self._recorded(run_id))

    async def get_checkpoint(self, run_id: str) -> StoredCheckpoint | None:
        try:
            record = await (await self._services()).store.info(run_id)
        except RunNotFound:
            return None
        head = Checkpoint.of(record.state)
        return StoredCheckpoint(run_id, head.seq, head, moment(record.status_at))

    async def list_messages(self, session_id: str) -> list[Message]:
        messages: list[Message] = []
        for record in await self._runs_of(session_id):
            messages += map(message_of, messages_so_far(await self._recorded(record.id)))
        return messages

    async def answer(self, run_id: str, answer: Answer) -> None:
        body = {"arguments": answer.arguments} if answer.kind == "approve" else {_FIELDS[answer.kind]: answer.text}
        services = await self._services()
        sid = uuid.uuid4().hex
        await services.store.signal(run_id, sid=sid, kind=answer.kind, body=to_json(body), ask=answer.request)

    async def advance(self, run_id: str, agent: Agent[Any], *, trace_id: str, observer: Observer | None) -> None:
        program = agent.program()
        async with agent.provider.opened() as opened:
            served = ServedAgent(agent, program, opened)
            mover = Mover(await self._services(), run_id, served, name=f"{MOVER}{trace_id}", observer=observer)
            await mover.move()

    async def _seen(self, record: RunRecord) -> Run:
        events = await self._recorded(record.id)
        return Run(
            id=record.id,
            session_id=record.session,
            status=record.status.value,
            loop_count=record.step,
            created_at=moment(record.created_at),
            updated_at=moment(events[-1].at),
            requests=tuple(open_requests(RunState.restore(Checkpoint(), events))),
            ending=events[-1].event if record.ended else None,
        )

    async def _services(self) -> Services:
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Services:
        services = Services(await asyncio.to_thread(Deployment, self._settings))
        await services.open()
        return services

    async def _recorded(self, run_id: str) -> list[Recorded]:
        stored = (await self._services()).store.all_events(run_id)
        return [Recorded(seq=one.seq, at=one.at, event=decode(one.body)) async for one in stored]

    async def _runs_of(self, session_id: str) -> list[RunRecord]:
        """The latest runs of a session, the oldest first."""
        query = Query(session=session_id, tenant=self._tenant)
        page = await (await self._services()).listing.page(query, count=MAX_PAGE)
        return list(reversed(page.runs))

    def _scoped(self, session_id: str) -> str:
        return scoped(self._tenant, session_id)
