"""The documents' agents as durable runs: moved by workers, and by a runtime whose process dies."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

from agent.documents.runtime import RunResult
from agent.events import RunRequeued
from scheduler.lifecycle import Status
from scheduler.settings import Settings
from tests.support import document_agents
from tests.support.document_agents import GATE
from tests.support.game_calculator import TASK
from tests.support.player import LEASE_SECONDS
from tests.support.site import Site
from tests.support.waiting import wait_until
from worker.session_repository import StoredSessions

AGENTS = "tests.support.document_agents"
ROOT = Path(__file__).parents[2]


def settings(site: Site) -> Settings:
    return Settings(redis_url=site.url, lease_seconds=LEASE_SECONDS, renew_seconds=0.25)


async def called(site: Site, run_id: str | None = None, message: str | None = None) -> RunResult:
    """One call of a runtime in this process."""
    runtime = document_agents.runtime(site.traces.folder, settings(site))
    repository = cast(StoredSessions, runtime.repository)
    async with repository:
        return await runtime.run("s1", message, run_id)


def started(site: Site) -> subprocess.Popen[bytes]:
    """A process that runs the runtime."""
    return subprocess.Popen(
        [sys.executable, "-m", AGENTS], cwd=ROOT, env={**os.environ, **site.environment}, stdout=subprocess.DEVNULL
    )


def test_each_document_s_agent_is_moved_by_workers(site: Site) -> None:
    """item 13, item 47, item 62: the calculator, the numbers of a file, and the runtime's agent with its question."""
    (site.traces.folder / "test.txt").write_text("10\n20\n12\n")
    site.traces.open(GATE)
    site.worker(targets=AGENTS)

    game = site.client.submit("calculator", TASK)
    numbers = site.client.submit("simple_agent", "请读取当前目录下的 test.txt 文件并计算出文件中数字的和。")
    assistant = site.client.submit("assistant", "Go.", session="s1")

    assert game.result(timeout=20).output == "420"
    assert numbers.result(timeout=20).output == "42"
    assert assistant.wait(timeout=20).requests[0].question == "Is that enough?"
    assistant.reply("Yes")
    assert assistant.result(timeout=20).output == "Yes: 42"


def test_the_next_call_goes_on_with_a_run_whose_process_died(site: Site) -> None:
    """item 56, item 65: nothing begins anew: the reply and the result that were committed are not asked for again."""
    process = started(site)
    wait_until("the second step is under way", lambda: len(site.traces.found("model")) == 2)
    process.kill()
    process.wait()
    (run,) = site.client.runs(session="s1").runs
    site.traces.open(GATE)

    result = asyncio.run(called(site, run.id))
    answered = asyncio.run(called(site, run.id, "Yes"))

    assert (result.status, result.content) == ("waiting", "Is that enough?")
    assert answered.content == "Yes: 42"
    assert [trace.key for trace in site.traces.found("model")][:3] == ["1/1", "2/1", "2/1"]
    assert any(isinstance(event, RunRequeued) for event in site.events(run.id))


def test_a_worker_goes_on_with_a_run_whose_process_died(site: Site) -> None:
    """item 65: a runtime's run is a run like any other."""
    process = started(site)
    wait_until("the second step is under way", lambda: len(site.traces.found("model")) == 2)
    process.kill()
    process.wait()
    (run,) = site.client.runs(session="s1").runs
    site.traces.open(GATE)
    site.worker(targets=AGENTS)

    site.reaches(run.id, Status.WAITING)
    site.client.get(run.id).reply("Yes")

    assert site.client.get(run.id).result(timeout=20).output == "Yes: 42"


def test_a_cancelled_call_gives_its_run_back(site: Site) -> None:
    """item 65: at once, not when the lease is over."""

    async def attempt() -> None:
        calling = asyncio.create_task(called(site, message="Go."))
        await asyncio.to_thread(wait_until, "the second step", lambda: len(site.traces.found("model")) == 2)
        calling.cancel()
        await asyncio.wait([calling])
        assert calling.cancelled()

    asyncio.run(attempt())

    (run,) = site.client.runs(session="s1").runs
    assert run.status is Status.QUEUED
    assert site.kinds(run.id)[-1] == "run_released"
