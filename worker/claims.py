"""From the ids that RQ hands out to runs that this worker owns: claims in one pipeline, their events in another."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from redis.asyncio import Redis

from agent.events import RunClaimed, encode
from agent.state import SCHEMA_VERSION
from scheduler.histories import histories
from scheduler.lifecycle import ENDED
from scheduler.records import StoredEvent
from scheduler.replies import Claimed, Refused
from scheduler.rq_bridge import Popped
from scheduler.scripting import run_many
from scheduler.scripts import Scripts


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
    events: Sequence[StoredEvent]
    sent: float


@dataclass(frozen=True, slots=True)
class Rooms:
    """What a worker has room for, by how often a run has crashed at its step."""

    for_one_crash: int
    for_more: int


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


class Claimer:
    """Claims runs for one worker.

    Args:
        agents: The names of the agents that it has.
    """

    def __init__(self, redis: Redis, scripts: Scripts, *, worker: str, agents: Sequence[str]) -> None:
        self._redis = redis
        self._scripts = scripts
        self._worker = worker
        self._agents = agents
        self._event = encode(RunClaimed(worker=worker))
        self._log = structlog.get_logger("pawl.claims")

    async def claim(self, popped: Sequence[Popped], rooms: Rooms) -> Claims:
        """Claims what it can.

        Raises:
            StoreUnavailable: Redis did not answer. Claims that were granted run out by themselves.
        """
        activations = [secrets.token_hex(8) for _ in popped]
        sent = time.monotonic()
        replies = await run_many(
            self._redis,
            [
                self._scripts.claim(
                    run,
                    activation=activation,
                    worker=self._worker,
                    newest_schema=SCHEMA_VERSION,
                    event=self._event,
                    agents=self._agents,
                    # Room is counted before the batch: of the runs with crashes, at most one comes in each.
                    room_for_one_crash=rooms.for_one_crash > 0 and len(popped) <= rooms.for_one_crash,
                    room_for_more=rooms.for_more > 0 and len(popped) == 1,
                )
                for (run, _), activation in zip(popped, activations, strict=True)
            ],
        )
        granted: list[tuple[Popped, str, Claimed]] = []
        refused: list[Popped] = []
        ended: list[str] = []
        for one, activation, reply in zip(popped, activations, replies, strict=True):
            if isinstance(reply, Claimed):
                granted.append((one, activation, reply))
            else:
                refused.append(one)
                if isinstance(reply, Refused) and reply.code in ENDED:
                    ended.append(one.run_id)
                await self._explain(one, activation, reply)
        events = await histories(self._redis, self._scripts.keys, [one.run_id for one, _, _ in granted])
        claims = [
            Claim(one.run_id, one.queue, activation, claimed, history, sent)
            for (one, activation, claimed), history in zip(granted, events, strict=True)
        ]
        return Claims(claims, refused, ended)

    async def _explain(self, one: Popped, activation: str, reply: Refused | Exception) -> None:
        """Says why a run was not taken; one that this worker cannot run is put off, with a reason that people see."""
        if isinstance(reply, Exception):
            self._log.error("claim_failed", run=one.run_id, error=f"{type(reply).__name__}: {reply}")
            return
        match reply.code:
            case "no_agent":
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
        await run_many(self._redis, [self._scripts.defer(one.run_id, deferral=activation, reason=reason)])
