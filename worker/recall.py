"""What a session remembers: read when one of its runs is claimed, once for each activation."""

from collections.abc import Sequence

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis

from agent.conversation import ContextState, EarlierRun
from agent.errors import BrokenRecord
from agent.events import ContextCompacted, Recorded, Remembered, decode
from agent.state import RunState
from scheduler.histories import histories
from scheduler.keys import scoped
from scheduler.records import RunRecord, StoredEvent
from scheduler.replies import Claimed
from scheduler.store import Store
from scheduler.wire import array, ask, text


class Recall:
    """Reads what a session knows, and its earlier runs from the cursor on."""

    def __init__(self, redis: Redis, store: Store) -> None:
        self._redis = redis
        self._store = store
        self._log = structlog.get_logger("pawl.recall")

    async def of(self, run: str, claimed: Claimed) -> tuple[ContextState, Sequence[EarlierRun]]:
        """What there is to know before this run. An earlier run that cannot be read is left out, and the log says so.

        Raises:
            BrokenRecord: The session's own state cannot be read.
            StoreUnavailable: Redis did not answer.
        """
        if not claimed.session:
            return ContextState(), ()
        context = _context(claimed.session_state)
        earlier: list[EarlierRun] = []
        runs = await self._runs_before(run, claimed, context)
        for one, story in zip(runs, await histories(self._redis, self._store.keys, runs), strict=True):
            try:
                earlier.append(_earlier(one, story))
            except BrokenRecord as broken:
                self._log.error("earlier_run_broken", session=claimed.session, earlier=one, error=str(broken))
        return context, earlier

    async def _runs_before(self, run: str, claimed: Claimed, context: ContextState) -> list[str]:
        """The session's ended runs that came before this one, from the position of the context on; not those rolled back."""
        index = self._store.keys.by_session(scoped(claimed.tenant, claimed.session))
        (found,) = await ask(self._redis, ("ZRANGEBYSCORE", index, "-inf", claimed.created_at))
        runs = [text(one) for one in array(found) if text(one) != run]
        if context.run in runs:
            runs = runs[runs.index(context.run) :]
        records = await self._store.infos(runs) if runs else []
        return [one.id for one in records if isinstance(one, RunRecord) and one.ended and not one.forgotten]


def _context(state: bytes) -> ContextState:
    try:
        return ContextState.model_validate_json(state or b"{}")
    except ValidationError as error:
        raise BrokenRecord(f"the session's state cannot be read: {error.error_count()} errors") from error


def _earlier(run: str, story: Sequence[StoredEvent] | BrokenRecord) -> EarlierRun:
    if isinstance(story, BrokenRecord):
        raise story
    state = RunState()
    remembered: list[str] = []
    for one in story:
        event = decode(one.body)
        if isinstance(event, ContextCompacted):
            continue  # it is about that run's window, not about its messages
        if isinstance(event, Remembered):
            remembered.append(event.text)
        state.apply(Recorded(seq=one.seq, at=one.at, event=event))
    return EarlierRun(run, state.messages(), remembered)
