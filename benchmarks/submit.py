"""Submit: how soon an idle system asks the model.

One run after the other, with a pause between them in which everything comes to rest. The time counts from just before the
call of `submit` to the entry into the model, which answers with that moment; both are read from the clock of this machine.
"""

import asyncio
import time

from agent.events import RunCompleted
from benchmarks import agents
from benchmarks.report import Bar, Outcome, milliseconds, percentile
from benchmarks.sizes import Size
from benchmarks.stage import Stage
from scheduler import AsyncClient

PAUSE_SECONDS = 0.1
WARMING = 5


async def measure(size: Size) -> Outcome:
    """One worker, one client, which are connected and have done this before."""
    submitted: dict[str, int] = {}
    async with Stage() as stage, AsyncClient(stage.url) as client:
        await stage.worker()
        for _ in range(WARMING + size.submits):
            await asyncio.sleep(PAUSE_SECONDS)
            before = time.time_ns()
            run = await client.submit(agents.prompt, "What time is it?")
            submitted[run.id] = before
        await stage.ended(len(submitted))
        asked = [
            int(str(one.event.output))
            for events in await stage.events(list(submitted))
            for one in events
            if isinstance(one.event, RunCompleted)
        ]
    taken = [milliseconds((then - before) / 1e9) for before, then in zip(submitted.values(), asked, strict=True)]
    measured = taken[WARMING:]
    return Outcome(
        "submit",
        (
            Bar("ms to the first model call, p50", percentile(measured, 0.5), "at_most", 5.0),
            Bar("ms to the first model call, p99", percentile(measured, 0.99), "at_most", 15.0),
        ),
        {"milliseconds": measured},
    )
