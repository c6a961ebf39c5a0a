"""Reads what tells whether a deployment is well. What it means is said in `health.py`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent.errors import BrokenRecord
from scheduler.cards import AgentCard
from scheduler.client.inspector import Inspector
from scheduler.client.run_info import RunInfo
from scheduler.lifecycle import Status
from scheduler.listing import Listing
from scheduler.published import Cards
from scheduler.rq_bridge import WorkerInfo, queue_lengths, suspended, workers
from scheduler.store import Store
from scheduler.wire import Value, array, ask, number, send, text

MOST_QUEUED = 200
"""Queued runs that are looked at, those that have waited longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What was seen.

    Attributes:
        prefix: What begins the keys of this deployment.
        server: The fields of Redis' INFO.
        config: Those of its settings that it tells; some services tell none.
        clock_difference: Seconds that this machine's clock is ahead of Redis'.
        queue_lengths: Rings in each of RQ's queues.
        cards: The agents that workers have; None where the card cannot be read.
        waiting_longest: Queued runs, the one that has waited longest first.
    """

    prefix: str
    server: Mapping[str, str]
    config: Mapping[str, str]
    clock_difference: float
    workers: tuple[WorkerInfo, ...]
    suspended: bool
    queue_lengths: Mapping[str, int]
    cards: Mapping[str, AgentCard | None]
    counts: Mapping[Status, int]
    waiting_longest: tuple[RunInfo, ...]


async def read_vitals(redis: Redis, store: Store) -> Vitals:
    """Looks at everything once.

    Raises:
        StoreUnavailable: Redis cannot be reached or refuses.
    """
    sent = time.time()
    (clock,) = await ask(redis, ("TIME",))
    seconds, microseconds = array(clock)
    middle = (sent + time.time()) / 2
    published = await Cards(redis, store.keys).all()
    listing = Listing(store)

    async def served() -> set[str]:
        return set(published)

    queued = await listing.longest_in(Status.QUEUED, MOST_QUEUED)
    infos, _ = await Inspector(redis, store, served).infos(queued)
    return Vitals(
        prefix=store.keys.prefix,
        server=await _server(redis),
        config=await _config(redis),
        clock_difference=middle - (number(seconds) + number(microseconds) / 1e6),
        workers=tuple(await workers(redis)),
        suspended=await suspended(redis),
        queue_lengths=await queue_lengths(redis),
        cards={agent: _card(one.card) for agent, one in published.items()},
        counts=await listing.counts(),
        waiting_longest=tuple(infos),
    )


async def _server(redis: Redis) -> dict[str, str]:
    (found,) = await ask(redis, ("INFO",))
    lines = (line.partition(":") for line in text(found).splitlines() if ":" in line)
    return {name: value for name, _, value in lines}


async def _config(redis: Redis) -> dict[str, str]:
    names = ("save", "appendfsync", "maxmemory-policy", "min-replicas-to-write", "min-slaves-to-write")
    replies = await send(redis, [("CONFIG", "GET", name) for name in names])
    found: dict[str, str] = {}
    for reply in replies:
        if not isinstance(reply, ResponseError):
            flat = [text(value) for value in cast("list[Value]", reply)]
            found.update(zip(flat[::2], flat[1::2], strict=True))
    return found


def _card(data: bytes) -> AgentCard | None:
    try:
        return AgentCard.of_bytes(data)
    except BrokenRecord:
        return None
