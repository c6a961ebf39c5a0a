"""The course of the demo: start, submit, kill one worker, watch the others take over, count what was done twice."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from agent.errors import ConfigurationError
from agent.events import RunClaimed
from scheduler.client import AsyncClient, AsyncRunHandle, RunInfo
from scheduler.lifecycle import Status
from scheduler.settings import Settings
from worker.demo.bookkeeper import EFFECTS, STEPS, bookkeeper
from worker.demo.screen import Screen

LOOK_SECONDS: Final = 0.2
LONGEST_SECONDS: Final = 180.0
AGENT_MODULE: Final = "worker.demo.bookkeeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How large the demo is."""

    runs: int = 20
    processes: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What came of it. `takeover_seconds`: from the kill to the last claim of a run that the dead worker had.

    Attributes:
        duplicate_tool_calls: Effects in the tools' own file that happened more than once.
        look_at: A run that is worth a look.
    """

    runs: int
    completed: int
    taken_over: int
    takeover_seconds: float
    duplicate_tool_calls: int
    steps: int
    seconds: float
    look_at: str = ""

    def as_json(self) -> str:
        """One JSON object."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "look_at"})


@dataclass(frozen=True, slots=True)
class Kill:
    """Which worker was killed, when (seconds since 1970), and the runs that it had."""

    worker: str
    at: float
    runs: frozenset[str]


async def run_demo(options: DemoOptions, screen: Screen) -> Summary:
    """Runs the demo to its end.

    Raises:
        ConfigurationError, StoreUnavailable: There is no server to use.
        TimeoutError: The runs did not end in time; the message names the log to look into.
    """
    settings = Settings.from_environment()
    if settings.embedded != "never":
        if settings.redis_url is not None:
            screen.say("The demo leaves the Redis of PAWL_REDIS_URL alone and uses a private server.")
        settings = replace(settings, redis_url=None)  # the demo brings its own server
    folder = Path(tempfile.mkdtemp(prefix="pawl-demo-"))
    effects, log = folder / "effects.jsonl", folder / "workers.log"
    effects.touch()
    started = time.monotonic()
    async with AsyncClient(settings=settings) as client, _workers(options, settings, effects, log) as parent:
        screen.say(f"{options.processes} worker processes under one parent; their log: {log}")
        await _until_ready(client, options.processes, parent, log)
        runs = [await client.submit(bookkeeper, f"Settle order {number}.") for number in range(options.runs)]
        screen.say(f"{len(runs)} runs submitted to {bookkeeper.name} on {bookkeeper.model.name}")
        infos, kill = await _watch(runs, parent, screen, log)
        claims = await _claims_after(kill, {run.id: run for run in runs}) if kill else {}
    return Summary(
        runs=len(runs),
        completed=sum(info.status is Status.COMPLETED for info in infos),
        taken_over=len(claims),
        takeover_seconds=round(max(claims.values(), default=0.0), 3),
        duplicate_tool_calls=duplicates_in(effects),
        steps=sum(info.step for info in infos),
        seconds=round(time.monotonic() - started, 1),
        look_at=next(iter(claims), runs[0].id),
    )


@contextlib.asynccontextmanager
async def _workers(
    options: DemoOptions, settings: Settings, effects: Path, log: Path
) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """The parent of the worker processes; told to end, and waited for, behind the block."""
    environment = {**os.environ, EFFECTS: str(effects)}
    environment.pop("PAWL_REDIS_URL", None)
    if settings.redis_url is not None:
        environment["PAWL_REDIS_URL"] = settings.redis_url
    command = [sys.executable, "-m", "worker.cli", "worker", AGENT_MODULE, "--processes", str(options.processes)]
    with log.open("ab") as output:
        parent = subprocess.Popen(  # noqa: ASYNC220 - starting one takes milliseconds
            [*command, "--concurrency", "50", "--grace", "5"],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield parent
    finally:
        with contextlib.suppress(ProcessLookupError):
            parent.terminate()
        await asyncio.to_thread(parent.wait, 30)


async def _until_ready(client: AsyncClient, count: int, parent: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until all workers take runs, so that they share them."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        workers = [worker.name for worker in await client.workers()]
        if sum(_parent_of(process_of(worker)) == parent.pid for worker in workers) >= count:
            return
        _look_after(parent, deadline, log, "start")
        await asyncio.sleep(LOOK_SECONDS)


def _look_after(parent: subprocess.Popen[bytes], deadline: float, log: Path, what: str) -> None:
    if parent.poll() is not None:
        raise ConfigurationError(f"the workers have ended with code {parent.returncode}; see {log}")
    if time.monotonic() > deadline:
        raise TimeoutError(f"the demo did not {what} within {LONGEST_SECONDS:g} s; see {log}")


async def _watch(
    runs: Sequence[AsyncRunHandle[str]], parent: subprocess.Popen[bytes], screen: Screen, log: Path
) -> tuple[list[RunInfo], Kill | None]:
    """Shows the runs until they have ended; kills one worker once half of the steps are made."""
    kill: Kill | None = None
    deadline = time.monotonic() + LONGEST_SECONDS
    while True:
        infos = [await run.info() for run in runs]
        screen.show(infos, steps=len(runs) * STEPS)
        if all(info.ended for info in infos):
            return infos, kill
        if kill is None and sum(info.step for info in infos) >= len(runs) * STEPS / 2:
            kill = _kill_one(infos, parent.pid)
            if kill:
                screen.say(f"SIGKILL to worker {kill.worker}, which had {len(kill.runs)} runs")
        _look_after(parent, deadline, log, "end")
        await asyncio.sleep(LOOK_SECONDS)


def _kill_one(infos: Sequence[RunInfo], parent: int) -> Kill | None:
    """Kills the worker that has the most runs, if it is a child of our parent process."""
    held = Counter(info.worker for info in infos if info.status is Status.RUNNING and info.worker)
    for worker, _ in held.most_common():
        process = process_of(worker)
        if _parent_of(process) != parent:
            continue
        runs = frozenset(info.id for info in infos if info.worker == worker and info.status is Status.RUNNING)
        at = time.time()
        os.kill(process, signal.SIGKILL)
        return Kill(worker, at, runs)
    return None


def process_of(worker: str) -> int:
    """The process id in a worker's name, `host:process:mark`."""
    return int(worker.split(":")[1])


def _parent_of(process: int) -> int | None:
    """The parent of a process on this machine."""
    answer = subprocess.run(["ps", "-o", "ppid=", "-p", str(process)], capture_output=True, text=True, check=False)  # noqa: S607
    return int(answer.stdout) if answer.stdout.strip() else None


async def _claims_after(kill: Kill, runs: Mapping[str, AsyncRunHandle[str]]) -> dict[str, float]:
    """Seconds from the kill to the next claim of each run that the dead worker had."""
    claims: dict[str, float] = {}
    for run_id in kill.runs:
        async for recorded in runs[run_id].events():
            claimed_at = recorded.at / 1000
            event = recorded.event
            if isinstance(event, RunClaimed) and event.worker != kill.worker and claimed_at >= kill.at:
                claims[run_id] = claimed_at - kill.at
                break
    return claims


def duplicates_in(effects: Path) -> int:
    """How many effects of the file are repetitions of one that was there before."""
    keys = Counter(json.loads(line)["key"] for line in effects.read_bytes().splitlines())
    return sum(count - 1 for count in keys.values())
