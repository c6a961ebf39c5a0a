"""Idle: what a worker that has nothing to do asks of the server.

Counted by the server (INFO: total_commands_processed), which also counts every command inside a script. The two looks of
this program are taken off.
"""

import asyncio
from typing import Any, cast

from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage

OWN_COMMANDS = 1


async def measure(size: Size) -> Outcome:
    """One worker, no run."""
    async with Stage() as stage:
        await stage.worker()
        before, by_name_before = await _counted(stage)
        await asyncio.sleep(size.idle_seconds)
        after, by_name = await _counted(stage)
    commands = after - before - OWN_COMMANDS
    return Outcome(
        "idle",
        (Bar("commands a second", commands / size.idle_seconds, "at_most", 10.0),),
        {
            "commands": commands,
            "seconds": size.idle_seconds,
            "by_name": {name: count - by_name_before.get(name, 0) for name, count in sorted(by_name.items())},
        },
    )


async def _counted(stage: Stage) -> tuple[int, dict[str, int]]:
    """Commands so far, in all and by name."""
    by_name = await cast("Any", stage.redis).info("commandstats")
    stats = await cast("Any", stage.redis).info("stats")
    return stats["total_commands_processed"], {
        name.removeprefix("cmdstat_"): figures["calls"] for name, figures in by_name.items()
    }
