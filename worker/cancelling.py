"""Ends tasks for certain."""

import asyncio
from typing import Any, Final

_CANCEL_AGAIN_SECONDS: Final = 0.1


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks and returns when they have ended, in whatever way.

    One cancel may not be enough: before Python 3.12, `asyncio.wait_for`, which redis-py uses to connect and to read,
    swallows one that comes together with what it waits for.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)
