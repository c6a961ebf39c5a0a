"""Takeover: how long a run stands still whose worker is killed in the middle of a model call.

Two workers, one run that waits for its model; the owner gets SIGKILL. The time counts from just before the kill to the
next claim, by the server's clock; each kill has a server and workers of its own, for a parent is in no hurry to replace
workers that die again and again. Without a parent a lease has to run out (6 seconds); a parent sees the death and frees the
leases.
"""

import asyncio
import os
import signal
import statistics
from typing import Final

from agent.events import RunCancelled, RunClaimed, encode
from benchmarks import agents
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import PATIENCE_SECONDS, Stage, until

WORKERS: Final = 2


async def measure(size: Size) -> Outcome:
    """So many kills without a parent, then as many with one."""
    alone = [await _without_parent() for _ in range(size.kills)]
    kept = [await _with_parent() for _ in range(size.kills)]
    return Outcome(
        "takeover",
        (
            Bar("seconds at worst, without a parent", max(alone), "at_most", 8.0),
            Bar("seconds at worst, with a parent", max(kept), "at_most", 1.0),
        ),
        {
            "seconds_without_parent": alone,
            "seconds_with_parent": kept,
            "median_without_parent": statistics.median(alone),
            "median_with_parent": statistics.median(kept),
        },
    )


async def _without_parent() -> float:
    async with Stage() as stage:
        for _ in range(WORKERS):
            await stage.worker()
        return await _takeover(stage)


async def _with_parent() -> float:
    async with Stage() as stage:
        await stage.worker(processes=WORKERS)
        return await _takeover(stage)


async def _takeover(stage: Stage) -> float:
    """Seconds from a kill to the next claim."""
    (run,) = await stage.submit(agents.stuck)
    await until(lambda: _is_owned(stage, run), PATIENCE_SECONDS)
    await asyncio.sleep(0.3)  # now it is in mid-call
    owner = (await stage.store.info(run)).worker
    before = await stage.store.now()
    os.kill(stage.process_of(owner), signal.SIGKILL)
    await until(lambda: _is_owned(stage, run, before=owner), PATIENCE_SECONDS)
    (events,) = await stage.events([run])
    claims = [one.at for one in events if isinstance(one.event, RunClaimed)]
    await stage.store.cancel(run, sid="over", event=encode(RunCancelled()))
    return (claims[1] - before) / 1000


async def _is_owned(stage: Stage, run: str, *, before: str = "") -> bool:
    """Whether a worker has the run, another than before."""
    return (await stage.store.info(run)).worker not in ("", before)
