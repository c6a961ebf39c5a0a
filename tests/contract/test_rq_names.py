"""A name belongs to one worker: whose it is, when it is free again, and what a second one is told."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.errors import ConfigurationError
from tests.support.rq_face import NAME, working
from worker.rq_worker import AgentWorker


def test_a_second_worker_of_the_same_name_is_refused_and_leaves_the_first_alone(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            twin = AgentWorker(["default"], NAME, connection=face.redis, redis=face.worker.redis)
            with pytest.raises(
                ConfigurationError, match=f"a worker named '{NAME}': it lives, or was killed less than 60"
            ):
                await twin.register()
            await twin.unregister()
            assert face.seen() is not None
            assert not face.redis.hexists(f"rq:worker:{NAME}", "death")

    asyncio.run(scenario())


def gone_process() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.skipif(not Path("/proc/self/ns/pid").is_symlink(), reason="nothing tells where a process id is valid")
def test_the_name_of_a_worker_that_was_killed_on_this_machine_is_free_at_once(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url, "default", "other") as face:
            face.redis.hset(f"rq:worker:{NAME}", "pid", gone_process())
            heir = AgentWorker(["default"], NAME, connection=face.redis, redis=face.worker.redis)
            await heir.register()
            assert face.redis.hget(f"rq:worker:{NAME}", "pid") == str(os.getpid()).encode()
            assert face.redis.smembers("rq:workers:other") == set()
            await heir.unregister()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("field", "value"), [("pid", ""), ("pid", "1" * 30), ("pawl_place", "elsewhere"), ("pawl_place", "")]
)
def test_a_name_is_not_taken_where_nothing_tells_that_its_worker_was_killed(
    redis_url: str, field: str, value: str
) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.redis.hset(f"rq:worker:{NAME}", mapping={"pid": gone_process(), field: value})
            twin = AgentWorker(["default"], NAME, connection=face.redis, redis=face.worker.redis)
            with pytest.raises(ConfigurationError, match=r"leave --name out, or, if it was killed, try again in \d+ s"):
                await twin.register()

    asyncio.run(scenario())
