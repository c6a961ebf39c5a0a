"""The client for code that is not async: `AsyncClient`, through the portal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar, Unpack, overload

from agent.agent import Agent
from agent.budget import Budget
from scheduler.cards import AgentCard
from scheduler.client.async_client import AsyncClient, RunPage
from scheduler.client.handle import RunHandle
from scheduler.client.portal import PORTAL
from scheduler.client.session import Session
from scheduler.client.session_reader import SessionPage
from scheduler.client.submission import Priority
from scheduler.client.usage import UsageRow
from scheduler.lifecycle import Status
from scheduler.rq_bridge import WorkerInfo
from scheduler.sessions import OnBusy
from scheduler.settings import Settings
from scheduler.tenants import TenantLimits, TenantUsage

Output = TypeVar("Output")


class Client:
    """Submits runs and finds them again. Safe to use from many threads, in notebooks, and after a fork.

    See `AsyncClient` for the arguments of each method and for what it raises.
    """

    def __init__(self, url: str | None = None, settings: Settings | None = None) -> None:
        self._client = AsyncClient(url, settings)

    def __enter__(self) -> Client:
        PORTAL.run(self._client.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; an embedded server leaves with its last user. The client opens again when it is used."""
        PORTAL.run(self._client.close())

    @overload
    def submit(
        self,
        agent: Agent[Output],
        task: str,
        *,
        session: str = "",
        tenant: str = "",
        idempotency_key: str = "",
        priority: Priority = "default",
        delay: float | None = None,
        at: datetime | None = None,
        budget: Budget | None = None,
        metadata: Mapping[str, object] | None = None,
        on_busy: OnBusy | str = OnBusy.ENQUEUE,
    ) -> RunHandle[Output]: ...
    @overload
    def submit(
        self,
        agent: str,
        task: str,
        *,
        session: str = "",
        tenant: str = "",
        idempotency_key: str = "",
        priority: Priority = "default",
        delay: float | None = None,
        at: datetime | None = None,
        budget: Budget | None = None,
        metadata: Mapping[str, object] | None = None,
        on_busy: OnBusy | str = OnBusy.ENQUEUE,
    ) -> RunHandle[object]: ...
    def submit(
        self,
        agent: str | Agent[Any],
        task: str,
        *,
        session: str = "",
        tenant: str = "",
        idempotency_key: str = "",
        priority: Priority = "default",
        delay: float | None = None,
        at: datetime | None = None,
        budget: Budget | None = None,
        metadata: Mapping[str, object] | None = None,
        on_busy: OnBusy | str = OnBusy.ENQUEUE,
    ) -> RunHandle[Any]:
        """Accepts a task. When this returns, the run is stored and will be done."""
        submitting = self._client.submit(
            agent,
            task,
            session=session,
            tenant=tenant,
            idempotency_key=idempotency_key,
            priority=priority,
            delay=delay,
            at=at,
            budget=budget,
            metadata=metadata,
            on_busy=on_busy,
        )
        return RunHandle(PORTAL.run(submitting))

    @overload
    def get(self, run_id: str, agent: Agent[Output]) -> RunHandle[Output]: ...
    @overload
    def get(self, run_id: str, agent: None = None) -> RunHandle[object]: ...
    def get(self, run_id: str, agent: Agent[Any] | None = None) -> RunHandle[Any]:
        """A run that was submitted before. With its agent, the result is typed."""
        return RunHandle(PORTAL.run(self._client.get(run_id, agent)))

    def runs(
        self,
        *,
        status: Status | str | None = None,
        agent: str = "",
        session: str = "",
        tenant: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        page: str = "",
    ) -> RunPage:
        """Runs, newest first."""
        listing = self._client.runs(
            status=status,
            agent=agent,
            session=session,
            tenant=tenant,
            since=since,
            until=until,
            limit=limit,
            page=page,
        )
        return PORTAL.run(listing)

    def session(self, session: str, *, tenant: str = "") -> Session:
        """A conversation, to look at what it remembers, or to make it forget."""
        return Session(self._client.session(session, tenant=tenant))

    def sessions(self, *, tenant: str = "", limit: int = 50, page: str = "") -> SessionPage:
        """Conversations, the last active first; of one tenant where it is given."""
        return PORTAL.run(self._client.sessions(tenant=tenant, limit=limit, page=page))

    def agents(self) -> list[AgentCard]:
        """The agents that workers have, by name."""
        return PORTAL.run(self._client.agents())

    def usage(self, *, days: int = 1) -> list[UsageRow]:
        """What was used today and on the days before, `days` in all (UTC); the newest first."""
        return PORTAL.run(self._client.usage(days=days))

    def limit_tenant(self, tenant: str, **limits: Unpack[TenantLimits]) -> None:
        """Limits what all runs of a tenant may use together, of all that they ever used; None takes a limit away."""
        PORTAL.run(self._client.limit_tenant(tenant, **limits))

    def tenant(self, tenant: str) -> dict[str, TenantUsage]:
        """What the runs of a tenant have used since its first, by the names of the limits there are."""
        return PORTAL.run(self._client.tenant(tenant))

    def workers(self) -> list[WorkerInfo]:
        """The worker processes."""
        return PORTAL.run(self._client.workers())
