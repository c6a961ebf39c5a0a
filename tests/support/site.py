"""A deployment as its users have it: a server, worker processes started by the command line, a client; seen from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import redis

from agent.events import Event, decode
from scheduler.client import Client, RunHandle
from scheduler.keys import Keys
from scheduler.lifecycle import Status
from scheduler.records import RunRecord, parse_record
from scheduler.settings import Settings
from tests.support import traces
from tests.support.invariants import check
from tests.support.player import LEASE_SECONDS, player_of
from tests.support.servers import Server, programs
from tests.support.snapshot import take
from tests.support.traces import Traces
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
PLAYER = "tests.support.player"
END_SECONDS = 20.0

Line = dict[str, Any]


def server_program() -> Path:
    """Redis where it is installed, else the embedded server."""
    found = programs()
    return found.get("redis", found["valkey"])


class WorkerProcess:
    """A `pawl worker`, and what it logs."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "worker.cli", "worker", *arguments],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )

    @property
    def id(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._process.kill()
        self._process.wait()

    def terminate(self, seconds: float = END_SECONDS) -> int:
        """Tells it to end, and waits until it has. Returns the exit code."""
        self._process.terminate()
        return self.ended(seconds)

    def ended(self, seconds: float = END_SECONDS) -> int:
        """Waits until it has ended. Returns the exit code."""
        return self._process.wait(seconds)

    def lines(self, event: str = "", **fields: object) -> list[Line]:
        """Lines of its log: those of one event, with these fields, where that is asked for."""
        found: list[Line] = []
        for text in self._log.read_text(errors="replace").splitlines():
            line = _parsed(text)
            if event in ("", line.get("event")) and all(line.get(name) == value for name, value in fields.items()):
                found.append(line)
        return found

    def said(self, event: str, *, seconds: float = 30.0, **fields: object) -> Line:
        """Waits for a line of its log."""
        return wait_until(f"the worker logs {event} {fields or ''}", lambda: self.lines(event, **fields), seconds)[-1]

    def text(self) -> str:
        """The whole log."""
        return self._log.read_text(errors="replace")


def _parsed(text: str) -> Line:
    try:
        return cast("Line", json.loads(text))
    except ValueError:
        return {"event": "", "text": text}


class Site:
    """One deployment over a folder.

    Attributes:
        lease_seconds: The lease of workers that are started from now on.

    Args:
        server: A server of its own, which is running.
        url: Where workers and client find it, if not at its socket.
    """

    def __init__(self, server: Server, folder: Path, *, url: str = "") -> None:
        self.server = server
        self.url = url or server.url
        self.traces = Traces(folder)
        self.redis = cast(Any, redis.Redis(unix_socket_path=str(server.socket), protocol=2))
        self.client = Client(settings=Settings(redis_url=server.url))
        self.lease_seconds = LEASE_SECONDS
        self.keys = Keys()
        self._folder = folder
        self._workers: list[WorkerProcess] = []

    @property
    def environment(self) -> dict[str, str]:
        """What a process of this deployment has to be told."""
        return {
            "PAWL_REDIS_URL": self.url,
            "PAWL_LEASE_SECONDS": str(self.lease_seconds),
            "PAWL_RENEW_SECONDS": str(self.lease_seconds / 4),
            "PAWL_LOG_FORMAT": "json",
            traces.VARIABLE: str(self._folder),
        }

    def worker(self, *options: str, targets: str = PLAYER, ready: bool = True, **environment: str) -> WorkerProcess:
        """Starts a worker; with `ready`, waits until it takes runs."""
        log = self._folder / f"worker-{len(self._workers)}.log"
        worker = WorkerProcess([targets, *options], {**self.environment, **environment}, log)
        self._workers.append(worker)
        if ready:
            worker.said("worker_started")
        return worker

    def submit(self, task: str, *, queue: str = "default", **options: Any) -> RunHandle[str]:
        """Submits a play."""
        return self.client.submit(player_of(queue), task, **options)

    def rq(self, *arguments: str, code: int = 0) -> str:
        """Runs RQ's own command line, which ends with this code; what it printed."""
        command, *rest = arguments
        done = subprocess.run(
            [sys.executable, "-m", "rq.cli", command, "--url", self.server.url, *rest],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def pawl(self, *arguments: str) -> str:
        """Runs `pawl` to a good end; what it printed."""
        command = [sys.executable, "-m", "worker.cli", *arguments]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def record(self, run: str) -> RunRecord:
        """The record of a run."""
        return parse_record(run, self.redis.hgetall(self.keys.run(run)))

    def events(self, run: str) -> list[Event]:
        """The events of a run."""
        return [decode(fields[b"b"]) for _, fields in self.redis.xrange(self.keys.events(run))]

    def kinds(self, run: str) -> list[str]:
        """The types of the events of a run."""
        return [event.type for event in self.events(run)]

    def claimed_at(self, run: str) -> float:
        """When a run was claimed for the last time, Unix seconds by the clock of Redis."""
        entries = self.redis.xrange(self.keys.events(run))
        return int([fields[b"t"] for _, fields in entries if b'"run_claimed"' in fields[b"b"]][-1]) / 1000

    def reaches(self, run: str, *statuses: Status, seconds: float = 30.0) -> RunRecord:
        """Waits until a run has one of the statuses."""
        words = " or ".join(statuses)
        wait_until(f"run {run} is {words}", lambda: self.record(run).status in statuses, seconds)
        return self.record(run)

    def leaves(self, what: str, run: str = "", *, times: int = 1, seconds: float = 30.0) -> None:
        """Waits until models or tools have left so many traces of a kind."""
        wait_until(f"{times} traces of {what} {run}", lambda: len(self.traces.found(what, run)) >= times, seconds)

    def finish(self) -> None:
        """Kills the workers."""
        for worker in self._workers:
            if worker.alive:
                worker.kill()

    def passes_time(self, seconds: float) -> None:
        """Lets real time pass, where the passing of time is what a test is about."""
        until = time.monotonic() + seconds
        wait_until(f"{seconds:g} seconds have passed", lambda: time.monotonic() >= until, seconds + 5)

    def check(self) -> None:
        """Ends all workers, and looks whether the store is as it has to be."""
        self.finish()
        check(self.keys, take(self.redis, f"{self.keys.prefix}:*"))

    def close(self) -> None:
        """Ends all processes."""
        self.finish()
        self.client.close()
        self.redis.close()

    def logs(self) -> str:
        """What all workers logged, for whoever reads a failure."""
        return "\n".join(worker.text() for worker in self._workers)
