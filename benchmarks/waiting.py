"""Waiting: thousands of runs that do nothing but wait for their models, in one worker process.

Every run makes three model calls of a second each; then as many runs make three calls that take no time. The time counts
from just before the submission to the last end, by the server's clock. Memory is what the process holds at its peak above
what it held before the first run.
"""

import statistics
from dataclasses import dataclass
from typing import Any

from agent import Agent
from agent.events import RunCompleted
from benchmarks import agents
from benchmarks.processes import peak_kilobytes, resident_kilobytes
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement."""

    seconds: float
    kilobytes_per_run: float


async def measure(size: Size) -> Outcome:
    """Both kinds of runs in turn, each on a server and a worker of their own."""
    waiting: list[Round] = []
    hasty: list[Round] = []
    for _ in range(size.rounds):
        waiting.append(await _round(agents.waiting, size.waiting_runs))
        hasty.append(await _round(agents.hasty, size.waiting_runs))
    seconds = statistics.median(one.seconds for one in waiting)
    without_latency = statistics.median(one.seconds for one in hasty)
    memory = statistics.median(one.kilobytes_per_run for one in waiting)
    return Outcome(
        "waiting",
        (
            Bar("seconds for all", seconds, "at_most", 9.0),
            Bar("seconds for all, against those without latency", seconds, "at_most", 3.9 + 1.2 * without_latency),
            Bar("KB of memory a run", memory, "at_most", 60.0),
        ),
        {
            "runs": size.waiting_runs,
            "seconds": [one.seconds for one in waiting],
            "seconds_without_latency": [one.seconds for one in hasty],
            "kilobytes_per_run": [one.kilobytes_per_run for one in waiting],
        },
    )


async def _round(agent: Agent[Any], count: int) -> Round:
    async with Stage() as stage:
        worker = await stage.worker(concurrency=count)
        idle = resident_kilobytes(worker.process)
        before = await stage.store.now()
        runs = await stage.submit(agent, count)
        await stage.ended(count)
        peak = peak_kilobytes(worker.process)
        ends = [one.at for events in await stage.events(runs) for one in events if isinstance(one.event, RunCompleted)]
        return Round(seconds=(max(ends) - before) / 1000, kilobytes_per_run=(peak - idle) / count)
