"""PURE. The order of runs in a session: one is active, the others stand behind it.

A run that finds its session free becomes active and is due at once. When the active run ends, in whatever way, the next one
becomes active in the same script. The Lua side is `admit`, `overtaken`, `stop` and `promote` in `sessions.lua`.

A session remembers its runs in the order in which they began. A run that is interrupted keeps its place there: its task, and
what it did. One that is rolled back leaves nothing: no messages, nothing to remember, no summary of older messages.
"""

from __future__ import annotations

from enum import StrEnum


class OnBusy(StrEnum):
    """What a run does that finds another one active in its session."""

    ENQUEUE = "enqueue"  # stands behind it, last in line
    REJECT = "reject"  # is not accepted: Conflict
    INTERRUPT = "interrupt"  # ends it, and one that was to interrupt it as well; stands first in line
    ROLLBACK = "rollback"  # likewise; what was ended is no part of the session's memory


OVERTAKES = frozenset({OnBusy.INTERRUPT, OnBusy.ROLLBACK})
