"""Reads sessions, in three round trips however many they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.asyncio import Redis

from agent.errors import BrokenRecord, ConfigurationError
from scheduler.client.session_info import SessionInfo, session_info_of
from scheduler.index_pages import Entry, newest
from scheduler.keys import Keys, name, scoped, unscoped
from scheduler.store import session_not_found
from scheduler.wire import Value, array, ask, groups, text

MAX_PAGE = 1_000
_COMMANDS_A_SESSION = 3
_MOST_DIGITS = 18  # of a place's moment


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, the last active first. `broken`: names of those that cannot be read. `next`: the place of the next page,
    or ''."""

    sessions: tuple[SessionInfo, ...]
    broken: tuple[str, ...]
    next: str


class SessionReader:
    """Looks at sessions."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def page(self, tenant: str, *, count: int, after: str) -> SessionPage:
        """The `count` sessions of a tenant ('': of all) that were active last, or those behind the place `after`."""
        index = self._keys.sessions_of(name("tenant", tenant)) if tenant else self._keys.sessions
        count = max(1, min(count, MAX_PAGE))
        entries = await newest(self._redis, index, count, behind=_place(after) if after else None)
        sessions: list[SessionInfo] = []
        broken: list[str] = []
        for entry, found in zip(entries, await self._read(entries), strict=True):
            if isinstance(found, SessionInfo):
                sessions.append(found)
            else:
                broken.append(unscoped(entry.member))
        last = entries[-1] if len(entries) == count else None
        return SessionPage(tuple(sessions), tuple(broken), f"{last.at} {last.member}" if last else "")

    async def info(self, session: str, tenant: str) -> SessionInfo:
        """One session.

        Raises:
            SessionNotFound: There is none of this name.
            BrokenRecord: What it knows cannot be read.
        """
        member = scoped(tenant, name("session", session))
        (at,) = await ask(self._redis, ("ZSCORE", self._keys.sessions, member))
        if at is None:
            raise session_not_found(session, tenant)
        (found,) = await self._read([Entry(int(float(text(at))), member)])
        if isinstance(found, BrokenRecord):
            raise found
        return found

    async def _read(self, entries: Sequence[Entry]) -> list[SessionInfo | BrokenRecord]:
        keys = self._keys
        commands = [
            command
            for entry in entries
            for command in (
                ("HMGET", keys.session(entry.member), "active", "state"),
                ("LLEN", keys.next(entry.member)),
                ("ZCARD", keys.by_session(entry.member)),
            )
        ]
        replies = groups(await ask(self._redis, *commands) if commands else [], _COMMANDS_A_SESSION)
        sessions = [(text(active or b""), state) for active, state in (array(fields) for fields, _, _ in replies)]
        drafts = await self._drafts([active for active, _ in sessions if active])
        found: list[SessionInfo | BrokenRecord] = []
        for entry, (active, state), (_, line, runs) in zip(entries, sessions, replies, strict=True):
            try:
                found.append(session_info_of(entry, active, drafts.get(active) or state, line, runs))
            except BrokenRecord as broken:
                found.append(broken)
        return found

    async def _drafts(self, active: Sequence[str]) -> Mapping[str, Value]:
        """What active runs have made of what their sessions know."""
        commands = [("HGET", self._keys.run(run), "context") for run in active]
        return dict(zip(active, await ask(self._redis, *commands) if commands else [], strict=True))


def _place(value: str) -> Entry:
    at, _, member = value.partition(" ")
    if not (at.isdecimal() and len(at) <= _MOST_DIGITS and member):
        raise ConfigurationError("This is no place in a list of sessions: use `next` of the page before.")
    return Entry(int(at), member)
