"""Waits for the first of several queues to have something, without polling and without losing what arrives."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.errors import StoreError
from scheduler.wire import ask, text

T = TypeVar("T")

_CALL_AGAIN_SECONDS: Final = 0.05  # for a move that the server had not yet seen when it was called back
_SHORTEST_SECONDS: Final = 0.05  # to Redis, zero is for ever
_SHARE_OF_TIMEOUT: Final = 0.6  # a move comes back well before its socket gives up


class Door(NamedTuple):
    """A queue, and the list that takes what is moved out of it."""

    queue: str
    intermediate: str


class Arrival(NamedTuple):
    """An id that was moved, and its door."""

    door: Door
    id: str


class Doorbell:
    """One blocking move for each door, while somebody waits.

    A blocking move is never cancelled: the server may have moved something whose reply nobody would read. It is called
    back (CLIENT UNBLOCK), and what it brings is returned or put back.

    Args:
        closed: Asked when something arrived; while it is so, that is put back.
    """

    def __init__(self, redis: Redis, doors: Sequence[Door], closed: Callable[[], Awaitable[bool]]) -> None:
        self._redis = redis
        self._waiters = [_Waiter(redis, door) for door in doors]
        self._closed = closed
        timeout: float = redis.connection_pool.connection_kwargs.get("socket_timeout") or float("inf")
        self._longest = timeout * _SHARE_OF_TIMEOUT
        self._interrupted = False

    async def wait(self, seconds: float) -> list[Arrival]:
        """What arrived, the first door first; empty if nothing did for so long, or if it was put back.

        Raises:
            redis.RedisError: A connection failed, and nothing is known to have arrived.
        """
        end = time.monotonic() + seconds
        left = max(seconds, _SHORTEST_SECONDS)
        try:
            while not self._interrupted and left >= _SHORTEST_SECONDS:
                moving = asyncio.create_task(self._move(min(left, self._longest)))
                try:
                    outcome = await asyncio.shield(moving)
                except asyncio.CancelledError:
                    await asyncio.shield(self._undo(moving))
                    raise
                if outcome is not None:
                    return outcome
                left = end - time.monotonic()
            return []
        finally:
            self._interrupted = False

    async def interrupt(self) -> None:
        """Whoever waits gets what has arrived, at once; where nobody does, the next one does not wait."""
        self._interrupted = True
        await self._call_back()

    async def put_back(self, arrivals: Sequence[Arrival]) -> None:
        """Returns ids to the heads of their queues, in the order in which they were taken."""
        async with self._redis.pipeline(transaction=True) as pipeline:
            for door, arrived in reversed(arrivals):
                pipeline.lrem(door.intermediate, 1, arrived)
                pipeline.lpush(door.queue, arrived)
            await pipeline.execute()

    async def close(self) -> None:
        """Gives the connections back. Nobody may wait."""
        for waiter in self._waiters:
            await waiter.close()

    async def _move(self, seconds: float) -> list[Arrival] | None:
        """What arrived; None if nothing did."""
        moves = [asyncio.create_task(waiter.move(seconds)) for waiter in self._waiters]
        pending = set(moves)
        while pending and not any(move.done() and (move.exception() or move.result()) for move in moves):
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        asking = asyncio.create_task(self._is_closed(moves))
        await self._end(pending)
        closed = await asking
        arrivals = [arrival for move in moves if not move.exception() and (arrival := move.result())]
        failure = next((error for move in moves if (error := move.exception())), None)
        if failure and not arrivals:
            raise failure
        if arrivals and closed:
            await self.put_back(arrivals)
            return []
        return arrivals or None

    async def _is_closed(self, moves: Sequence[asyncio.Task[Arrival | None]]) -> bool:
        """Asked while the other moves are called back, and only where one has brought something."""
        return any(move.done() and not move.exception() and move.result() for move in moves) and await self._closed()

    async def _undo(self, moving: asyncio.Task[list[Arrival] | None]) -> None:
        await self._end({moving})
        if not moving.exception():
            await self.put_back(moving.result() or [])

    async def _end(self, pending: set[asyncio.Task[T]]) -> None:
        while pending:
            await self._call_back()
            _, pending = await asyncio.wait(pending, timeout=_CALL_AGAIN_SECONDS)

    async def _call_back(self) -> None:
        clients = [waiter.client for waiter in self._waiters if waiter.client is not None]
        with suppress(StoreError):  # they come back by themselves, a little later
            await ask(self._redis, *(("CLIENT", "UNBLOCK", client) for client in clients))


class _Waiter:
    """A door with a connection of its own.

    Attributes:
        client: The connection's number on the server while a move may be on its way.
    """

    def __init__(self, redis: Redis, door: Door) -> None:
        self.client: int | None = None
        self._door = door
        # Held for as long as the worker lives, and there may be many queues: the others' pool would be used up.
        pool = redis.connection_pool
        self._pool = type(pool)(connection_class=pool.connection_class, max_connections=1, **pool.connection_kwargs)
        self._connection = Redis(connection_pool=self._pool, single_connection_client=True)

    async def move(self, seconds: float) -> Arrival | None:
        if self.client is None:
            self.client = await cast("Any", self._connection).client_id()
        try:
            moved = await cast("Any", self._connection).blmove(*self._door, seconds, "LEFT", "RIGHT")
        except (RedisError, OSError):
            self.client = None  # the next command connects anew
            raise
        return Arrival(self._door, text(moved)) if moved else None

    async def close(self) -> None:
        await self._connection.aclose()
        await self._pool.disconnect()
