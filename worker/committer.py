"""Group commit: whatever is ready while the last pipeline is on its way goes together in the next one.

No timer and no added wait: a lonely commit leaves at once. Each caller has at most one call under way, so that the commits
of one run keep their order.
"""

import asyncio
from collections import deque
from typing import Any, Final, TypeVar

from redis.asyncio import Redis

from scheduler.scripting import ScriptCall, run_many

R = TypeVar("R")

MOST_CALLS: Final = 256
MOST_BYTES: Final = 4_000_000


class Committer:
    """Sends script calls of many runs over one connection at a time, in as few pipelines as their number asks for."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._waiting: deque[tuple[ScriptCall[Any], asyncio.Future[Any]]] = deque()
        self._sender: asyncio.Task[None] | None = None

    async def send(self, call: ScriptCall[R]) -> R:
        """Sends a call with the next pipeline.

        Raises:
            StoreUnavailable: It is not known whether it ran. Send the same call again.
        """
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        return await future

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                try:
                    replies = await run_many(self._redis, [call for call, _ in batch])
                except Exception as error:
                    replies = [error] * len(batch)
                for (_, future), reply in zip(batch, replies, strict=True):
                    if future.done():  # its caller was cancelled; the call ran all the same
                        continue
                    if isinstance(reply, Exception):
                        future.set_exception(reply)
                    else:
                        future.set_result(reply)
        finally:
            self._sender = None

    def _next_batch(self) -> list[tuple[ScriptCall[Any], asyncio.Future[Any]]]:
        batch: list[tuple[ScriptCall[Any], asyncio.Future[Any]]] = []
        size = 0
        while self._waiting and len(batch) < MOST_CALLS and size < MOST_BYTES:
            call, future = self._waiting.popleft()
            batch.append((call, future))
            size += sum(len(argument) for argument in call.arguments if not isinstance(argument, int))
        return batch
