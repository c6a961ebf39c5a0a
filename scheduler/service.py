"""The scheduler as a process of its own: sweeps until it is told to end."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence

import structlog

from scheduler.deployment import Deployment
from scheduler.rq_bridge import queue_lengths
from scheduler.store import Store
from scheduler.sweeps import Sweeper

QUEUES = ("high", "default", "low")


async def sweep_until_told(deployment: Deployment, queues: Sequence[str] = ()) -> None:
    """Sweeps until SIGTERM or SIGINT.

    Args:
        queues: Whose books are kept; none given: the usual ones and those that RQ knows at the start.

    Raises:
        StoreUnavailable: Redis cannot be reached at the start; later outages are waited out.
    """
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    log = structlog.get_logger("pawl.scheduler")
    redis = deployment.connect()
    try:
        kept = list(queues) or sorted({*QUEUES, *await queue_lengths(redis)})
        sweeping = asyncio.create_task(Sweeper(redis, Store(redis, deployment.scripts), kept).sweep())
        log.info("scheduler_started", queues=kept)
        await asyncio.wait([sweeping, asyncio.create_task(told.wait())], return_when=asyncio.FIRST_COMPLETED)
        sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sweeping
        log.info("scheduler_stopped")
    finally:
        await redis.aclose()
