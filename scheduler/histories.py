"""The whole history of many runs in one pipeline: what a worker reads of the runs that it has just claimed."""

from __future__ import annotations

from collections.abc import Sequence

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent.errors import BrokenRecord
from scheduler.keys import Keys
from scheduler.records import StoredEvent, read_event
from scheduler.wire import Value, array, send


async def histories(redis: Redis, keys: Keys, runs: Sequence[str]) -> list[list[StoredEvent] | BrokenRecord]:
    """All events of each run, in order; BrokenRecord in the place of those that cannot be read.

    The caller owns the runs, so that nothing is added meanwhile.

    Raises:
        StoreUnavailable: Redis did not answer.
    """
    if not runs:
        return []
    replies = await send(redis, [("XRANGE", keys.events(run), "-", "+") for run in runs])
    return [read_history(run, reply) for run, reply in zip(runs, replies, strict=True)]


def read_history(run: str, reply: Value | ResponseError) -> list[StoredEvent] | BrokenRecord:
    """All events of a run, in order, from what its stream holds; BrokenRecord where that cannot be read."""
    if isinstance(reply, ResponseError):
        return BrokenRecord(f"The events of run {run!r} cannot be read: {reply}")
    try:
        return [read_event(run, entry) for entry in array(reply)]
    except BrokenRecord as broken:
        return broken
