"""Watches over the actors of one worker process: starts them, keeps RQ's books in step, makes room, drains."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog
from redis.exceptions import RedisError

from agent.errors import StoreError
from agent.mailbox import Cancel, Leave, Look
from agent.redaction import redact
from agent.report import Observer
from scheduler.lifecycle import Status
from scheduler.policy import Policy
from scheduler.replies import Flag, ToRing
from scheduler.rq_bridge import Standing
from scheduler.scripts import Scripts
from scheduler.sweeps.mirror import Mender
from scheduler.sweeps.rings import Ringer
from worker.actor import Ended, RunActor, ServedAgent
from worker.batches import Batches
from worker.claims import Claim, Rooms
from worker.durability import Durability
from worker.journal import RedisJournal
from worker.leases import Lease, LeaseKeeper
from worker.recall import Recall
from worker.rq_worker import AgentWorker

ROOM_FOR_ONE_CRASH: Final = 32
"""Runs with one crash at their step that share a process; of those with more there is one."""

HAND_OVER_SECONDS: Final = 5.0
"""How long Redis may take to answer to a drain."""

SLICE_SECONDS: Final = 5.0
"""A run that has been here for less is not asked to make room for others."""


class Supervisor:
    """The actors of one process.

    Attributes:
        draining: It takes no more runs.

    Args:
        concurrency: How many runs are moved at once.
        observer: Makes what hears of the steps of a claimed run.
        max_steps: Steps after which an activation gives its run back; None: no limit.
    """

    def __init__(
        self,
        served: Mapping[str, ServedAgent],
        scripts: Scripts,
        batches: Batches,
        face: AgentWorker,
        *,
        durability: Durability,
        recall: Recall,
        ringer: Ringer,
        mender: Mender,
        concurrency: int,
        observer: Callable[[Claim], Observer],
        max_steps: int | None = None,
    ) -> None:
        self._served = served
        self._scripts = scripts
        self._batches = batches
        self._face = face
        self._durability = durability
        self._recall = recall
        self._ringer = ringer
        self._mender = mender
        self._concurrency = concurrency
        self._observer = observer
        self._max_steps = max_steps
        self._actors: dict[str, RunActor] = {}  # by activation: a run may be claimed anew before its old actor is gone
        self._afterwards: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.draining = False
        self._log = structlog.get_logger("pawl.supervisor")
        self.keeper: LeaseKeeper | None = None

    @property
    def room(self) -> int:
        """How many more runs this process takes."""
        return 0 if self.draining else max(self._concurrency - len(self._actors), 0)

    @property
    def rooms(self) -> Rooms:
        """What there is room for, by crashes."""
        return Rooms(ROOM_FOR_ONE_CRASH, 1).without([actor.crashes for actor in self._actors.values()])

    @property
    def running(self) -> int:
        """How many runs are being moved."""
        return len(self._actors)

    async def changed(self) -> None:
        """Returns when an actor has ended. To be awaited as it stands: what ends before it waits goes unnoticed."""
        self._changed.clear()
        await self._changed.wait()

    def start(self, claim: Claim) -> None:
        """Starts the actor of a claimed run."""
        assert self.keeper is not None, "the supervisor has no lease keeper yet"  # noqa: S101
        claimed = claim.claimed
        lease = Lease(claim.run, claimed.token)
        lease.granted(claim.sent, self._scripts.policy.lease_ms / 1000)
        served = self._served[claimed.agent]
        journal = RedisJournal(
            claimed,
            lease,
            self._scripts,
            self._batches,
            model=served.program.model.name,
            durability=self._durability,
            promoted=self._ring,
        )
        actor = RunActor(
            claim,
            served,
            journal,
            lease,
            recall=self._recall,
            observer=self._observer(claim),
            max_steps=self._max_steps,
        )
        self._actors[claim.activation] = actor
        self.keeper.hold(lease)
        self._face.started(self._standing(claim, Status.RUNNING, since_ms=claimed.now), claim.activation)
        actor.start(self._ended)
        if self.draining:
            actor.tell(Leave("drain"))

    def make_room(self, wanted: int) -> None:
        """Asks the runs that have been here longest to give up their places at their next step."""
        now = time.monotonic()
        longest = sorted(self._actors.values(), key=lambda actor: actor.since)
        for actor in longest[:wanted]:
            if now - actor.since >= SLICE_SECONDS:
                actor.tell(Leave("yield"))

    def has(self, run: str) -> bool:
        """Whether this process moves the run."""
        return any(actor.claim.run == run for actor in self._actors.values())

    def tell(self, run: str, message: Cancel | Leave) -> None:
        """Tells a run's actor what somebody wants of it."""
        for actor in self._actors.values():
            if actor.claim.run == run:
                actor.tell(message)

    def lost(self, lease: Lease) -> None:
        """A run belongs to somebody else now."""
        for actor in self._actors.values():
            if actor.lease is lease:
                actor.lose()

    def flagged(self, lease: Lease, flag: Flag) -> None:
        """A run has news: a cancel, or something in its inbox, which a commit brings."""
        for actor in self._actors.values():
            if actor.lease is lease:
                actor.tell(Cancel(flag.cancel) if flag.cancel else Look(flag.unread))

    async def drain(self, grace: float) -> None:
        """Lets every run finish its step, for up to `grace` seconds; what is left is handed over at once, nothing lost."""
        self.draining = True
        for actor in list(self._actors.values()):
            actor.tell(Leave("drain"))
        await self._until_empty(grace)
        if self._actors:
            left = list(self._actors.values())
            self._log.info("handing_over", runs=len(left))
            for actor in left:
                actor.tell(Leave("drain", at_once=True))
            await self._until_empty(HAND_OVER_SECONDS)
        if self._actors:
            self._log.error("left_behind", runs=len(self._actors), why="Redis does not answer; their leases run out")
        elif self._afterwards:
            await asyncio.wait(self._afterwards, timeout=HAND_OVER_SECONDS)

    async def _until_empty(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._actors:
                    await self.changed()

    def _ended(self, actor: RunActor, ended: Ended) -> None:
        claim = actor.claim
        del self._actors[claim.activation]
        if self.keeper is not None:
            self.keeper.drop(actor.lease)
        self._changed.set()
        after = asyncio.create_task(self._afterwards_of(claim, ended))
        self._afterwards.add(after)
        after.add_done_callback(self._afterwards.discard)

    async def _afterwards_of(self, claim: Claim, ended: Ended) -> None:
        """RQ is told, and a run that is queued again is rung. Both would be made good by a sweep."""
        try:
            if ended.status is None:
                await self._face.lost(claim.activation)
                return
            told = self._face.ended(self._standing(claim, ended.status, ended=ended), claim.activation)
            if ended.status is Status.QUEUED and not ended.delay_ms:
                await self._ringer.ring([ToRing(claim.run, claim.queue)])
            await self._mender.fulfil(claim.run, await told)
        except (StoreError, RedisError, OSError) as error:
            self._log.warning("rq_lags", run=claim.run, error=str(error))

    def _ring(self, run: str) -> None:
        """Rings the next run of a session, whose turn has come."""
        ringing = asyncio.create_task(self._ring_next(run))
        self._afterwards.add(ringing)
        ringing.add_done_callback(self._afterwards.discard)

    async def _ring_next(self, run: str) -> None:
        try:
            await self._ringer.ring_next(run)
        except StoreError as error:
            self._log.warning("not_rung", run=run, error=str(error))  # a sweep rings it

    def _standing(
        self, claim: Claim, status: Status, *, since_ms: int | None = None, ended: Ended | None = None
    ) -> Standing:
        now = datetime.now(UTC)
        due = None
        if ended is not None and ended.delay_ms:
            due = now.timestamp() + ended.delay_ms / 1000
        return Standing(
            run_id=claim.run,
            queue=claim.queue,
            status=status,
            fence=int(claim.claimed.token.partition(":")[0]),
            since=now if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC),
            retention_seconds=retention_seconds(self._scripts.policy),
            due=due,
            reason=redact(ended.reason) if ended else "",
        )


def retention_seconds(policy: Policy) -> int:
    """How long RQ keeps the job of an ended run: as long as the record is kept."""
    return policy.run_retention_ms // 1000
