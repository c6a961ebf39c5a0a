"""Named points that do nothing unless a test arms them: `PAWL_FAILPOINTS=after_commit:3=kill`.

An armed point is reached so many times without effect, and then kills the process as SIGKILL would, or stops it. This is
how the tests show that a run survives a crash before and after every commit.
"""

import os
import signal
from collections.abc import Mapping
from typing import Final

_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Failpoints:
    """The armed points of this process.

    Args:
        armed: `name:count=kill`, several separated by commas; the point acts when it is reached for the count-th time.
    """

    def __init__(self, armed: str) -> None:
        self._left: dict[str, tuple[int, signal.Signals]] = {}
        for part in filter(None, armed.split(",")):
            where, _, action = part.partition("=")
            name, _, count = where.partition(":")
            self._left[name] = (int(count or 1), _SIGNALS[action or "kill"])

    def reach(self, name: str) -> None:
        """Counts down; acts when the count is used up."""
        if name not in self._left:
            return
        count, action = self._left[name]
        if count > 1:
            self._left[name] = (count - 1, action)
            return
        del self._left[name]
        os.kill(os.getpid(), action)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Failpoints":
        """Reads `PAWL_FAILPOINTS`."""
        return cls(environment.get("PAWL_FAILPOINTS", ""))


_points = Failpoints.from_environment()


def reach(name: str) -> None:
    """This point is reached."""
    _points.reach(name)
