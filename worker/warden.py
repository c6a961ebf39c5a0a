"""The warden: a small process beside each worker process, which keeps its leases while its interpreter does not answer.

Native code that keeps Python's interpreter lock stops all threads of a worker, that of the leases too. So the worker gives
signs of life into a pipe, with the leases that it holds. While they come, the warden does nothing. Once they fail, it renews
what it knows of, as long as the worker is alive, not stopped (a stopped worker loses its runs), and not silent for longer
than `stall_limit`. The worker itself is sure of its leases only when it has renewed them: fencing stays as it is.

Lines of JSON come through the pipe: first what the warden has to know (so no secret is in its arguments), then
`["hold", token, run]`, `["drop", token]` and `["beat"]`. The end of the pipe is the end of the warden. Which tool calls are under
way, one of which holds the interpreter, stands on a board in shared memory. Each worker process pays for what is imported here,
so the log is not, until something is to be said.
"""

import json
import mmap
import os
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from agent.call_board import SIZE, read_board
from agent.errors import StoreError
from scheduler.connection import connect_blocking
from scheduler.keys import Keys
from scheduler.policy import Policy
from scheduler.scripting import run_blocking
from scheduler.scripts import MAX_RENEWALS, Scripts

SAID_AFTER: Final = 1.0
"""Seconds of silence after which the log says so."""

_STOPPED: Final = re.compile(r"^(State:\s+[Tt]|CoreDumping:\s+1)", re.MULTILINE)


class Warden:
    """Watches one worker.

    Args:
        told: What the worker's first line says.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.process: int = told["process"]
        self._renew_seconds: float = told["renew_seconds"]
        self._stall_limit: float = told["stall_limit"]
        self._told = told
        self._redis = connect_blocking(**told["redis"], connections=1)
        self._scripts = Scripts(Keys(told["namespace"]), Policy(**told["policy"]))
        self._leases: dict[str, str] = {}  # runs by token
        self._board = mmap.mmap(told["board"], SIZE, access=mmap.ACCESS_READ)
        self._heard = self._at_work = time.monotonic()
        self._renewed = 0.0
        self._said: set[str] = set()

    @property
    def pause(self) -> float:
        """Seconds between two looks."""
        return min(self._renew_seconds / 4, 0.5)

    def hear(self, line: bytes) -> None:
        """Takes a line of the worker."""
        self._heard = self._at_work = time.monotonic()
        self._said.clear()
        match json.loads(line):
            case ["hold", token, run]:
                self._leases[token] = run
            case ["drop", token]:
                self._leases.pop(token, None)
            case ["beat"]:
                pass
            case other:
                raise ValueError(f"a worker does not say {other!r}")

    def look(self) -> None:
        """Renews the leases if the worker is silent and has a right to them."""
        now = time.monotonic()
        if min(now - self._at_work, now - self._renewed) < self._renew_seconds:
            return
        if is_stopped(self.process):
            self._at_work = now  # from here on it is silent for another reason
            return
        silence = now - self._heard
        if silence > self._stall_limit:
            if self._is_first("let go"):
                self._log().warning("leases_let_go", **self._standing(silence))
            return
        self._renewed = now
        self._renew()
        if silence >= SAID_AFTER and self._is_first("held"):
            self._log().warning("interpreter_held", **self._standing(silence))

    def _renew(self) -> None:
        pairs = [(run, token) for token, run in self._leases.items()]
        try:
            for start in range(0, len(pairs), MAX_RENEWALS):
                run_blocking(self._redis, self._scripts.renew(pairs[start : start + MAX_RENEWALS]))
        except StoreError as error:
            self._log().warning("lease_renewal_failed", error=str(error))

    def _is_first(self, word: str) -> bool:
        """Whether this is said for the first time in this silence."""
        first = word not in self._said
        self._said.add(word)
        return first

    def _standing(self, silence: float) -> dict[str, object]:
        return {"seconds": round(silence, 1), "leases": len(self._leases), "tools": read_board(self._board[:])}

    def _log(self) -> Any:
        import structlog  # noqa: PLC0415

        from scheduler.log import configure  # noqa: PLC0415

        if not structlog.is_configured():
            configure(**self._told["log"])
        return structlog.get_logger("pawl.warden", worker=self._told["worker"])


def is_stopped(process: int) -> bool:
    """Whether a process was stopped by a signal or a debugger, or is dumping core: it is not at work, whatever it holds."""
    if Path("/proc/self/status").exists():
        try:
            return _STOPPED.search(Path(f"/proc/{process}/status").read_text()) is not None
        except OSError:  # it has just ended
            return True
    told = subprocess.run(["ps", "-o", "state=", "-p", str(process)], capture_output=True, text=True, check=False)  # noqa: S607
    return told.stdout.strip()[:1] in ("T", "t", "")


def main() -> None:
    """Watches the worker that started this process, until it is gone."""
    pipe, unread, pause = sys.stdin.fileno(), b"", 1.0
    warden: Warden | None = None
    # A child that a tool forked may hold the pipe open after the worker's end: the parent's id tells as well.
    while warden is None or os.getppid() == warden.process:
        if select.select([pipe], [], [], pause)[0]:
            data = os.read(pipe, 1 << 20)
            if not data:
                return
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                if warden is None:
                    warden = Warden(json.loads(line))
                    pause = warden.pause
                else:
                    warden.hear(line)
        elif warden is not None:
            warden.look()
