"""Reads all that there is to know of runs, in two or three round trips however many they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from redis.asyncio import Redis

from agent.errors import BrokenRecord
from agent.events import RunClaimed, decode
from scheduler.client.run_info import Facts, RunInfo, Surroundings, info_of
from scheduler.keys import scoped
from scheduler.lifecycle import Status
from scheduler.records import RunRecord, read_event
from scheduler.replies import read_asks
from scheduler.rq_bridge import suspended
from scheduler.store import Store
from scheduler.wire import Reply, Value, array, ask, groups, number, text

_COMMANDS_A_RUN = 3


class Inspector:
    """Looks at runs.

    Args:
        served: Tells which agents workers have.
    """

    def __init__(self, redis: Redis, store: Store, served: Callable[[], Awaitable[Collection[str]]]) -> None:
        self._redis = redis
        self._store = store
        self._served = served

    async def info(self, run_id: str) -> RunInfo:
        """One run, with its result.

        Raises:
            RunNotFound, BrokenRecord, StoreUnavailable
        """
        record = await self._store.info(run_id)
        (facts,) = await self._facts([record])
        if record.ended:
            last = await self._store.last_event(run_id)
            facts = replace(facts, last_event=decode(last.body) if last else None)
        return info_of(record, facts, await self._surroundings(record, await self._common([record])))

    async def infos(self, records: Sequence[RunRecord]) -> tuple[list[RunInfo], list[str]]:
        """Many runs, without their results; and the ids of those that cannot be read.

        Raises:
            StoreUnavailable: Redis cannot be reached.
        """
        common = await self._common(records)
        infos: list[RunInfo] = []
        broken: list[str] = []
        for record, facts in zip(records, await self._facts(records), strict=True):
            try:
                infos.append(info_of(record, facts, await self._surroundings(record, common)))
            except BrokenRecord:
                broken.append(record.id)
        return infos, broken

    async def _facts(self, records: Sequence[RunRecord]) -> list[Facts]:
        keys = self._store.keys
        commands = [
            command
            for record in records
            for command in (
                ("XRANGE", keys.events(record.id), "2-0", "2-0"),
                ("ZSCORE", keys.due, record.id),
                ("HGETALL", keys.asks(record.id)),
            )
        ]
        replies = await ask(self._redis, *commands) if commands else []
        return [
            _facts_of(record.id, *reply)
            for record, reply in zip(records, groups(replies, _COMMANDS_A_RUN), strict=True)
        ]

    async def _common(self, records: Sequence[RunRecord]) -> Surroundings:
        """What is the same for all runs. Who serves which agent is looked at only where a run is queued."""
        now = await self._store.now()
        if not any(record.status is Status.QUEUED for record in records):
            return Surroundings(now)
        return Surroundings(now, await self._served(), await suspended(self._redis))

    async def _surroundings(self, record: RunRecord, common: Surroundings) -> Surroundings:
        if not record.behind:
            return common
        key = self._store.keys.session(scoped(record.tenant, record.session))
        (active,) = await ask(self._redis, ("HGET", key, "active"))
        return Surroundings(common.now, common.served, common.suspended, text(active) if active else "")


def _facts_of(run_id: str, second: Value, due: Value, asks: Value) -> Facts:
    """The first event is the submission; where a worker ever took the run, the second is its claim."""
    entries: Reply = array(second)
    claimed = read_event(run_id, entries[0]) if entries else None
    return Facts(
        claimed_at=claimed.at if claimed and isinstance(decode(claimed.body), RunClaimed) else None,
        due_at=number(text(due).partition(".")[0].encode()) if due else None,
        asks=read_asks(asks),
    )
