"""The floor: what one asyncio process can commit at all, with nothing around it.

Fifty loops, each with a record of its own; one fenced script call a commit (look at the token, XADD of 300 bytes, HSET of
200 bytes), one round trip each, over redis-py and hiredis. No pipeline, no uvloop.
"""

import asyncio
import json
import statistics
import sys
import time
from typing import Any, cast

import redis.asyncio

from benchmarks.report import Outcome
from benchmarks.sizes import Size
from benchmarks.stage import ROOT, Stage

LOOPS = 50
SCRIPT = """
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return {'stale'} end
redis.call('XADD', KEYS[2], '*', 'b', ARGV[2])
redis.call('HSET', KEYS[1], 'state', ARGV[3])
return {'done'}
"""


async def measure(size: Size) -> Outcome:
    """The floor alone; `steps` measures it again, in the same minute as the workers."""
    rates: list[float] = []
    for _ in range(size.rounds):
        async with Stage() as stage:
            rates.append(await commits_per_second(stage, size.commits))
    return Outcome("floor", (), {"commits_per_second": statistics.median(rates), "each": rates})


async def commits_per_second(stage: Stage, commits: int) -> float:
    """Measures in a process of its own, which does nothing else."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, stage.url, str(commits)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    answer, _ = await process.communicate()
    return json.loads(answer)


async def _commit_all(url: str, commits: int) -> float:
    client = cast("Any", redis.asyncio.Redis.from_url(url, max_connections=LOOPS))  # pyright: ignore[reportUnknownMemberType]
    sha = await client.script_load(SCRIPT)
    event, state = b"e" * 300, b"s" * 200

    async def commit(loop: int, times: int) -> None:
        record, events = f"floor:{loop}", f"floor:{loop}:events"
        for _ in range(times):
            if await client.evalsha(sha, 2, record, events, "1:a", event, state) != [b"done"]:
                raise RuntimeError("a commit was refused")

    for loop in range(LOOPS):
        await client.hset(f"floor:{loop}", "token", "1:a")
    await asyncio.gather(*(commit(loop, 5) for loop in range(LOOPS)))  # all connections are there
    started = time.perf_counter()
    await asyncio.gather(*(commit(loop, commits // LOOPS) for loop in range(LOOPS)))
    taken = time.perf_counter() - started
    await client.aclose()
    return commits // LOOPS * LOOPS / taken


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_commit_all(sys.argv[1], int(sys.argv[2])))))
