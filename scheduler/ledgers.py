"""What was used, is held, and may be used: by day for all runs, and by tenant. And what workers publish of their agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from redis.asyncio import Redis

from scheduler.keys import Keys, Ledger
from scheduler.wire import Command, ask, number, pairs, text


@dataclass(frozen=True, slots=True)
class Counter:
    """One field of a ledger, in the unit of its writer. `limit`: None where there is none."""

    used: int = 0
    held: int = 0
    limit: int | None = None


class Ledgers:
    """Reads ledgers and sets limits; runs write to them in their commits."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def usage(self, day: date) -> Mapping[str, Counter]:
        """What all runs used on a day (UTC), by field."""
        return await self._read(self._keys.usage(day))

    async def tenant(self, tenant: str) -> Mapping[str, Counter]:
        """What a tenant used, holds and may use, by field."""
        return await self._read(self._keys.tenant(tenant))

    async def limit_tenant(self, tenant: str, limits: Mapping[str, int | None]) -> None:
        """From now on a reservation that would exceed one of these limits, by field, is refused; None: no limit."""
        key = self._keys.tenant(tenant).key
        given = [part for field, limit in limits.items() if limit is not None for part in (f"limit:{field}", limit)]
        gone = [f"limit:{field}" for field, limit in limits.items() if limit is None]
        commands: list[Command] = []
        if given:
            commands.append(("HSET", key, *given))
        if gone:
            commands.append(("HDEL", key, *gone))
        await ask(self._redis, *commands)

    async def _read(self, ledger: Ledger) -> Mapping[str, Counter]:
        (found,) = await ask(self._redis, ("HGETALL", ledger.key))
        counters: dict[str, Counter] = {}
        for name, value in pairs(found):
            part, _, field = text(name).partition(":")
            counters[field] = replace(counters.get(field, Counter()), **{part: number(value)})
        return counters
