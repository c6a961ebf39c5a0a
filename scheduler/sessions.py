"""PURE. The order of runs in a session: one is active, the others stand behind it.

A run that finds its session free becomes active and is due at once. When the active run ends, in whatever way, the next one
becomes active in the same script. The Lua side is `admit`, `stop` and `promote` in the prelude.
"""

from __future__ import annotations

from enum import StrEnum


class OnBusy(StrEnum):
    """What a run does that finds another one active in its session."""

    QUEUE = "queue"  # stands behind it, last in line
    REJECT = "reject"  # is not accepted: Conflict
    INTERRUPT = "interrupt"  # asks it to end and stands first in line
    ROLLBACK = "rollback"  # likewise; what was interrupted is no part of the session's memory


OVERTAKES = frozenset({OnBusy.INTERRUPT, OnBusy.ROLLBACK})
