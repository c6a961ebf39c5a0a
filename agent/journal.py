"""The journal: where a run's commits go. One protocol, so that a run in process and a durable run are one engine.

A commit carries what happened and announces what comes next, in one piece. The in-memory journal is for `agent.run()`; the
one in Redis is `worker.journal`.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from agent.budget import Breach, Budget, Reservation, Usage
from agent.conversation import ContextState
from agent.events import Event, Recorded, RequestOpened
from agent.requests import Answer
from agent.state import Checkpoint, Mark

Target = Literal["running", "queued", "waiting", "completed", "failed", "cancelled", "budget_exceeded"]


class Commit(NamedTuple):
    """One atomic move of a run.

    Attributes:
        events: What happened, in order.
        checkpoint: The head of the state behind these events.
        to: The status behind the commit; all but `running` end the activation.
        wait, delay_ms: For `queued` and `waiting`: what for, and milliseconds until it is due (None: no deadline).
        opening: The model call that starts once this is acknowledged.
        charge: What the model call that was open turned out to use, also one that an earlier activation left open; None where
            none was open.
        marks: Tool calls that start once this is acknowledged (STARTED) or are planned, by their key; None takes a mark away.
        requests: What a person is asked from now on.
        acknowledged: How many inbox entries these events contain.
        budget: The new limits, where they changed.
        context: What the session shall know if the run ends behind this commit, where that changed.
    """

    events: Sequence[Event]
    checkpoint: Checkpoint
    to: Target = "running"
    wait: str = ""
    delay_ms: int | None = None
    opening: Reservation | None = None
    charge: Usage | None = None
    marks: Mapping[str, Mark | None] = MappingProxyType({})
    requests: Sequence[RequestOpened] = ()
    acknowledged: int = 0
    budget: Budget | None = None
    context: ContextState | None = None


class News(NamedTuple):
    """What arrived meanwhile: every commit answers with it.

    Attributes:
        cancel: Why the run shall end ('' : it shall not).
        arrived: What came into the inbox, in order: limits to add on top, and answers to requests.
        over: The limit shared with other runs that has no room for the opening; it was not granted.
        stayed: The run did not leave `running` as asked, since news came first.
    """

    cancel: str = ""
    arrived: Sequence[Budget | Answer] = ()
    over: Breach | None = None
    stayed: bool = False


NO_NEWS = News()


class Journal(Protocol):
    """Takes commits, one at a time.

    Raises:
        LeaseLost: From every method, once another worker owns the run.
    """

    async def commit(self, commit: Commit) -> News:
        """Writes one commit. When it returns, the commit is durable as far as the store promises."""
        ...

    def owns_run(self) -> bool:
        """Whether it is sure that this process owns the run at this moment. Any thread may ask."""
        ...

    async def permit(self) -> None:
        """Returns once it is sure that this process still owns the run: awaited last before every effect outside."""
        ...

    async def secure(self) -> None:
        """Returns once the commits so far are as safe as the settings ask: called before an effect that must not be repeated."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the run was submitted, by the store's clock."""
        ...


class MemoryJournal:
    """The journal of a run that lives in this process only. Its clock is the event loop's."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self._now = asyncio.get_running_loop().time
        self._started = self._now()

    async def commit(self, commit: Commit) -> News:
        """Keeps the events."""
        now = int(time.time() * 1000)
        first = len(self.events) + 1
        self.events += [Recorded(seq=first + i, at=now, event=event) for i, event in enumerate(commit.events)]
        return NO_NEWS

    def owns_run(self) -> bool:
        """Nobody else can own the run."""
        return True

    async def permit(self) -> None:
        """Nobody else can own the run."""

    async def secure(self) -> None:
        """Nothing here outlives the process."""

    def wall_ms(self) -> int:
        """Milliseconds since the journal was made."""
        return int((self._now() - self._started) * 1000)
