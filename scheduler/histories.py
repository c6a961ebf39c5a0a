"""The whole history of many runs in one pipeline: what a worker reads of the runs that it has just claimed."""

from collections.abc import Sequence
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from scheduler.keys import Keys
from scheduler.records import StoredEvent
from scheduler.unavailable import mapped


async def histories(redis: Redis, keys: Keys, runs: Sequence[str]) -> list[list[StoredEvent]]:
    """All events of each run, in order. The caller owns the runs, so that nothing is added meanwhile.

    Raises:
        StoreUnavailable: Redis did not answer.
        BrokenRecord: A stream is not one.
    """
    if not runs:
        return []
    try:
        async with redis.pipeline(transaction=False) as pipeline:
            for run in runs:
                pipeline.xrange(keys.events(run))
            replies = cast("list[Any]", await pipeline.execute())
    except (RedisError, OSError) as error:
        raise mapped(error) from error
    return [[_stored(entry, fields) for entry, fields in entries] for entries in replies]


def _stored(entry: bytes, fields: dict[bytes, bytes]) -> StoredEvent:
    return StoredEvent(int(entry.partition(b"-")[0]), int(fields[b"t"]), fields[b"b"])
