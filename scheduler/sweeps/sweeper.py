"""The loop of sweeps: one look at what is over, then the mends."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.errors import StoreError
from scheduler.loggers import get_logger
from scheduler.replies import Swept
from scheduler.rq_bridge import forget_expired
from scheduler.scripting import run
from scheduler.store import Store
from scheduler.sweeps.leases import Reaper
from scheduler.sweeps.mirror import Mender
from scheduler.sweeps.rings import Ringer

BUSY_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 1.0
TEND_EVERY: Final = 5
"""Passes between two looks at RQ's books."""

SWEEPS_IN_A_LEASE: Final = 4
"""At least so many passes within a lease: a gap of half a lease counts as a pause, in which nobody is reaped."""

RETENTION_SECONDS: Final = 60.0


class Sweeper:
    """Sweeps until it is cancelled.

    Args:
        queues: Whose books are kept.
        busy: Whether this process has runs; it then looks twice as often.
    """

    def __init__(
        self, redis: Redis, store: Store, queues: Sequence[str], *, busy: Callable[[], bool] = lambda: False
    ) -> None:
        self._redis = redis
        self._store = store
        self._queues = queues
        self._busy = busy
        self.ringer = Ringer(redis, store)
        self.reaper = Reaper(redis, store, self.ringer)
        self.mender = Mender(redis, store, self.ringer)
        self._longest = store.scripts.policy.lease_ms / 1000 / SWEEPS_IN_A_LEASE
        self._passes = 0
        self._retained = time.monotonic()
        self._log = get_logger("pawl.sweeps")

    async def sweep(self) -> None:
        """Sweeps for ever. An outage of Redis is waited out."""
        outage = False
        while True:
            try:
                await self.once()
                outage = False
            except (StoreError, RedisError, OSError) as error:
                if not outage:
                    self._log.warning("sweep_failed", error=str(error))
                outage = True
            await asyncio.sleep(min(BUSY_SECONDS if self._busy() else IDLE_SECONDS, self._longest))

    async def once(self) -> Swept:
        """One bounded pass.

        Raises:
            StoreUnavailable: Redis did not answer.
        """
        self._passes += 1
        tend = self._passes % TEND_EVERY == 0
        swept = await run(self._redis, self._store.scripts.sweep(most_tended=100 if tend else 0))
        if swept.code == "amnesty":
            self._log.info("amnesty", why="nobody swept for a while: every owner of a run gets the time to renew")
        if swept.expired:
            await self.reaper.reap(swept.expired, why="its lease ran out")
        await self.ringer.ring(swept.rings)
        for run_id in swept.unmirrored:
            await self.mender.mend(run_id)
        if tend:
            for queue in self._queues:
                await self.mender.hear_cancels(queue)
            if time.monotonic() - self._retained > RETENTION_SECONDS:
                self._retained = time.monotonic()
                for queue in self._queues:
                    await forget_expired(self._redis, queue)
        return swept
