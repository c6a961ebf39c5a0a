"""Sends script calls in the order in which they come, one pipeline at a time."""

import asyncio
from collections import deque
from typing import Any, Final, TypeVar

from redis.asyncio import Redis

from scheduler.scripting import ScriptCall, run_many
from scheduler.wire import Line

R = TypeVar("R")

_MOST_CALLS: Final = 256


class Batches:
    """What becomes ready while a pipeline is on its way goes together in the next. No timer, no added wait."""

    def __init__(self, to: Redis | Line) -> None:
        self._to = to
        self._ready: deque[tuple[ScriptCall[Any], asyncio.Future[Any]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    def send(self, call: ScriptCall[R]) -> asyncio.Future[R]:
        """Queues a call. Its reply comes as the result, or as the error of `run_many`; it is sent even if nobody waits."""
        reply: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._ready.append((call, reply))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        return reply

    async def drained(self) -> None:
        """Returns when everything has been sent."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        try:
            while self._ready:
                await self._send([self._ready.popleft() for _ in range(min(len(self._ready), _MOST_CALLS))])
        finally:
            self._sending = None

    async def _send(self, batch: list[tuple[ScriptCall[Any], asyncio.Future[Any]]]) -> None:
        try:
            outcomes = await run_many(self._to, [call for call, _ in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        for (_, reply), outcome in zip(batch, outcomes, strict=True):
            if reply.done():
                continue  # nobody waits any more
            if isinstance(outcome, Exception):
                reply.set_exception(outcome)
            else:
                reply.set_result(outcome)
