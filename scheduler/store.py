"""The store's verbs: what can be done with runs, said in words of runs. An answer that is a refusal becomes an error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from agent.errors import (
    BrokenRecord,
    Conflict,
    NotResumable,
    RunNotFound,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from scheduler.inputs import NewRun
from scheduler.keys import scoped
from scheduler.lifecycle import RESUMABLE, CancelReason
from scheduler.records import RunRecord, StoredEvent, parse_record, read_event
from scheduler.replies import Ask, Created, InboxEntry, Outcome, Refused, ToRing, read_asks, read_inbox
from scheduler.scripting import ScriptCall, run, run_many
from scheduler.scripts import Scripts
from scheduler.sessions import OnBusy
from scheduler.unavailable import mapped
from scheduler.wire import Value, array, ask, blob, number, pairs, send, text

EVENTS_PAGE = 1_000
HASTENED_AT_ONCE = 100
MOST_HASTENED = 1_000


class Store:
    """Runs in one Redis.

    Every method may raise StoreUnavailable (Redis cannot be reached or refuses: what was asked for may have been done or
    not; ask again with the same ids), RunNotFound, and BrokenRecord (kept as it is, for inspection).
    """

    def __init__(self, redis: Redis, scripts: Scripts | None = None) -> None:
        self.redis = redis
        self.scripts = scripts or Scripts()
        self.keys = self.scripts.keys

    async def create(self, new: NewRun, *behind: ScriptCall[object]) -> Created:
        """Accepts a run. Answers `already` and the run of before if it was submitted before.

        Args:
            behind: What is sent together with it and executed behind it; it has to look itself whether the run was made.

        Raises:
            Conflict: The idempotency key belongs to another task, or the session is busy and `on_busy` is reject.
            TooLarge: The task, or the line of runs in the session, is beyond its limit.
        """
        answers = await run_many(self.redis, (self.scripts.create(new), *behind))
        answer = cast("Created | Refused | Exception", answers[0])
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Created):
            return answer
        if answer.code == "conflict":
            raise Conflict(f"The idempotency key {new.idempotency_key!r} belongs to another task, run {answer.detail}.")
        if answer.code == "busy":
            raise Conflict(f"The session {new.session!r} is busy with run {answer.detail}.")
        if answer.code == "full":
            most = self.scripts.policy.max_behind
            raise TooLarge(f"{most:,} runs stand behind each other in the session {new.session!r}: max_behind.")
        raise _refusal(new.id, answer)

    async def signal(self, run_id: str, *, sid: str, kind: str, body: bytes, ask: str = "") -> str:
        """Brings a `reply`, `approve`, `reject` or `top_up` to a run; `ask` names its request, empty: the only open one.

        Returns:
            `woken` if it waited and is queued now (ring), else `kept` for its owner.

        Raises:
            Conflict: The run is over, the request is answered or was never made, or several are open and none was named.
            TooLarge: The run's inbox is full.
        """
        answer = await run(self.redis, self.scripts.signal(run_id, sid=sid, kind=kind, body=body, ask=ask))
        match answer.code:
            case "woken" | "kept":
                return answer.code
            case "already":
                return answer.detail
            case "over":
                hint = f"; `pawl resume {run_id}` lets it go on" if answer.detail in RESUMABLE else ""
                raise Conflict(f"Run {run_id} is {answer.detail}: nothing can be sent to it any more{hint}.")
            case "answered":
                raise Conflict(f"The request {ask!r} of run {run_id} has been answered or is past its deadline.")
            case "not_asked":
                raise Conflict(
                    f"Run {run_id} has no open request that {kind!r} could answer; `pawl show {run_id}` says what it asks."
                )
            case "which":
                raise Conflict(f"Run {run_id} has several open requests: name the one that is meant.")
            case "full":
                raise TooLarge(f"The inbox of run {run_id} is full (max_inbox = {self.scripts.policy.max_inbox:,}).")
            case _:
                raise _refusal(run_id, answer)

    async def cancel(self, run_id: str, *, sid: str, event: bytes, reason: CancelReason = CancelReason.USER) -> Outcome:
        """Asks a running run to end (`asked`), ends any other (`cancelled`); `over` if it had ended before."""
        answer = await run(self.redis, self.scripts.cancel(run_id, sid=sid, event=event, reason=reason))
        if isinstance(answer, Outcome):
            return answer
        if answer.code == "already":
            return Outcome(answer.detail)
        if answer.code == "over":
            return Outcome(answer.code)
        raise _refusal(run_id, answer)

    async def resume(
        self,
        run_id: str,
        *,
        sid: str,
        event: bytes,
        limits: bytes | None = None,
        on_busy: OnBusy = OnBusy.ENQUEUE,
        overtaken_event: bytes = b"",
    ) -> str:
        """Lets a failed or budget_exceeded run go on.

        Returns:
            `resumed` (ring), or `behind` another run of its session.

        Raises:
            NotResumable: It is in another status.
            Conflict: Its session is busy and `on_busy` is reject.
        """
        call = self.scripts.resume(
            run_id, sid=sid, event=event, limits=limits, on_busy=on_busy, overtaken_event=overtaken_event
        )
        answer = await run(self.redis, call)
        match answer.code:
            case "resumed" | "behind":
                return answer.code
            case "already":
                return answer.detail
            case "not_resumable":
                raise NotResumable(f"Run {run_id} is {answer.detail}; only failed and budget_exceeded runs go on.")
            case "busy":
                raise Conflict(f"The session of run {run_id} is busy with run {answer.detail}.")
            case _:
                raise _refusal(run_id, answer)

    async def hasten(self, agent: str) -> list[ToRing]:
        """Makes the queued runs of an agent due that were taken in vain, since a worker has come that can run them.

        Returns:
            Which, of the thousand that are due first. If the worker does not claim them, a sweep rings them.
        """
        by_due = ("ZINTER", 2, self.keys.due, self.keys.by_agent(agent), "AGGREGATE", "MAX")
        (found,) = await ask(self.redis, by_due)
        runs = [text(run_id) for run_id in array(found)[:MOST_HASTENED]]
        hastened: list[ToRing] = []
        for start in range(0, len(runs), HASTENED_AT_ONCE):
            some = runs[start : start + HASTENED_AT_ONCE]
            answers = await run_many(self.redis, [self.scripts.hasten(run_id) for run_id in some])
            hastened += [
                ToRing(run_id, answer.detail)
                for run_id, answer in zip(some, answers, strict=True)
                if isinstance(answer, Refused) and answer.code == "hastened"
            ]
        return hastened

    async def delete(self, run_id: str) -> None:
        """Removes an ended run and all its keys. Raises Conflict while it lives."""
        answer = await run(self.redis, self.scripts.delete(run_id))
        if answer.code == "live":
            raise Conflict(f"Run {run_id} is {answer.detail}: cancel it first.")
        if answer.code != "deleted":
            raise _refusal(run_id, answer)

    async def forget(self, session: str, tenant: str) -> None:
        """Takes the memory from a session that nobody works on.

        Raises:
            SessionNotFound: There is none of this name.
            Conflict: One of its runs has not ended.
        """
        (at,) = await ask(self.redis, ("ZSCORE", self.keys.sessions, scoped(tenant, session)))
        if at is None:
            raise session_not_found(session, tenant)
        call = self.scripts.forget(session, tenant, last_activity=int(float(text(at))))
        answer = await run(self.redis, call)
        match answer.code:
            case "missing":
                raise session_not_found(session, tenant)
            case "busy":
                raise Conflict(f"The session {session!r} is busy with run {answer.detail}: cancel it first.")
            case "moved":
                raise Conflict(f"The session {session!r} was used just now: ask again.")
            case _:
                pass

    async def info(self, run_id: str) -> RunRecord:
        """The record of a run."""
        (found,) = await self.infos((run_id,))
        if isinstance(found, StoreError):
            raise found
        return found

    async def infos(self, run_ids: Sequence[str]) -> list[RunRecord | StoreError]:
        """The records of many runs; RunNotFound or BrokenRecord in the place of one that is not there or not readable."""
        replies = await send(self.redis, [("HGETALL", self.keys.run(run_id)) for run_id in run_ids])
        return [_record(run_id, reply) for run_id, reply in zip(run_ids, replies, strict=True)]

    async def events(self, run_id: str, after: int = 0, count: int = EVENTS_PAGE) -> list[StoredEvent]:
        """At most `count` events of a run behind number `after`."""
        key = self.keys.events(run_id)
        entries, exists = await ask(
            self.redis, ("XRANGE", key, f"({after}-0", "+", "COUNT", count), ("EXISTS", self.keys.run(run_id))
        )
        if not exists:
            raise _not_found(run_id)
        return [read_event(run_id, entry) for entry in array(entries)]

    async def all_events(self, run_id: str, after: int = 0) -> AsyncIterator[StoredEvent]:
        """All events behind number `after`, read page by page."""
        page = await self.events(run_id, after)
        while page:
            for event in page:
                yield event
            page = await self.events(run_id, page[-1].seq) if len(page) == EVENTS_PAGE else []

    async def last_event(self, run_id: str) -> StoredEvent | None:
        """The newest event of a run, with which an ended run says its result."""
        (entries,) = await ask(self.redis, ("XREVRANGE", self.keys.events(run_id), "+", "-", "COUNT", 1))
        found = [read_event(run_id, entry) for entry in array(entries)]
        return found[0] if found else None

    async def asks(self, run_id: str) -> dict[str, Ask]:
        """The open requests of a run by name."""
        (found,) = await ask(self.redis, ("HGETALL", self.keys.asks(run_id)))
        return read_asks(found)

    async def calls(self, run_id: str) -> dict[str, str]:
        """The marks of a run's tool calls that have no result: planned, asked, or started:<token>."""
        (found,) = await ask(self.redis, ("HGETALL", self.keys.calls(run_id)))
        return {text(call): text(mark) for call, mark in pairs(found)}

    async def inbox(self, run_id: str) -> tuple[InboxEntry, ...]:
        """What has come in for a run and its owner has not yet taken."""
        (found,) = await ask(self.redis, ("LRANGE", self.keys.inbox(run_id), 0, -1))
        return read_inbox(found)

    async def now(self) -> int:
        """Milliseconds by the clock that the scripts go by."""
        clock, time = await ask(self.redis, ("GET", self.keys.clock), ("TIME",))
        seconds, microseconds = array(time)
        return number(clock) if clock else number(seconds) * 1000 + number(microseconds) // 1000


def _record(run_id: str, reply: Value | ResponseError) -> RunRecord | StoreError:
    if isinstance(reply, ResponseError):
        error = mapped(reply)
        if isinstance(error, StoreUnavailable):
            raise error from reply
        return error
    try:
        return parse_record(run_id, {blob(field): blob(value) for field, value in pairs(reply)})
    except (RunNotFound, BrokenRecord) as error:
        return error


def _not_found(run_id: str) -> RunNotFound:
    return RunNotFound(f"There is no run {run_id!r}: it never existed, or its retention is over.")


def session_not_found(session: str, tenant: str) -> SessionNotFound:
    """The error that says so."""
    of = f" of tenant {tenant!r}" if tenant else " without a tenant"
    return SessionNotFound(f"There is no session {session!r}{of}: it never existed, or its days are over.")


def _refusal(run_id: str, answer: Refused) -> StoreError:
    if answer.code in ("missing", "gone"):
        return _not_found(run_id)
    if answer.code == "broken":
        return BrokenRecord(f"The record of run {run_id} cannot be read: {answer.detail}.")
    return StoreError(f"Run {run_id}: the store answered {answer.code!r} {answer.detail!r}.")
