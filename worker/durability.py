"""How safe the record of a tool's start is before the tool starts: the setting `sync_effects`.

Without it, a loss of power within the second until Redis syncs its file can take back the commit that says "started", and the
tool is executed again although it took effect. With `aof` the start waits for the disk, with `replica` for a replica.
"""

import asyncio
from typing import Final, Literal

import structlog
from redis.asyncio import Redis

from agent.errors import ConfigurationError, StoreError
from scheduler.keys import Keys
from scheduler.wire import array, ask, number

TIMEOUT_MS: Final = 2_000
PAUSE_SECONDS: Final = 0.2

_NEEDS: Final = {
    "aof": "It needs appendonly yes and Redis 7.2, or any Valkey; with appendfsync always, off is as safe.",
    "replica": "It needs a primary with replicas.",
}


class Durability:
    """Waits until what was written is safe.

    Args:
        mode: `off`, `aof` (the server's own disk) or `replica` (one replica has it).
    """

    def __init__(self, redis: Redis, keys: Keys, mode: Literal["off", "aof", "replica"]) -> None:
        self._redis = redis
        self._keys = keys
        self._mode = mode
        self._log = structlog.get_logger("pawl.durability")

    async def check(self) -> None:
        """Looks whether the server can do what is asked of it.

        Raises:
            ConfigurationError: It cannot; the message says what to change.
        """
        if self._mode == "off":
            return
        try:
            if await self._reached():
                return
            problem = "nothing confirmed a write in time."
        except StoreError as error:
            problem = str(error)
        raise ConfigurationError(f"PAWL_SYNC_EFFECTS={self._mode} cannot be kept: {problem} {_NEEDS[self._mode]}")

    async def wait(self) -> None:
        """Returns once everything that Redis had written when it was called is safe. Tries for ever: an effect can wait."""
        if self._mode == "off":
            return
        while True:
            try:
                if await self._reached():
                    return
                self._log.warning("effects_wait", mode=self._mode)
            except StoreError as error:
                self._log.warning("effects_wait", mode=self._mode, error=str(error))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _reached(self) -> bool:
        # WAIT and WAITAOF speak of what their own connection wrote: so it writes too, behind everything before.
        write = ("SET", self._keys.fsync, "1")
        if self._mode == "replica":
            _, replicas = await ask(self._redis, write, ("WAIT", 1, TIMEOUT_MS))
            return number(replicas) >= 1
        _, synced = await ask(self._redis, write, ("WAITAOF", 1, 0, TIMEOUT_MS))
        return number(array(synced)[0]) >= 1
