"""From the ids that RQ hands out to runs that this worker owns: claims in one pipeline, their events in another."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import structlog
from redis.asyncio import Redis

from agent.errors import BrokenRecord, StoreUnavailable
from agent.events import RunClaimed, encode
from agent.state import SCHEMA_VERSION
from scheduler.histories import histories, read_history
from scheduler.lifecycle import ENDED
from scheduler.records import StoredEvent
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
        events: All of them, or why they cannot be read.
        sent: When the claim was sent, on the monotonic clock: the lease counts from here.
    """

    run: str
    queue: str
    activation: str
    claimed: Claimed
    events: Sequence[StoredEvent] | BrokenRecord
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
class Claims:
    """What came of a batch.

    Attributes:
        granted: Runs that are owned now.
        refused: Entries that RQ may forget: the records know when to ring.
        ended: Refused runs that have ended; why they were rung may be a wish that a person has.
    """

    granted: list[Claim]
    refused: list[Popped]
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

    async def claim(self, popped: Sequence[Popped], rooms: Rooms) -> Claims:
        """Claims what it can.

        Raises:
            StoreUnavailable: Redis did not answer for long. Claims that were granted run out by themselves.
        """
        requests = [_Request(one, secrets.token_hex(8)) for one in popped]
        sent = time.monotonic()
        granted, refused = await self._send(requests, rooms)
        suspects = [request for request, reply in refused if isinstance(reply, Refused) and reply.code == "suspect"]
        left = rooms.without([claimed.crashes for _, claimed in granted])
        if suspects and max(left) > 0:  # room was counted for the whole batch; there may be more of it for these alone
            refused = [(request, reply) for request, reply in refused if request not in suspects]
            more, still_refused = await self._send(suspects, left)
            granted, refused = granted + more, refused + still_refused
        for request, reply in refused:
            await self._explain(request, reply)
        histories_of = await self._histories(granted)
        return Claims(
            [
                Claim(request.one.run_id, request.one.queue, request.activation, claimed, history, sent)
                for (request, claimed), history in zip(granted, histories_of, strict=True)
            ],
            [request.one for request, _ in refused],
            [request.one.run_id for request, reply in refused if isinstance(reply, Refused) and reply.code in ENDED],
        )

    async def _histories(
        self, granted: Sequence[tuple["_Request", Claimed]]
    ) -> list[Sequence[StoredEvent] | BrokenRecord]:
        """The events of each run: most claims bring them along, long histories are read now."""
        runs = [request.one.run_id for request, claimed in granted if claimed.events is None]
        long = dict(
            zip(runs, await self._surely(lambda: histories(self._redis, self._scripts.keys, runs)), strict=True)
        )
        return [
            long[request.one.run_id] if claimed.events is None else read_history(request.one.run_id, claimed.events)
            for request, claimed in granted
        ]

    async def _send(
        self, requests: Sequence["_Request"], rooms: Rooms
    ) -> tuple[list[tuple["_Request", Claimed]], list[tuple["_Request", Refused | Exception]]]:
        """Sends claims together: those granted, and those refused. As many as there is room for may be of suspects."""
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
        granted: list[tuple[_Request, Claimed]] = []
        refused: list[tuple[_Request, Refused | Exception]] = []
        for request, reply in zip(requests, replies, strict=True):
            if isinstance(reply, Claimed):
                granted.append((request, reply))
            else:
                refused.append((request, reply))
        return granted, refused

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
