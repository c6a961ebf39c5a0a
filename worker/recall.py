"""What a run has to know when it is claimed: its own events, and what its session remembers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis

from agent.conversation import ContextState, EarlierRun
from agent.earlier import earlier_run as said_in
from agent.errors import BrokenRecord, StoreUnavailable
from agent.events import Recorded, decode
from scheduler.histories import FIRST_PAGE, fewer, next_count, pages, read_history
from scheduler.keys import Keys
from scheduler.records import StoredEvent
from scheduler.replies import Claimed

AGAIN_SECONDS: Final = 0.5


class Recall:
    """Reads a run's own events, what its session knew when it became the active one, and the messages of the runs before."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys
        self._log = structlog.get_logger("pawl.recall")

    async def of(self, run: str, claimed: Claimed) -> tuple[ContextState, Sequence[EarlierRun]]:
        """What there is to know before this run. Of an earlier run that cannot be read nothing is known, and the log says so.

        An outage of Redis is waited out: it is no failure of the run.

        Raises:
            BrokenRecord: The session's own state cannot be read.
        """
        if not claimed.session:
            return ContextState(), ()
        context, runs = known_before(run, claimed.begun, _context(claimed.session_state))
        earlier: list[EarlierRun] = []
        for one, story in zip(runs, await self._histories(runs), strict=True):
            try:
                earlier.append(earlier_run(one, story))
            except BrokenRecord as broken:
                self._log.error("earlier_run_broken", session=claimed.session, earlier=one, error=str(broken))
                earlier.append(EarlierRun(one, ()))
        return context, earlier

    async def story(self, run: str, claimed: Claimed) -> Sequence[StoredEvent]:
        """All events of a claimed run: most claims bring them along, long histories are read now.

        Raises:
            BrokenRecord: They cannot be read.
        """
        if claimed.events is None:
            (story,) = await self._histories((run,))
        else:
            story = read_history(run, claimed.events)
        if isinstance(story, BrokenRecord):
            raise story
        return story

    async def _histories(self, runs: Sequence[str]) -> Sequence[Sequence[StoredEvent] | BrokenRecord]:
        """All events of each run. Nothing is added meanwhile: they have ended, or this worker owns them."""
        stories: dict[str, list[StoredEvent]] = {run: [] for run in runs}
        broken: dict[str, BrokenRecord] = {}
        unread, count = list(runs), FIRST_PAGE
        while unread:
            places = [(run, stories[run][-1].seq if stories[run] else 0) for run in unread]
            try:
                found = await pages(self._redis, self._keys, places, count)
            except StoreUnavailable as error:
                self._log.warning("recall_waits", error=str(error))
                await asyncio.sleep(AGAIN_SECONDS)
                count = fewer(count)
                continue
            unread, size = list[str](), 0
            for (run, _), page in zip(places, found, strict=True):
                if isinstance(page, BrokenRecord):
                    broken[run] = page
                    continue
                stories[run] += page
                size += sum(len(event.body) for event in page)
                if len(page) == count:
                    unread.append(run)
            count = next_count(count, size)
        return [broken.get(run, stories[run]) for run in runs]


def known_before(run: str, begun: Sequence[str], context: ContextState) -> tuple[ContextState, Sequence[str]]:
    """The runs to read from the position of the context on, of those that began before this one.

    A run that was resumed after later ones had begun finds the position behind itself: all that came before it is in the
    summary. It becomes the position then, so that no later run misses what it goes on to say.
    """
    before = begun[: begun.index(run)] if run in begun else ()
    if context.run in before:
        return context, before[before.index(context.run) :]
    if context.run in begun:
        return replace(context, run=run, offset=context.offset if context.run == run else 0), ()
    return context, before


def earlier_run(run: str, story: Sequence[StoredEvent] | BrokenRecord) -> EarlierRun:
    """The messages of a run, every call answered, and what was to be remembered. None of one whose retention is over.

    Raises:
        BrokenRecord: Its events cannot be read.
    """
    if isinstance(story, BrokenRecord):
        raise story
    return said_in(run, (Recorded(seq=one.seq, at=one.at, event=decode(one.body)) for one in story))


def _context(state: bytes) -> ContextState:
    try:
        return ContextState.of(state)
    except ValidationError as error:
        raise BrokenRecord(f"the session's state cannot be read: {error.error_count()} errors") from error
