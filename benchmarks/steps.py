"""Steps: how many durable steps a second, and what they cost in processor time.

Fifty runs of twenty steps, nineteen of them with a tool call; the model answers at once. Workers wait for runs, all runs
are submitted in one transaction. The time counts from the first claim to the last end, by the server's clock; the
processor time is that of the worker processes from just before the submission to just after the last end. On a shared machine
half a second may be a fast or a slow one, so a round has several such batches, and its floor is the median of as many.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agent.events import RunClaimed, RunCompleted
from benchmarks import agents, floor
from benchmarks.processes import cpu_seconds
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage, Worker

RUNS = 50
STEPS = RUNS * agents.STEPS


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement; times in seconds. `shares`: runs that each worker took."""

    seconds: float
    cpu_seconds: float
    shares: list[int]

    @property
    def steps_per_second(self) -> float:
        return STEPS / self.seconds

    @property
    def cpu_per_thousand(self) -> float:
        return self.cpu_seconds / STEPS * 1000


async def measure(size: Size) -> Outcome:
    """The floor, one process and two, in turn."""
    floors: list[float] = []
    rounds: dict[int, list[Round]] = {1: [], 2: []}
    ratios: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(size.rounds):
        async with Stage() as stage:
            base = statistics.median([await floor.commits_per_second(stage, size.commits) for _ in range(size.repeats)])
        floors.append(base)
        for processes, measured in rounds.items():
            batches = await _batches(processes, size.repeats)
            measured.extend(batches)
            ratios[processes] += [one.steps_per_second / base for one in batches]
    cpu = {processes: [one.cpu_per_thousand for one in measured] for processes, measured in rounds.items()}
    bars = (
        Bar("steps/s of one process, in floors", statistics.median(ratios[1]), "at_least", 0.13),
        Bar("steps/s of two processes, in floors", statistics.median(ratios[2]), "at_least", 0.20),
        Bar("CPU seconds per 1,000 steps, one process", statistics.median(cpu[1]), "at_most", 0.40),
        Bar("CPU seconds per 1,000 steps, two processes", statistics.median(cpu[2]), "at_most", 0.40),
    )
    return Outcome(
        "steps",
        bars,
        {
            "floor_commits_per_second": floors,
            **{
                f"{processes}_processes": {
                    "steps_per_second": [one.steps_per_second for one in measured],
                    "floors": ratios[processes],
                    "cpu_seconds_per_1000_steps": cpu[processes],
                    "runs_of_each_worker": [one.shares for one in measured],
                }
                for processes, measured in rounds.items()
            },
        },
    )


async def _batches(processes: int, repeats: int) -> list[Round]:
    async with Stage() as stage:
        workers = [await stage.worker() for _ in range(processes)]
        return [await _batch(stage, workers, batch) for batch in range(1, repeats + 1)]


async def _batch(stage: Stage, workers: Sequence[Worker], batch: int) -> Round:
    before = sum(cpu_seconds(worker.process) for worker in workers)
    runs = await stage.submit(agents.steps, RUNS)
    await stage.ended(batch * RUNS)
    after = sum(cpu_seconds(worker.process) for worker in workers)
    recorded = [one for events in await stage.events(runs) for one in events]
    claims = [one for one in recorded if isinstance(one.event, RunClaimed)]
    ends = [one.at for one in recorded if isinstance(one.event, RunCompleted)]
    owners = [one.event.worker for one in claims if isinstance(one.event, RunClaimed)]
    return Round(
        seconds=(max(ends) - min(one.at for one in claims)) / 1000,
        cpu_seconds=after - before,
        shares=[owners.count(owner) for owner in sorted(set(owners))],
    )
