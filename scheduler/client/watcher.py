"""Watches any number of runs over one connection, so that nobody has to ask for a run again and again.

A blocking read over the event streams of all watched runs is the hint; a look at the records, once a second, is the truth:
a stream whose run has expired would block for ever. Between two looks there is a pause, so that a client which waits for
busy runs leaves the machine to those who work. While Redis is away it keeps trying, for as long as a restart or a failover
may take.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from agent.errors import BrokenRecord, RunNotFound, StoreError, StoreUnavailable
from scheduler.client.outages import OUTAGE_SECONDS, patiently
from scheduler.client.sight import Sight, read_sight, sight_command
from scheduler.connection import BLOCK_SECONDS
from scheduler.keys import Keys
from scheduler.unavailable import mapped
from scheduler.wire import Value, array, ask, number, send, text

LOOK_SECONDS: Final = 1.0
LEAST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.25
CALL_AGAIN_SECONDS: Final = 0.05


@dataclass(eq=False, slots=True)
class _Watch:
    run_id: str
    fits: Callable[[Sight], bool]
    found: asyncio.Future[Sight]


class Watcher:
    """The watcher of one event loop."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        self._watches: dict[str, set[_Watch]] = {}
        self._sights: dict[str, Sight] = {}
        self._task: asyncio.Task[None] | None = None
        self._connection: Any = None
        self._connection_id = 0
        self._reads = 0
        self._reading = False
        self._rousing: set[asyncio.Task[None]] = set()
        self._roused = 0
        self._looked_at = 0.0
        self._answered_at = 0.0

    async def until(self, run_id: str, fits: Callable[[Sight], bool]) -> Sight:
        """Waits until a run stands so that `fits` says yes.

        Raises:
            RunNotFound: It does not exist, or no longer.
            BrokenRecord: It cannot be read.
            StoreUnavailable: Redis is away for longer than an outage may take.
        """
        sight = await patiently(lambda: self._sight(run_id))
        if fits(sight):
            return sight
        watch = _Watch(run_id, fits, asyncio.get_running_loop().create_future())
        self._watches.setdefault(run_id, set()).add(watch)
        self._sights[run_id] = sight
        self._start()
        try:
            return await watch.found
        finally:
            self._forget(watch)

    async def close(self) -> None:
        """Ends the watch. Whoever still waits gets a StoreUnavailable."""
        tasks = [task for task in (*self._rousing, self._task) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._fail(StoreUnavailable("The client was closed while somebody waited for a run."))

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._answered_at = time.monotonic()
            self._task = asyncio.create_task(self._watch(), name="pawl watcher")
        elif self._reading and self._roused != self._reads:
            self._roused = self._reads
            task = asyncio.create_task(self._rouse(self._reads))
            self._rousing.add(task)
            task.add_done_callback(self._rousing.discard)

    async def _watch(self) -> None:
        try:
            while self._watches:
                try:
                    rung = await self._listen()
                    started = time.monotonic()
                    await self._look(self._watches if started - self._looked_at >= LOOK_SECONDS else rung)
                    self._answered_at = time.monotonic()
                    await asyncio.sleep(_pause(self._answered_at - started))
                except StoreUnavailable as error:
                    if time.monotonic() - self._answered_at > OUTAGE_SECONDS:
                        self._fail(error)
                    await asyncio.sleep(LOOK_SECONDS)
        except Exception as error:
            self._fail(StoreError(f"the watch over runs ended: {type(error).__name__}: {error}"))
        finally:
            await self._hang_up()

    async def _look(self, runs: Iterable[str]) -> None:
        """Looks at the records of some runs, and tells those who wait for what is seen."""
        runs = list(runs)
        if len(runs) == len(self._watches):
            self._looked_at = time.monotonic()
        if not runs:
            return
        replies = await send(self._redis, [sight_command(self._keys, run) for run in runs])
        for run_id, reply in zip(runs, replies, strict=True):
            try:
                sight = read_sight(run_id, reply)
            except (RunNotFound, BrokenRecord) as error:
                self._fail(error, run_id)
                continue
            if run_id in self._watches:
                self._sights[run_id] = sight
            for watch in self._watches.get(run_id, ()):
                if not watch.found.done() and watch.fits(sight):
                    watch.found.set_result(sight)

    async def _sight(self, run_id: str) -> Sight:
        (reply,) = await ask(self._redis, sight_command(self._keys, run_id))
        return read_sight(run_id, reply)

    def _forget(self, watch: _Watch) -> None:
        watches = self._watches.get(watch.run_id)
        if watches is None:
            return
        watches.discard(watch)
        if not watches:
            del self._watches[watch.run_id]
            self._sights.pop(watch.run_id, None)

    def _fail(self, error: StoreError, run_id: str | None = None) -> None:
        for run, watches in self._watches.items():
            for watch in watches:
                if run_id in (None, run) and not watch.found.done():
                    watch.found.set_exception(error)

    # ---- the blocking read ------------------------------------------------------------------------------------------

    async def _listen(self) -> Sequence[str]:
        """The runs that have new events, or none after a second. A read is never waited for longer than that."""
        try:
            if self._connection is None:
                await self._dial()
            runs = list(self._watches)
            keys = [self._keys.events(run) for run in runs]
            ids = [f"{self._sights[run].seq}-0" for run in runs]
            self._reads += 1
            self._reading = True
            block = int(BLOCK_SECONDS * 1000)
            streams = await self._exchange(("XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", *keys, *ids))
        except ResponseError:
            # The stream of one run is none: the others are not to suffer, and the looks go on.
            await asyncio.sleep(LOOK_SECONDS)
            return ()
        except (RedisError, OSError) as error:
            await self._hang_up()
            raise mapped(error) from error
        finally:
            self._reading = False
        run_of = dict(zip(keys, runs, strict=True))
        return [run_of[text(array(stream)[0])] for stream in array(streams or [])]

    async def _dial(self) -> None:
        self._connection = await self._redis.connection_pool.get_connection()
        self._connection_id = number(await self._exchange(("CLIENT", "ID")))

    async def _exchange(self, command: Sequence[str | int]) -> Value:
        await self._connection.send_command(*command)
        return cast(Value, await self._connection.read_response())

    async def _hang_up(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect(nowait=True)  # a reply may be on its way that belongs to nobody
            await self._redis.connection_pool.release(connection)

    async def _rouse(self, read: int) -> None:
        """Ends a blocking read, so that it is made again with the runs that have come."""
        while self._reading and self._reads == read:
            try:
                await ask(self._redis, ("CLIENT", "UNBLOCK", self._connection_id))
            except StoreError:
                return  # it ends by itself within a second
            await asyncio.sleep(CALL_AGAIN_SECONDS)  # the server may have heard this before the read


def _pause(busy: float) -> float:
    """Seconds to pause after a look that took `busy` seconds: about a tenth of the time goes into looks."""
    return min(max(LEAST_PAUSE, 9 * busy), LONGEST_PAUSE)
