"""Where a benchmark happens: a server of its own, worker processes that log to files, and runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from agent import Agent
from agent.events import Recorded, RunCreated, decode, encode
from benchmarks import worker
from scheduler.deployment import Deployment
from scheduler.inputs import NewRun
from scheduler.lifecycle import Status
from scheduler.rq_bridge import RunJob, enqueue
from scheduler.run_ids import new_run_id
from scheduler.settings import Settings
from scheduler.store import Store
from tests.support.servers import Server, programs

ROOT = Path(__file__).parents[1]
START_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
RETENTION_SECONDS = 7 * 24 * 60 * 60


class Stage:
    """A private server with an append-only file, synced every second; its folder takes the logs of the workers too."""

    def __init__(self) -> None:
        found = programs()
        self._server = Server(found.get("redis") or found["valkey"], appendonly=True)
        self._workers: list[Worker] = []

    async def __aenter__(self) -> Stage:
        self._server.start()
        self.url = self._server.url
        self.deployment = Deployment(Settings(redis_url=self.url))
        self.redis = self.deployment.connect()
        self.store = Store(self.redis, self.deployment.scripts)
        await asyncio.gather(*(cast("Any", self.redis).script_load(text) for text in self._scripts()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for running in self._workers:
            running.end()
        await self.redis.aclose()
        self.deployment.close()
        self._server.close()

    def _scripts(self) -> list[str]:
        """The scripts of `submit`, which a transaction cannot load on the way."""
        creation = _creation(self.store, new_run_id(), _ANYBODY, "")
        return [call.script.text for call in creation]

    async def software(self) -> str:
        """The server's name and version."""
        info = await cast("Any", self.redis).info("server")
        return f"valkey {info['valkey_version']}" if "valkey_version" in info else f"redis {info['redis_version']}"

    async def worker(self, *, concurrency: int = 500, processes: int = 0) -> Worker:
        """Starts a worker (or a parent with `processes` of them), and returns when it waits for runs."""
        log = self._server.folder / f"worker-{len(self._workers)}.log"
        started = Worker(worker.command(concurrency=concurrency, processes=processes), self.url, log)
        self._workers.append(started)
        await started.ready(max(processes, 1))
        return started

    def process_of(self, worker: str) -> int:
        """The id of the process of the worker of this name.

        Raises:
            LookupError: No process has logged that it is this worker.
        """
        known = {name: process for running in self._workers for name, process in running.processes().items()}
        return known[worker]

    async def submit(self, agent: Agent[Any], count: int = 1, *, task: str = "Go on.", session: str = "") -> list[str]:
        """Submits runs in one transaction, so that all workers see all of them at once."""
        runs = [new_run_id() for _ in range(count)]
        async with self.redis.pipeline(transaction=True) as pipeline:
            for run in runs:
                for call in _creation(self.store, run, agent, task, session):
                    cast("Any", pipeline).execute_command(*call.command())
            await pipeline.execute()
        return runs

    async def ended(self, count: int) -> None:
        """Returns when so many runs are completed.

        Raises:
            TimeoutError: They are not, after two minutes.
        """
        key = self.store.keys.by_status(Status.COMPLETED)

        async def are_ended() -> bool:
            return await cast("Any", self.redis).zcard(key) >= count

        await until(are_ended, PATIENCE_SECONDS)

    async def events(self, runs: Sequence[str]) -> list[list[Recorded]]:
        """All events of runs, each with the server's time at which it was committed."""
        told: list[list[Recorded]] = []
        for run in runs:
            stored = [one async for one in self.store.all_events(run)]
            told.append([Recorded(seq=one.seq, at=one.at, event=decode(one.body)) for one in stored])
        return told


class Worker:
    """A worker process, or a parent of several, and its log."""

    def __init__(self, command: Sequence[str], url: str, log: Path) -> None:
        self._log = log
        environment = os.environ | {"PAWL_REDIS_URL": url}
        with log.open("ab") as stream:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=stream)

    @property
    def process(self) -> int:
        """The id of its process."""
        return self._process.pid

    def processes(self) -> dict[str, int]:
        """The ids of the processes that move runs, by the names of their workers."""
        children = {line["child"]: line["process"] for line in self.lines("process_started")}
        return children or {line["worker"]: self.process for line in self.lines("worker_started")}

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What it has logged under this name, lines of its children included."""
        lines = (json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == event]

    async def ready(self, starts: int) -> None:
        """Returns when it, or its children, have started so often.

        Raises:
            RuntimeError: It has not; with what it logged.
        """

        async def are_started() -> bool:
            return len(self.lines("worker_started")) >= starts

        try:
            await until(are_started, START_SECONDS)
        except TimeoutError:
            raise RuntimeError(f"a worker did not start:\n{self._log.read_text()}") from None
        await asyncio.sleep(0.5)  # its first look at the queues is over, and so are its imports

    def end(self) -> None:
        """Ends it in good order, or with force if it takes too long."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"{self._process.args} did not end and is killed\n")
            self._process.kill()
            self._process.wait()


async def until(happened: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Looks again and again whether something has happened elsewhere.

    Raises:
        TimeoutError: It has not, for so many seconds.
    """
    async with asyncio.timeout(seconds):
        while True:
            if await happened():
                return
            await asyncio.sleep(0.02)


_ANYBODY: Agent[str] = Agent("", name="anybody")


def _creation(store: Store, run: str, agent: Agent[Any], task: str, session: str = "") -> tuple[Any, Any]:
    """The record of a run, and its job with the ring."""
    name = agent.name or ""
    created = NewRun(
        id=run,
        digest="",
        event=encode(RunCreated(agent=name, task=task, budget=agent.budget)),
        agent=name,
        queue=agent.queue,
        limits=agent.budget.model_dump_json().encode(),
        session=session,
    )
    job = RunJob(run_id=run, queue=agent.queue, agent=name, task=task, retention_seconds=RETENTION_SECONDS)
    return store.scripts.create(created), enqueue(store.keys, job)
