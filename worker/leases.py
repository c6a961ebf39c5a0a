"""Keeps the leases of all runs of this worker, from a thread with a connection of its own.

A tool that blocks the event loop must not cost the worker its runs, so the renewal does not need the loop. But a loop that
does not answer for `stall_limit` seconds is no longer vouched for: the thread then lets the leases go. Where not even the
thread can run, the warden (see `worker.warden`) renews.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import redis
import structlog

from agent.errors import StoreUnavailable
from scheduler.replies import Flag
from scheduler.scripting import run_blocking
from scheduler.scripts import MAX_RENEWALS, Scripts
from worker.warden_keeper import WardenKeeper

BLOCKED_AFTER: Final = 1.0
"""Seconds without an answer of the event loop after which the log says what it does."""


@dataclass(slots=True)
class Lease:
    """The right to advance one run.

    Attributes:
        deadline: On the monotonic clock, seconds: until when this process may be sure of it.
        renewed: When it was last asked for and granted.
    """

    run: str
    token: str
    deadline: float = 0.0
    renewed: float = 0.0

    def granted(self, sent: float, seconds: float) -> None:
        """A renewal that was sent at `sent` was granted; a second is kept back for the way."""
        self.renewed = max(self.renewed, sent)
        self.deadline = max(self.deadline, sent + seconds - min(1.0, seconds / 4))


class LeaseKeeper:
    """Renews the leases that it was given every `renew_seconds`, until it is closed.

    Args:
        warden: Knows of the leases too, and renews them while the interpreter does not answer.
        lost: Called on the loop with a run that belongs to somebody else now.
        flagged: Called on the loop with a run that has news for its owner.
    """

    def __init__(
        self,
        scripts: Scripts,
        connect: Callable[[], redis.Redis],
        *,
        renew_seconds: float,
        stall_limit: float,
        lost: Callable[[Lease], None],
        flagged: Callable[[Lease, Flag], None],
        warden: WardenKeeper | None = None,
    ) -> None:
        self._leases: dict[str, Lease] = {}  # by token
        self._scripts = scripts
        self._connect = connect
        self._lease_seconds = scripts.policy.lease_ms / 1000
        self._renew_seconds = renew_seconds
        self._stall_limit = stall_limit
        self._lost = lost
        self._flagged = flagged
        self._warden = warden
        self._closing = threading.Event()
        self._answered = time.monotonic()
        self._thread: threading.Thread | None = None
        self._log = structlog.get_logger("pawl.leases")

    def start(self) -> None:
        """Starts the thread. Call it on the event loop that shall be watched."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)
        self._thread.start()

    def hold(self, lease: Lease) -> None:
        """From now on the lease is renewed."""
        self._leases[lease.token] = lease
        if self._warden is not None:
            self._warden.hold(lease.run, lease.token)

    def drop(self, lease: Lease) -> None:
        """The lease is over."""
        self._leases.pop(lease.token, None)
        if self._warden is not None:
            self._warden.drop(lease.token)

    def close(self) -> None:
        """Stops renewing. Leases that are still held run out by themselves."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _keep(self) -> None:
        connection = self._connect()
        blocked_since: float | None = None
        while not self._closing.wait(min(self._renew_seconds / 2, 0.5)):
            self._loop.call_soon_threadsafe(self._answer)
            silence = time.monotonic() - self._answered
            if silence > BLOCKED_AFTER and blocked_since is None:
                blocked_since = self._answered
                self._log.warning("loop_blocked", seconds=round(silence, 1), where=self._where())
            elif silence <= BLOCKED_AFTER and blocked_since is not None:
                self._log.warning("loop_answers_again", seconds=round(time.monotonic() - blocked_since, 1))
                blocked_since = None
            if silence > self._stall_limit:
                continue
            try:
                self._renew(connection)
            except StoreUnavailable as error:
                self._log.warning("lease_renewal_failed", error=str(error))
            except Exception:  # whatever it is: without this thread all runs are lost
                self._log.exception("lease_renewal_failed")
        connection.close()

    def _answer(self) -> None:
        self._answered = time.monotonic()

    def _renew(self, connection: redis.Redis) -> None:
        now = time.monotonic()
        stale = [lease for lease in list(self._leases.values()) if now - lease.renewed >= self._renew_seconds]
        for start in range(0, len(stale), MAX_RENEWALS):
            chunk = {lease.run: lease for lease in stale[start : start + MAX_RENEWALS]}
            sent = time.monotonic()
            renewed = run_blocking(
                connection, self._scripts.renew((lease.run, lease.token) for lease in chunk.values())
            )
            lost = set(renewed.lost)
            for run, lease in chunk.items():
                if run in lost:
                    self._loop.call_soon_threadsafe(self._lost, lease)
                else:
                    lease.granted(sent, self._lease_seconds)
            for flag in renewed.flagged:
                self._loop.call_soon_threadsafe(self._flagged, chunk[flag.run], flag)

    def _where(self) -> str:
        """The innermost lines of what the loop's thread does now."""
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage] - the only way to see another thread
        lines = traceback.extract_stack(frame)[-4:] if frame else []
        return " < ".join(f"{line.name} ({line.filename.rpartition('/')[2]}:{line.lineno})" for line in reversed(lines))
