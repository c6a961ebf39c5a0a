"""PURE. What there is to know of a session, read from what is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from agent.conversation import ContextState
from agent.errors import BrokenRecord
from scheduler.client.run_info import moment
from scheduler.index_pages import Entry
from scheduler.keys import unscoped
from scheduler.wire import Value, blob, number


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A conversation as it stood when it was looked at.

    Attributes:
        active: The run that it works on; '' where it is free.
        waiting: Runs that stand behind the active one.
        runs: How many runs of it are kept.
        last_activity: When a run of it was submitted, resumed or ended last.
        first_task: What it began with.
        summary: Of its older messages.
        memory: What its agents were told to remember, oldest first.
        open_questions: Questions that nobody answered.
    """

    id: str
    tenant: str = ""
    active: str = ""
    waiting: int = 0
    runs: int = 0
    last_activity: datetime
    first_task: str = ""
    summary: str = ""
    memory: Sequence[str] = ()
    open_questions: Sequence[str] = ()

    def to_json(self) -> dict[str, object]:
        """All of it as JSON carries it."""
        return to_jsonable_python(self)


def session_info_of(entry: Entry, active: str, state: Value, line: Value, runs: Value) -> SessionInfo:
    """Puts together what was read.

    Args:
        state: What the session knows, or will know if its active run ends now.

    Raises:
        BrokenRecord: What the session knows cannot be read.
    """
    try:
        context = ContextState.of(blob(state) if state else b"")
    except ValidationError as error:
        raise BrokenRecord(f"The session {entry.member!r} cannot be read: {error.error_count()} errors") from error
    return SessionInfo(
        id=unscoped(entry.member),
        tenant=entry.member.partition(":")[0],
        active=active,
        waiting=number(line),
        runs=number(runs),
        last_activity=moment(entry.at),
        first_task=context.first_task,
        summary=context.summary,
        memory=context.memory,
        open_questions=context.open_questions,
    )
