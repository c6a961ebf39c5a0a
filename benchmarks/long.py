"""Long: a run of a thousand steps, each with a kilobyte of result. A late step costs what an early one costs.

Times are those of the replies, by the server's clock. What is stored counts as MEMORY USAGE of all keys of the run, against
its messages as one JSON text without defaults.
"""

import json
import statistics
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import TypeAdapter

from agent.events import ModelReplied
from agent.messages import Message
from agent.state import Checkpoint, RunState
from benchmarks import agents
from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage

EARLY = (50, 100)
_MESSAGES: Final = TypeAdapter(list[Message])

LATE = (agents.LONG_STEPS - 50, agents.LONG_STEPS)


@dataclass(frozen=True, slots=True)
class Round:
    """One run: milliseconds of fifty early and of fifty late steps, and bytes."""

    early: int
    late: int
    stored: int
    messages: int


async def measure(size: Size) -> Outcome:
    """One run at a time, each on a server and a worker of its own."""
    # Fifty steps take a twentieth of a second at most: what else the machine does weighs more than what is measured.
    rounds = [await _round() for _ in range(size.rounds * size.repeats)]
    return Outcome(
        "long",
        (
            Bar(
                "50 late steps, in 50 early ones",
                statistics.median(one.late / one.early for one in rounds),
                "at_most",
                1.3,
            ),
            Bar(
                "bytes stored, in bytes of messages",
                statistics.median(one.stored / one.messages for one in rounds),
                "at_most",
                1.5,
            ),
        ),
        {
            "milliseconds_early": [one.early for one in rounds],
            "milliseconds_late": [one.late for one in rounds],
            "bytes_stored": [one.stored for one in rounds],
            "bytes_of_messages": [one.messages for one in rounds],
        },
    )


async def _round() -> Round:
    async with Stage() as stage:
        await stage.worker()
        (run,) = await stage.submit(agents.reader)
        await stage.ended(1)
        (events,) = await stage.events([run])
        replied = {one.event.step: one.at for one in events if isinstance(one.event, ModelReplied)}
        keys = stage.store.keys.family(run)
        stored = [await cast("Any", stage.redis).memory_usage(key, samples=0) or 0 for key in keys]
        messages = RunState.restore(Checkpoint(), events).messages()
        return Round(
            early=_milliseconds(replied, *EARLY),
            late=_milliseconds(replied, *LATE),
            stored=sum(stored),
            messages=len(json.dumps(_MESSAGES.dump_python(messages, mode="json", exclude_defaults=True))),
        )


def _milliseconds(replied: dict[int, int], first: int, last: int) -> int:
    return replied[last] - replied[first]
