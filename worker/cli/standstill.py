"""Says why a run does not begin, to a person who waits for it."""

from __future__ import annotations

import threading
from typing import Final

from agent.errors import PawlError
from agent.events import Event, RunCreated, RunReleased, RunRequeued, RunResumed
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from worker.cli.errors import complain
from worker.cli.output import say

PATIENCE_SECONDS: Final = 2.0
"""How long a run may be queued without a word."""


class Standstill:
    """Watches one run beside whoever follows its events: that one hears nothing as long as nothing happens."""

    def __init__(self, run: RunHandle[object]) -> None:
        self._run = run
        self._timer: threading.Timer | None = None

    def heed(self, event: Event) -> None:
        """Takes note of what happened."""
        self.stop()
        if isinstance(event, RunCreated | RunReleased | RunRequeued | RunResumed):
            self.start()

    def start(self) -> None:
        """From now on the run is queued."""
        self.stop()
        self._timer = threading.Timer(PATIENCE_SECONDS, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Nobody waits any more, or the run goes on."""
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        try:
            info = self._run.info()
        except PawlError as error:
            complain(str(error))
            return
        if info.status is Status.QUEUED:
            say(f"  queued: {info.reason}")
