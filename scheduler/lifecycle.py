"""PURE. The statuses of a run and every way from one to another, in one table.

    queued → running → (waiting → queued → running)* → completed | failed | cancelled | budget_exceeded

Each Lua script says at its head which of these transitions it makes; a test compares.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"  # wants a worker, or a place in its session
    RUNNING = "running"  # a worker owns it
    WAITING = "waiting"  # for a person, a timer, children or a rate limit; holds nothing
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    BUDGET_EXCEEDED = "budget_exceeded"


STATUSES: Final = {str(status): status for status in Status}
"""By their words."""


class Wait(StrEnum):
    """What a waiting run waits for."""

    REPLY = "reply"
    APPROVAL = "approval"
    TIMER = "timer"
    CHILDREN = "children"
    RATE_LIMIT = "rate_limit"


class CancelReason(StrEnum):
    """Why a run was asked to end."""

    USER = "user"
    INTERRUPT = "interrupt"  # a new run of its session takes over
    ROLLBACK = "rollback"  # likewise, and it is no part of the session's memory


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.BUDGET_EXCEEDED})
LIVE = frozenset(Status) - ENDED
RESUMABLE = frozenset({Status.FAILED, Status.BUDGET_EXCEEDED})

Transition = tuple[Status | None, Status]

TRANSITIONS: dict[Transition, frozenset[str]] = {
    (None, Status.QUEUED): frozenset({"create"}),
    (Status.QUEUED, Status.RUNNING): frozenset({"claim"}),
    (Status.RUNNING, Status.QUEUED): frozenset({"commit", "reap"}),
    (Status.RUNNING, Status.WAITING): frozenset({"commit"}),
    (Status.WAITING, Status.QUEUED): frozenset({"signal", "sweep"}),
    (Status.RUNNING, Status.COMPLETED): frozenset({"commit"}),
    (Status.RUNNING, Status.FAILED): frozenset({"commit", "reap"}),
    (Status.RUNNING, Status.CANCELLED): frozenset({"commit", "reap"}),
    (Status.RUNNING, Status.BUDGET_EXCEEDED): frozenset({"commit"}),
    (Status.QUEUED, Status.CANCELLED): frozenset({"cancel", "create", "resume"}),
    (Status.WAITING, Status.CANCELLED): frozenset({"cancel", "create", "resume"}),
    (Status.FAILED, Status.QUEUED): frozenset({"resume"}),
    (Status.BUDGET_EXCEEDED, Status.QUEUED): frozenset({"resume"}),
}
"""Every transition and the scripts that make it. None: the run does not exist yet."""

COMMITTED = frozenset(
    {Status.RUNNING} | {target for (_, target), scripts in TRANSITIONS.items() if "commit" in scripts}
)
"""What an owner's commit may lead to."""


def is_allowed(source: Status | None, target: Status) -> bool:
    """Whether some script leads from `source` to `target`."""
    return (source, target) in TRANSITIONS
