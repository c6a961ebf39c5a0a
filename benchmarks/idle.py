"""Idle: what the connections of a worker that has nothing to do ask of the server.

The server tells of every command (MONITOR). Those that a script gives are counted apart: no connection sends them.
"""

import asyncio
import contextlib
from collections import Counter
from typing import Any, cast

from benchmarks.report import Bar, Outcome
from benchmarks.sizes import Size
from benchmarks.stage import Stage

FROM_A_SCRIPT = "lua"


async def measure(size: Size) -> Outcome:
    """One worker, no run."""
    sent: Counter[str] = Counter()
    in_scripts = 0
    async with Stage() as stage:
        await stage.worker()
        async with cast("Any", stage.redis).monitor() as monitor:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(size.idle_seconds):
                    while True:
                        told = await monitor.next_command()
                        if told["client_type"] == FROM_A_SCRIPT:
                            in_scripts += 1
                        else:
                            sent[told["command"].split()[0].lower()] += 1
    return Outcome(
        "idle",
        (Bar("commands a second", sent.total() / size.idle_seconds, "at_most", 10.0),),
        {"seconds": size.idle_seconds, "sent": dict(sent), "commands_in_scripts": in_scripts},
    )
