"""From the ids that RQ hands out to runs that this worker owns: claims in one pipeline."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import structlog
from redis.asyncio import Redis

from agent.errors import StoreUnavailable
from agent.events import RunClaimed, encode
from agent.state import SCHEMA_VERSION
from scheduler.lifecycle import ENDED
from scheduler.replies import Claimed, Refused
from scheduler.rq_bridge import Popped
from scheduler.scripting import run_many
from scheduler.scripts import Scripts
from scheduler.wire import Line
from worker.passing import PassedOn, pass_on

AGAIN_SECONDS: Final = 0.1
"""Pause before what Redis did not answer is sent again."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this worker owns from now on.

    Attributes:
        sent: When the claim was sent, on the monotonic clock: the lease counts from here.
    """

    run: str
    queue: str
    activation: str
    claimed: Claimed
    sent: float


class Rooms(NamedTuple):
    """What a worker has room for, by how often a run has crashed at its step."""

    for_one_crash: int
    for_more: int

    def without(self, crashes: Sequence[int]) -> "Rooms":
        """What is left beside runs that have crashed so often."""
        return Rooms(
            self.for_one_crash - sum(times == 1 for times in crashes),
            self.for_more - sum(times > 1 for times in crashes),
        )


@dataclass(frozen=True, slots=True)
class Refusals:
    """What was not granted of a batch.

    Attributes:
        entries: RQ may forget them: the records know when to ring.
        ended: Runs that have ended; why they were rung may be a wish that a person has.
    """

    entries: list[Popped]
    ended: list[str]


@dataclass(frozen=True, slots=True)
class _Request:
    """A claim on its way; the activation is made once, so that it may be sent again."""

    one: Popped
    activation: str


class Claimer:
    """Claims runs for one worker.

    Args:
        agents: The names of the agents that it has.
        line: For the claims; all else goes over the pool.
    """

    def __init__(
        self, redis: Redis, scripts: Scripts, *, worker: str, agents: Sequence[str], line: Line | None = None
    ) -> None:
        self._redis = redis
        self._to = line or redis
        self._scripts = scripts
        self._worker = worker
        self._agents = agents
        self._event = encode(RunClaimed(worker=worker))
        self._log = structlog.get_logger("pawl.claims")

    async def claim(self, popped: Sequence[Popped], rooms: Rooms, granted: Callable[[Claim], None]) -> Refusals:
        """Claims what it can.

        Args:
            granted: Called with each run that is owned from now on, at once: somebody has to renew its lease.

        Raises:
            StoreUnavailable: Redis did not answer for long. Claims that it granted unheard run out by themselves.
        """
        requests = [_Request(one, secrets.token_hex(8)) for one in popped]
        crashes, refused = await self._send(requests, rooms, granted)
        suspects = [request for request, reply in refused if isinstance(reply, Refused) and reply.code == "suspect"]
        left = rooms.without(crashes)
        if suspects and max(left) > 0:  # room was counted for the whole batch; there may be more of it for these alone
            refused = [(request, reply) for request, reply in refused if request not in suspects]
            _, still_refused = await self._send(suspects, left, granted)
            refused += still_refused
        for request, reply in refused:
            await self._explain(request, reply)
        return Refusals(
            [request.one for request, _ in refused],
            [request.one.run_id for request, reply in refused if isinstance(reply, Refused) and reply.code in ENDED],
        )

    async def _send(
        self, requests: Sequence["_Request"], rooms: Rooms, granted: Callable[[Claim], None]
    ) -> tuple[list[int], list[tuple["_Request", Refused | Exception]]]:
        """Sends claims together. As many as there is room for may be of suspects.

        Returns:
            The crashes of each run that was granted, and what was refused.
        """
        sent = time.monotonic()
        calls = [
            self._scripts.claim(
                request.one.run_id,
                activation=request.activation,
                worker=self._worker,
                newest_schema=SCHEMA_VERSION,
                event=self._event,
                agents=self._agents,
                room_for_one_crash=place < rooms.for_one_crash,
                room_for_more=place < rooms.for_more,
            )
            for place, request in enumerate(requests)
        ]
        replies = await self._surely(lambda: run_many(self._to, calls))
        crashes: list[int] = []
        refused: list[tuple[_Request, Refused | Exception]] = []
        for request, reply in zip(requests, replies, strict=True):
            if isinstance(reply, Claimed):
                crashes.append(reply.crashes)
                granted(Claim(request.one.run_id, request.one.queue, request.activation, reply, sent))
            else:
                refused.append((request, reply))
        return crashes, refused

    async def _surely(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        """Sends again what Redis did not answer, for as long as a lease: the runs may be this worker's by now."""
        deadline = time.monotonic() + self._scripts.policy.lease_ms / 1000
        while True:
            try:
                return await send()
            except StoreUnavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(AGAIN_SECONDS)

    async def _explain(self, request: "_Request", reply: Refused | Exception) -> None:
        """Says why a run was not taken; one that this worker cannot run is put off, with a reason that people see."""
        try:
            await self._pass_on_or_defer(request, reply)
        except StoreUnavailable as error:  # the next ring tries again
            self._log.warning("claim_not_explained", run=request.one.run_id, error=str(error))

    async def _pass_on_or_defer(self, request: "_Request", reply: Refused | Exception) -> None:
        one = request.one
        if isinstance(reply, Exception):
            self._log.error("claim_failed", run=one.run_id, error=f"{type(reply).__name__}: {reply}")
            return
        match reply.code:
            case "no_agent":
                passed = PassedOn(run=one.run_id, queue=one.queue, agent=reply.detail)
                if await pass_on(self._redis, self._scripts.keys, passed):
                    self._log.info("run_passed_on", run=one.run_id, agent=reply.detail)
                    return
                reason = f"no worker of queue {one.queue!r} has the agent {reply.detail!r}"
            case "newer":
                reason = f"it was written by a newer version (schema {reply.detail})"
            case "broken":
                self._log.error("record_broken", run=one.run_id, where=reply.detail)
                return
            case _:
                self._log.debug("claim_refused", run=one.run_id, why=reply.code, detail=reply.detail)
                return
        self._log.warning("run_deferred", run=one.run_id, reason=reason)
        await run_many(self._redis, [self._scripts.defer(one.run_id, deferral=request.activation, reason=reason)])
