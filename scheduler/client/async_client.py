"""The client: submits runs and finds them again. It needs no agent code, only the name of an agent."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, Unpack, cast, overload

from agent.agent import Agent
from agent.budget import Budget
from agent.errors import BrokenRecord, ConfigurationError, StoreError
from scheduler.cards import AgentCard
from scheduler.client.async_handle import AsyncRunHandle
from scheduler.client.async_session import AsyncSession
from scheduler.client.outages import sent_again
from scheduler.client.run_info import RunInfo, moment
from scheduler.client.services import Services
from scheduler.client.session_reader import SessionPage
from scheduler.client.submission import Priority, Submission, Target, new_run
from scheduler.client.usage import UsageRow, rows_of
from scheduler.deployment import Deployment
from scheduler.inputs import NewRun
from scheduler.keys import name
from scheduler.lifecycle import Status
from scheduler.listing import Query
from scheduler.replies import Created
from scheduler.rq_bridge import RunJob, Standing, WorkerInfo, enqueue, mirror, restore_job, workers
from scheduler.run_ids import new_run_id
from scheduler.scripting import ScriptCall, run_many
from scheduler.sessions import OnBusy
from scheduler.settings import Settings
from scheduler.tenants import TenantLimits, TenantUsage, stored_limits, tenant_usage_of

Output = TypeVar("Output")


class UnknownAgentWarning(UserWarning):
    """A run was submitted to an agent that no worker has (yet). It stays queued until one has."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """Some runs, newest first. `broken`: ids of those that cannot be read. `next`: the place of the next page, or ''."""

    runs: tuple[RunInfo, ...]
    broken: tuple[str, ...]
    next: str


class AsyncClient:
    """Submits runs and finds them again. Safe to use from many tasks, after a fork, and on one event loop after another.

    Args:
        url: Which Redis. None: what `settings` say; without any, the private server of the user's data folder.
        settings: None: what the environment says (`PAWL_...`).

    Raises (at the first use, or on entering it as a context manager):
        StoreUnavailable: Redis cannot be reached or refuses; the message says what to do.
        ConfigurationError: A setting cannot be used, or there is no Redis to use.
    """

    def __init__(self, url: str | None = None, settings: Settings | None = None) -> None:
        self._url = url
        self._settings = settings
        self._deployment: Deployment | None = None
        self._opening: asyncio.Task[Services] | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._of_parent: list[object] = []

    async def __aenter__(self) -> AsyncClient:
        await self._services()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections; an embedded server leaves with its last user. The client opens again when it is used."""
        opening, self._opening = self._opening, None
        if opening is not None and self._is_at_home():
            with contextlib.suppress(StoreError, ConfigurationError):
                await (await opening).close()
        deployment, self._deployment = self._deployment, None
        if deployment is not None:
            deployment.close()

    @overload
    async def submit(
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
    ) -> AsyncRunHandle[Output]: ...
    @overload
    async def submit(
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
    ) -> AsyncRunHandle[object]: ...
    async def submit(
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
    ) -> AsyncRunHandle[Any]:
        """Accepts a task. When this returns, the run is stored and will be done.

        Args:
            agent: Its name, or the agent itself: then no worker needs to have published it, and the result is typed.
            session: The conversation that it belongs to; a tenant's runs of one session come one after another.
            idempotency_key: Submitting again with the same key gives the run of before.
            priority: `high` and `low` runs ring in queues of their own, unless the agent has a queue of its own.
            delay: Seconds until it may begin; `at`: the moment. At most one of the two.
            budget: Its limits, in place of the agent's.
            metadata: Whatever JSON shall be found again with the run; tools see it too.
            on_busy: Where another run of the session is active: `enqueue` behind it; `reject`; `interrupt` it, which keeps in
                the session's memory what it did; or `rollback`, which ends it and takes it out of the memory.

        Raises:
            Conflict: The idempotency key belongs to another task, or the session is busy and `on_busy` is `reject`.
            UnknownPriceError: A limit of cost for a model whose price is not known.
            TooLarge: The task is beyond its limit.
            ConfigurationError: An argument cannot be used.

        Warns:
            UnknownAgentWarning: No worker has this agent. The run waits for one.
        """
        submission = Submission(
            task=task,
            session=session,
            tenant=tenant,
            idempotency_key=idempotency_key,
            priority=_priority(priority),
            delay=delay,
            at=at,
            budget=budget,
            metadata=metadata or {},
            on_busy=_on_busy(on_busy),
        )
        services = await self._services()
        if isinstance(agent, Agent):
            target = Target.of_agent(agent, submission)
        else:
            target = await _target_of_name(services, agent, submission)
        new = new_run(new_run_id(), target, submission)
        standing = _standing_at_once(services, new)
        calls = _told_to_rq(services, new, standing, task) if standing else ()
        created = await sent_again(lambda: services.store.create(new, *calls))
        if created.code == "created" and not calls:
            await _tell_rq(services, new, created, task)
        return self._handle(created.run, agent if isinstance(agent, Agent) else None)

    @overload
    async def get(self, run_id: str, agent: Agent[Output]) -> AsyncRunHandle[Output]: ...
    @overload
    async def get(self, run_id: str, agent: None = None) -> AsyncRunHandle[object]: ...
    async def get(self, run_id: str, agent: Agent[Any] | None = None) -> AsyncRunHandle[Any]:
        """A run that was submitted before. With its agent, the result is typed.

        Raises:
            RunNotFound: It never existed, or its retention is over.
        """
        await (await self._services()).store.info(run_id)
        return self._handle(run_id, agent)

    async def runs(
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
        """Runs, newest first.

        Args:
            session: A tenant's own: give both.
            since, until: Limits of the time of submission.
            limit: At most 1,000.
            page: `next` of the page before.
        """
        query = Query(
            status=_status(status) if status else None,
            agent=agent,
            session=session,
            tenant=tenant,
            since=_milliseconds(since),
            until=_milliseconds(until),
        )
        services = await self._services()
        found = await services.listing.page(query, count=limit, after=page)
        infos, broken = await services.inspector.infos(found.runs)
        return RunPage(tuple(infos), (*found.broken, *broken), found.next)

    def session(self, session: str, *, tenant: str = "") -> AsyncSession:
        """A conversation, to look at what it remembers, or to make it forget. Nothing is read yet."""
        return AsyncSession(session, tenant, self._services)

    async def sessions(self, *, tenant: str = "", limit: int = 50, page: str = "") -> SessionPage:
        """Conversations, the last active first.

        Args:
            tenant: Of this tenant; '': of all.
            limit: At most 1,000.
            page: `next` of the page before.
        """
        return await (await self._services()).sessions.page(tenant, count=limit, after=page)

    async def agents(self) -> list[AgentCard]:
        """The agents that workers have, by name. A card that a newer version wrote in its own way is left out."""
        cards: list[AgentCard] = []
        for _, published in sorted((await (await self._services()).newest_cards()).items()):
            with contextlib.suppress(BrokenRecord):
                cards.append(AgentCard.of_bytes(published.card))
        return cards

    async def usage(self, *, days: int = 1) -> list[UsageRow]:
        """What was used today and on the days before, `days` in all (UTC); the newest first."""
        services = await self._services()
        today = moment(await services.store.now()).date()
        rows: list[UsageRow] = []
        for day in (today - timedelta(days=back) for back in range(days)):
            rows += rows_of(day, await services.ledgers.usage(day))
        return rows

    async def limit_tenant(self, tenant: str, **limits: Unpack[TenantLimits]) -> None:
        """Limits what all runs of a tenant may use together, of all that they ever used: a model call that would go beyond a
        limit is not made, and its run ends as `budget_exceeded`. Once the limit is raised, `resume` lets it go on.

        Args:
            limits: Such as `max_total_tokens=10_000` or `max_cost_usd="5"`; None takes a limit away; others stay as they are.
                With `max_cost_usd` no call is made whose price is not known.

        Raises:
            ConfigurationError: There is no such limit, or the tenant's name or an amount cannot be used.
        """
        stored = stored_limits(limits)
        await (await self._services()).ledgers.limit_tenant(name("tenant", tenant), stored)

    async def tenant(self, tenant: str) -> dict[str, TenantUsage]:
        """What the runs of a tenant have used since its first, by the names of the limits there are."""
        return tenant_usage_of(await (await self._services()).ledgers.tenant(name("tenant", tenant)))

    async def workers(self) -> list[WorkerInfo]:
        """The worker processes."""
        return await workers((await self._services()).redis)

    # ---- inside -----------------------------------------------------------------------------------------------------

    async def _services(self) -> Services:
        """Opened once for each process and event loop: neither sockets nor tasks can go along to another."""
        if self._opening is None or not self._is_at_home() or _has_failed(self._opening):
            if self._home is not None and self._home[0] != os.getpid():
                self._of_parent.append(self._opening)  # closing what is the parent's would disturb the parent
            self._home = (os.getpid(), asyncio.get_running_loop())
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    def _is_at_home(self) -> bool:
        return self._home == (os.getpid(), asyncio.get_running_loop())

    async def _open(self) -> Services:
        if self._deployment is None:
            settings = self._settings or Settings.from_environment()
            if self._url is not None:
                settings = replace(settings, redis_url=self._url)
            self._deployment = await asyncio.to_thread(Deployment, settings)
        services = Services(self._deployment)
        await services.open()
        return services

    def _handle(self, run_id: str, agent: Agent[Output] | None) -> AsyncRunHandle[Any]:
        return AsyncRunHandle(run_id, self._services, agent.result_of if agent else _as_it_is)


async def _target_of_name(services: Services, name: str, submission: Submission) -> Target:
    if not isinstance(cast(object, name), str):
        raise ConfigurationError(f"Submit to an Agent, or to the name of one, not to {type(name).__name__}.")
    card = await services.card(name)
    if card is not None:
        return Target.of_card(card, submission)
    alike = difflib.get_close_matches(name, set(await services.served()) - {name}, n=1)
    warnings.warn(
        f"no worker has the agent {name!r}{f', but one has {alike[0]!r}' if alike else ''}: the run stays queued until one "
        "has (`pawl agents` lists those there are; `pawl cancel` ends the run)",
        UnknownAgentWarning,
        stacklevel=3,
    )
    return Target(name)


def _standing_at_once(services: Services, new: NewRun) -> Standing | None:
    """Where a run stands once it is made, if that is known before: it waits for nothing and for nobody."""
    if new.session or new.at_ms is not None or new.delay_ms is not None:
        return None
    return _standing(services, new, since=datetime.now(UTC))


def _standing(
    services: Services, new: NewRun, *, since: datetime, due: float | None = None, behind: bool = False
) -> Standing:
    return Standing(
        run_id=new.id,
        queue=new.queue,
        status=Status.QUEUED,
        fence=0,
        since=since,
        retention_seconds=services.store.scripts.policy.run_retention_ms // 1000,
        due=due,
        behind=behind,
    )


def _told_to_rq(services: Services, new: NewRun, standing: Standing, task: str) -> tuple[ScriptCall[object], ...]:
    """The run's job, with the first ring where nothing is to be waited for."""
    job = RunJob(
        run_id=new.id,
        queue=new.queue,
        agent=new.agent,
        task=task,
        session=new.session,
        tenant=new.tenant,
        retention_seconds=standing.retention_seconds,
    )
    waits = standing.behind or standing.due is not None
    made = restore_job(services.keys, job) if waits else enqueue(services.keys, job)
    return made, mirror(services.keys, standing)


async def _tell_rq(services: Services, new: NewRun, created: Created, task: str) -> None:
    """Where this fails the run is safe: a sweep rings it in a few seconds."""
    start = new.at_ms if new.delay_ms is None else created.now + new.delay_ms
    due = None if start is None else start / 1000
    standing = _standing(services, new, since=moment(created.now), due=due, behind=created.behind)
    with contextlib.suppress(StoreError):
        await run_many(services.redis, _told_to_rq(services, new, standing, task))
    if created.cancelled:
        await services.tell_rq(created.cancelled)


def _as_it_is(output: object) -> object:
    return output


def _has_failed(opening: asyncio.Task[Services]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


def _milliseconds(value: datetime | None) -> int | None:
    if value is None:
        return None
    return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)


def _status(value: Status | str) -> Status:
    try:
        return Status(value)
    except ValueError:
        raise ConfigurationError(f"There is no status {value!r}: use {', '.join(Status)}.") from None


def _on_busy(value: OnBusy | str) -> OnBusy:
    try:
        return OnBusy(value)
    except ValueError:
        raise ConfigurationError(f"There is no on_busy {value!r}: use {', '.join(OnBusy)}.") from None


def _priority(value: Priority) -> Priority:
    if value not in ("high", "default", "low"):
        raise ConfigurationError(f"There is no priority {value!r}: use high, default or low.")
    return value
