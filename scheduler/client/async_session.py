"""One session, seen by a client: looked at, and made to forget."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from agent.errors import RunNotFound, SessionNotFound
from scheduler.client.services import Services
from scheduler.client.session_info import SessionInfo
from scheduler.keys import scoped
from scheduler.rq_bridge import forget_job
from scheduler.wire import array, ask, text


class AsyncSession:
    """A conversation of a tenant. Made by a client; holds nothing but its names.

    Runs are submitted to it with `client.submit(..., session=..., tenant=...)` and listed with `client.runs(...)`.

    Attributes:
        id: The session's name, as its tenant knows it.
        tenant: Whose it is; '' where there are no tenants.
    """

    def __init__(self, session: str, tenant: str, services: Callable[[], Awaitable[Services]]) -> None:
        self.id = session
        self.tenant = tenant
        self._services = services

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, tenant={self.tenant!r})"

    async def info(self) -> SessionInfo:
        """The session as it stands now, with what it remembers.

        Raises:
            SessionNotFound: There is none of this name.
            BrokenRecord: What it knows cannot be read.
        """
        return await (await self._services()).sessions.info(self.id, self.tenant)

    async def forget(self) -> None:
        """Takes its memory away: the next run begins as in a new session. Earlier runs can still be looked at.

        Raises:
            SessionNotFound: There is none of this name.
            Conflict: One of its runs has not ended.
        """
        await (await self._services()).store.forget(self.id, self.tenant)

    async def delete(self) -> None:
        """Removes it with its memory and all its runs. What fails half-way can be asked for again.

        Raises:
            SessionNotFound: There is none of this name.
            Conflict: One of its runs has not ended.
        """
        services = await self._services()
        await services.store.forget(self.id, self.tenant)
        index = services.keys.by_session(scoped(self.tenant, self.id))
        (found,) = await ask(services.redis, ("ZRANGE", index, 0, -1))
        for run in (text(run) for run in array(found)):
            try:
                record = await services.store.info(run)
                await services.store.delete(run)
                await forget_job(services.redis, run, record.queue)
            except RunNotFound:  # its retention is over, and no sweep has seen it
                await ask(services.redis, ("ZREM", index, run))
        with contextlib.suppress(SessionNotFound):  # it had no runs, so that it left with its memory
            await services.store.forget(self.id, self.tenant)
