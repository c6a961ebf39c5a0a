"""Takeover: how long a run stands still whose worker is killed in the middle of a model call.

Two workers, one run that waits for its model; the owner gets SIGKILL. The time counts from just before the kill to the
next claim, by the server's clock, with a new run for each kill and both workers up. Without a parent a lease has to run
out (6 seconds); a parent sees the death and frees the leases.
"""

import asyncio
import os
import signal
import statistics
from collections.abc import Awaitable, Callable
from typing import Final

from agent.events import RunCancelled, RunClaimed, encode
from benchmarks import agents
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import PATIENCE_SECONDS, Stage, until

WORKERS: Final = 2


async def measure(size: Size) -> Outcome:
    """So many kills without a parent, then as many with one."""
    async with Stage() as stage:
        for _ in range(WORKERS):
            await stage.worker()

        async def replace(_kills: int) -> None:
            await stage.worker()

        alone = [await _takeover(stage, kills, replace) for kills in range(1, size.kills + 1)]
    async with Stage() as stage:
        parent = await stage.worker(processes=WORKERS)
        kept = [
            await _takeover(stage, kills, lambda kills: parent.ready(WORKERS + kills))
            for kills in range(1, size.kills + 1)
        ]
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


async def _takeover(stage: Stage, kills: int, restored: Callable[[int], Awaitable[None]]) -> float:
    """One kill. `restored` returns when as many workers as before are up."""
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
    await restored(kills)
    return (claims[1] - before) / 1000


async def _is_owned(stage: Stage, run: str, *, before: str = "") -> bool:
    """Whether a worker has the run, another than before."""
    return (await stage.store.info(run)).worker not in ("", before)
