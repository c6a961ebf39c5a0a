"""Session: forty runs of one conversation, 1,600 messages in a window of 4,000 tokens. A late run costs what an early one costs.

Times are from a run's claim to its end, by the server's clock: reading what the session remembers, the steps, the compactions.
What is stored counts as MEMORY USAGE of all keys of a run; the session's own keys come on top, once.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent.events import ContextCompacted, Recorded, RunClaimed, RunCompleted
from benchmarks import agents
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage

RUNS = 40
EARLY = slice(5, 15)
LATE = slice(RUNS - 10, RUNS)
STEPS = 10 * agents.TALK_STEPS


@dataclass(frozen=True, slots=True)
class Round:
    """One session: of each run its milliseconds, its bytes and its compactions; and the bytes of the session itself."""

    milliseconds: list[int]
    stored: list[int]
    compactions: list[int]
    of_session: int

    def ratio(self, values: list[int]) -> float:
        """What ten late runs are of ten early ones."""
        return sum(values[LATE]) / sum(values[EARLY])


async def measure(size: Size) -> Outcome:
    """One session at a time, each on a server and a worker of its own."""
    rounds = [await _round() for _ in range(size.rounds)]
    return Outcome(
        "session",
        (
            Bar("time of late steps, in that of early ones", _median(rounds, "milliseconds"), "at_most", 1.3),
            Bar("bytes of late steps, in those of early ones", _median(rounds, "stored"), "at_most", 1.1),
            Bar(
                "bytes that the session holds beside its runs", max(one.of_session for one in rounds), "at_most", 20_000
            ),
        ),
        {
            "milliseconds_a_step_early": [round(sum(one.milliseconds[EARLY]) / STEPS, 3) for one in rounds],
            "milliseconds_a_step_late": [round(sum(one.milliseconds[LATE]) / STEPS, 3) for one in rounds],
            "bytes_a_step_early": [sum(one.stored[EARLY]) // STEPS for one in rounds],
            "bytes_a_step_late": [sum(one.stored[LATE]) // STEPS for one in rounds],
            "compactions": [sum(one.compactions) for one in rounds],
        },
    )


def _median(rounds: list[Round], of: str) -> float:
    return statistics.median(one.ratio(getattr(one, of)) for one in rounds)


async def _round() -> Round:
    async with Stage() as stage:
        await stage.worker()
        runs: list[str] = []
        for number in range(1, RUNS + 1):
            runs += await stage.submit(agents.talker, task=f"Task {number} of this conversation.", session="talk")
            await stage.ended(number)
        told = await stage.events(runs)
        keys = stage.store.keys
        session = [keys.session(":talk"), keys.begun(":talk"), keys.next(":talk")]
        return Round(
            milliseconds=[_milliseconds(events) for events in told],
            stored=[await _bytes(stage, keys.family(run)) for run in runs],
            compactions=[sum(isinstance(one.event, ContextCompacted) for one in events) for events in told],
            of_session=await _bytes(stage, session),
        )


async def _bytes(stage: Stage, keys: Sequence[str]) -> int:
    return sum([await cast("Any", stage.redis).memory_usage(key, samples=0) or 0 for key in keys])


def _milliseconds(events: list[Recorded]) -> int:
    claimed = next(one.at for one in events if isinstance(one.event, RunClaimed))
    return next(one.at for one in events if isinstance(one.event, RunCompleted)) - claimed
