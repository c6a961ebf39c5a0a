"""How long a client that waits bears with a Redis that is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from agent.errors import StoreUnavailable

OUTAGE_SECONDS: Final = 30.0
"""As long as a restart or a failover may take."""

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0

T = TypeVar("T")


async def patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Does something that may be done again, through an outage of Redis.

    Raises:
        StoreUnavailable: It is away for longer than an outage may take.
    """
    deadline = time.monotonic() + OUTAGE_SECONDS
    pause = _FIRST_PAUSE
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


async def sent_again(work: Callable[[], Awaitable[T]]) -> T:
    """Does something that may be done again, and does it again once where the first connection was a dead one.

    Raises:
        StoreUnavailable: Redis is away.
    """
    try:
        return await work()
    except StoreUnavailable:
        return await work()
