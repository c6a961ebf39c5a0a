"""Walks an index, a zset that is scored by time, from the newest entry to the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redis.asyncio import Redis

from scheduler.wire import ask, groups, text


class Entry(NamedTuple):
    """A member of an index, and its time in ms."""

    at: int
    member: str


async def newest(
    redis: Redis,
    index: str,
    count: int,
    *,
    behind: Entry | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Sequence[Entry]:
    """The next entries, at most `count`; those of one millisecond by name, the last first.

    Args:
        behind: The entry that the walk has reached; it need not be there any more.
        since, until: Limits of the time, `since` included, `until` not.
    """
    lowest = "-inf" if since is None else since
    highest: str | int = "+inf" if until is None else f"({until}"
    if behind is not None:
        highest = behind.at
    entries: list[Entry] = []
    offset = 0
    while len(entries) < count:
        command = ("ZREVRANGEBYSCORE", index, highest, lowest, "WITHSCORES", "LIMIT", offset, count)
        (found,) = await ask(redis, command)
        chunk = [Entry(int(float(text(score))), text(member)) for member, score in groups(found, 2)]
        entries += [entry for entry in chunk if behind is None or entry < behind]
        offset += count
        if len(chunk) < count:
            break
    return entries[:count]
