"""An event loop whose clock jumps: whatever a test waits for has come at once, in the right order."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

_STUCK_AFTER: Final = 20.0
"""Real seconds without any event or timer after which a test is taken for stuck."""


class _JumpingSelector(selectors.SelectSelector):
    """Moves the clock to the next timer instead of waiting for it."""

    now: float = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None:
            if events := super().select(0):
                return events
            self.now += max(timeout, 0.0)
            return []
        events = super().select(_STUCK_AFTER)  # threads may still be at work
        if not events:
            raise RuntimeError("stuck: no timer is set, and nothing else will ever happen")
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def now() -> float:
    """The loop's clock."""
    return asyncio.get_running_loop().time()
