"""The worker's side of its warden: starts it, gives it signs of life and the leases, and starts it again if it dies."""

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

import structlog

from agent.call_board import SIZE, CallBoard
from scheduler.deployment import Deployment

BEAT_SECONDS: Final = 0.5
START_SECONDS: Final = 5.0
"""The least between two starts of a warden."""

CLOSE_SECONDS: Final = 1.0
MOST_UNREAD: Final = 1 << 20
HELD_AFTER: Final = 1.0
"""Seconds beyond a beat after which the log says that the interpreter did not answer."""

_ROOT: Final = str(Path(__file__).parents[1])
_START: Final = f"import sys; sys.path.insert(0, {_ROOT!r}); from worker.warden import main; main()"


class WardenKeeper:
    """Keeps a warden. A worker goes on without one where none can be started.

    Attributes:
        board: On it the environments of the agents show which tool calls are under way, for the warden to read.

    Args:
        worker: The worker's name, for the warden's log.
    """

    def __init__(self, deployment: Deployment, worker: str) -> None:
        self._shared = shared_memory(SIZE)
        self.board = CallBoard(mmap.mmap(self._shared, SIZE))
        settings = deployment.settings
        told = {
            "redis": {
                "url": deployment.url,
                "connect_timeout": settings.connect_timeout_seconds,
                "socket_timeout": settings.socket_timeout_seconds,
            },
            "namespace": settings.namespace,
            "policy": asdict(deployment.scripts.policy),
            "renew_seconds": settings.renew_seconds,
            "stall_limit": settings.stall_limit_seconds,
            "log": {"level": settings.log_level, "form": settings.log_format},
            "worker": worker,
            "process": os.getpid(),
            "board": self._shared,
        }
        self._told = _line(told)
        self._worker = worker
        self._beat_seconds = min(BEAT_SECONDS, settings.renew_seconds / 2)
        self._leases: dict[str, str] = {}  # runs by token
        self._unsent = bytearray()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = -START_SECONDS
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="warden", daemon=True)
        self._log = structlog.get_logger("pawl.warden")

    def start(self) -> None:
        """Starts the thread that gives the signs of life, and with it the warden."""
        self._thread.start()

    def hold(self, run: str, token: str) -> None:
        """A lease was granted. The warden knows of it at once: the next thing may be a tool that holds the interpreter."""
        with self._lock:
            self._leases[token] = run
            self._send(_line(["hold", token, run]))

    def drop(self, token: str) -> None:
        """A lease is over."""
        with self._lock:
            self._leases.pop(token, None)
            self._send(_line(["drop", token]))

    def close(self) -> None:
        """Ends the warden."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(timeout=CLOSE_SECONDS)
        process = self._let_go()
        if process is None:
            return
        try:
            process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:  # it waits for Redis
            process.kill()
            process.wait()

    def _keep(self) -> None:
        # Children of this thread do not hear these either: where all processes are told to end, the worker still drains.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        self._look_after()
        beaten = time.monotonic()
        while not self._closing.wait(self._beat_seconds):
            silence = time.monotonic() - beaten
            beaten += silence
            if silence >= self._beat_seconds + HELD_AFTER:
                self._log.warning("interpreter_answers_again", worker=self._worker, seconds=round(silence, 1))
            with self._lock:
                self._send(_line(["beat"]))
            self._look_after()

    def _look_after(self) -> None:
        """Starts the warden if there is none, but not again and again."""
        process = self._process
        if process is not None:
            code = process.poll()
            if code is None:
                if len(self._unsent) > MOST_UNREAD:  # it does not read any more
                    process.kill()
                return
            self._log.warning("warden_died", worker=self._worker, warden=process.pid, code=code)
            self._let_go()
        now = time.monotonic()
        if now - self._started < START_SECONDS:
            return
        self._started = now
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(self._shared,),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._log.warning("warden_not_started", worker=self._worker, error=str(error))
            return
        assert process.stdin is not None  # noqa: S101
        os.set_blocking(process.stdin.fileno(), False)
        self._log.info("warden_started", worker=self._worker, warden=process.pid)
        with self._lock:
            self._process = process
            self._unsent.clear()
            self._send(self._told + b"".join(_line(["hold", token, run]) for token, run in self._leases.items()))

    def _send(self, lines: bytes) -> None:
        """Writes what the pipe takes now, and keeps the rest. Called with the lock."""
        process = self._process
        if process is None or process.stdin is None:
            return
        self._unsent += lines
        with contextlib.suppress(OSError):  # it is full, or the warden is dead and is started again
            del self._unsent[: os.write(process.stdin.fileno(), self._unsent)]

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        """Closes the pipe, which ends a warden that lives. Returns its process."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None and process.stdin is not None:
                process.stdin.close()
        return process


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def shared_memory(size: int) -> int:
    """A descriptor of as many zero bytes, in no file that has a name."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("pawl-calls")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.truncate(descriptor, size)
    return descriptor
