"""The whole history of many runs, page by page: what a worker reads of a run that it has claimed, and of the session's others.

A page is small enough to come within a connection's limit of time: events may be large, and the way to Redis slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent.errors import BrokenRecord
from scheduler.keys import Keys
from scheduler.records import StoredEvent, read_event
from scheduler.wire import Value, array, send

FIRST_PAGE: Final = 50
LARGEST_PAGE: Final = 1_000
LITTLE_BYTES: Final = 1_000_000
MUCH_BYTES: Final = 4_000_000


async def pages(
    redis: Redis, keys: Keys, places: Sequence[tuple[str, int]], count: int
) -> list[list[StoredEvent] | BrokenRecord]:
    """The next events of each run, at most `count` of each; BrokenRecord in the place of those that cannot be read.

    Args:
        places: Runs, and the numbers of the events to read on behind.

    Raises:
        StoreUnavailable: Redis did not answer.
    """
    replies = await send(
        redis, [("XRANGE", keys.events(run), f"({after}-0", "+", "COUNT", count) for run, after in places]
    )
    return [read_history(run, reply) for (run, _), reply in zip(places, replies, strict=True)]


def next_count(count: int, size: int) -> int:
    """How many events of each run to read next, where so many came to `size` bytes."""
    if size > MUCH_BYTES:
        return fewer(count)
    return min(count * 4, LARGEST_PAGE) if size < LITTLE_BYTES else count


def fewer(count: int) -> int:
    """How many events to read where so many were too much."""
    return max(count // 4, 1)


def read_history(run: str, reply: Value | ResponseError) -> list[StoredEvent] | BrokenRecord:
    """Events of a run, in order, from what its stream holds; BrokenRecord where that cannot be read."""
    if isinstance(reply, ResponseError):
        return BrokenRecord(f"The events of run {run!r} cannot be read: {reply}")
    try:
        return [read_event(run, entry) for entry in array(reply)]
    except BrokenRecord as broken:
        return broken
