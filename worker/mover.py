"""Moves one run in the calling process, as a worker would: claimed, under a lease, committed step by step.

RQ's queues are not looked at. The run is fenced like any other: if this process dies, its lease runs out, and whoever sweeps
next queues the run again for the workers that have its agent.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

import structlog

from agent.errors import ConfigurationError
from agent.mailbox import Cancel, Leave
from agent.report import Observer, StepReport
from scheduler.client.run_info import REQUEST_WAITS
from scheduler.client.services import Services
from scheduler.lifecycle import Status
from scheduler.replies import Flag
from scheduler.rq_bridge import Popped
from scheduler.sweeps import Sweeper
from worker.actor import Ended, RunActor, ServedAgent
from worker.batches import Batches
from worker.cancelling import cancelled
from worker.claims import Claim, Claimer, Rooms
from worker.durability import Durability
from worker.journal import RedisJournal
from worker.leases import Lease, LeaseKeeper
from worker.recall import Recall
from worker.steplog import StepLog

LOOK_AGAIN_SECONDS: Final = 0.2
HAND_OVER_SECONDS: Final = 10.0

_ROOM: Final = Rooms(for_one_crash=1, for_more=1)


class Mover:
    """Moves a run of one deployment, once.

    Args:
        name: What the record calls the one who moves the run.
        observer: Hears of every step.
    """

    def __init__(
        self, services: Services, run_id: str, served: ServedAgent, *, name: str, observer: Observer | None = None
    ) -> None:
        settings = services.deployment.settings
        self._services = services
        self._run_id = run_id
        self._served = served
        self._name = name
        self._observer = observer
        self._scripts = services.store.scripts
        self._durability = Durability(services.redis, services.keys, settings.sync_effects)
        self._keeper = LeaseKeeper(
            self._scripts,
            services.deployment.connect_blocking,
            renew_seconds=settings.renew_seconds,
            stall_limit=settings.stall_limit_seconds,
            lost=lambda lease: self._actor.lose() if self._actor else None,
            flagged=self._flagged,
        )
        self._actor: RunActor | None = None
        self._ringing: set[asyncio.Task[None]] = set()

    async def move(self) -> None:
        """Moves the run until it has ended or waits for a person. While somebody else moves it, it is waited for.

        Raises:
            ConfigurationError: It is a run of another agent.
            StoreUnavailable: Redis cannot be reached; the run goes on elsewhere, or when it is moved again.
        """
        record = await self._services.store.info(self._run_id)
        agent = self._served.program.name
        if record.agent != agent:
            raise ConfigurationError(f"Run {self._run_id} is of agent {record.agent!r}, not of {agent!r}.")
        claimer = Claimer(self._services.redis, self._scripts, worker=self._name, agents=[agent])
        async with self._upkeep(record.queue):
            while not (record.ended or (record.status is Status.WAITING and record.wait in REQUEST_WAITS)):
                granted: list[Claim] = []
                await claimer.claim([Popped(self._run_id, record.queue)], _ROOM, granted.append)
                for claim in granted:
                    await self._live(claim)
                if not granted:
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
                record = await self._services.store.info(self._run_id)
        await self._services.tell_rq(self._run_id)

    async def _live(self, claim: Claim) -> None:
        """One activation, from the claim to the departure."""
        lease = Lease(claim.run, claim.claimed.token)
        lease.granted(claim.sent, self._scripts.policy.lease_ms / 1000)
        journal = RedisJournal(
            claim.claimed,
            lease,
            self._scripts,
            Batches(self._services.redis),
            model=self._served.program.model.name,
            durability=self._durability,
            promoted=self._ring,
        )
        recall = Recall(self._services.redis, self._services.keys)
        log = StepLog(claim, self._name) if structlog.is_configured() else None
        heard = _Observers(self._observer, log)
        self._actor = RunActor(claim, self._served, journal, lease, recall=recall, observer=heard, max_steps=None)
        self._keeper.hold(lease)
        departure: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._actor.start(lambda _, ended: departure.set_result(ended))
        try:
            await asyncio.shield(departure)
        except asyncio.CancelledError:  # nothing is lost: the run is given back
            self._actor.tell(Leave("drain", at_once=True))
            await asyncio.wait([departure], timeout=HAND_OVER_SECONDS)
            raise
        finally:
            self._keeper.drop(lease)

    @contextlib.asynccontextmanager
    async def _upkeep(self, queue: str) -> AsyncGenerator[None]:
        """Leases are renewed and waits end meanwhile, also where there is no worker that sweeps."""
        sweeper = Sweeper(self._services.redis, self._services.store, [queue], busy=lambda: True)
        sweeping = asyncio.create_task(sweeper.sweep())
        self._keeper.start()
        try:
            yield
        finally:
            await cancelled(sweeping, *self._ringing)
            await asyncio.to_thread(self._keeper.close)

    def _flagged(self, lease: Lease, flag: Flag) -> None:
        if self._actor and flag.cancel:
            self._actor.tell(Cancel(flag.cancel))

    def _ring(self, run_id: str) -> None:
        """The session's next run is for workers. A sweep would tell them a little later."""
        ringing = asyncio.create_task(self._services.ring(run_id))
        self._ringing.add(ringing)
        ringing.add_done_callback(self._ringing.discard)


class _Observers:
    """Several observers as one."""

    def __init__(self, *observers: Observer | None) -> None:
        self._observers = [observer for observer in observers if observer is not None]

    def step(self, report: StepReport) -> None:
        """Tells all of them."""
        for observer in self._observers:
            observer.step(report)
