"""Runs by status, agent, session, tenant and time, newest first, in pages; and how many there are.

Each index is a zset by time of creation, but for those by status, which are by the time of that status. The smallest index
that fits is walked; the other conditions are looked at in the records. A page ends at a place, not at a number: runs that
come or go meanwhile shift nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import BrokenRecord, ConfigurationError
from scheduler.index_pages import Entry, newest
from scheduler.keys import scoped
from scheduler.lifecycle import Status
from scheduler.records import RunRecord
from scheduler.store import Store
from scheduler.wire import array, ask, number, text

MAX_PAGE = 1_000
_CHUNK = 200
_CHUNKS_A_PAGE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which runs. Empty fields ask for nothing; times are ms of creation, `since` included, `until` not.

    A session belongs to a tenant: give both.
    """

    status: Status | None = None
    agent: str = ""
    session: str = ""
    tenant: str = ""
    since: int | None = None
    until: int | None = None

    def fits(self, run: RunRecord) -> bool:
        """Whether a run is one of those asked for."""
        return (
            self.status in (None, run.status)
            and self.agent in ("", run.agent)
            and self.session in ("", run.session)
            and (self.tenant == run.tenant if self.session else self.tenant in ("", run.tenant))
            and (self.since is None or run.created_at >= self.since)
            and (self.until is None or run.created_at < self.until)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some runs; `broken` names those whose record cannot be read. `next` leads to the following page, '' if there is none.

    A page may hold fewer runs than asked for, or none, and yet have a next one.
    """

    runs: tuple[RunRecord, ...]
    broken: tuple[str, ...]
    next: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in an index: behind this score and run."""

    index: str
    score: int
    run: str

    def __str__(self) -> str:
        return f"{self.score} {self.run} {self.index}"

    @classmethod
    def read(cls, value: str) -> _Place:
        try:
            score, run, index = value.split(" ", 2)
            return cls(index, int(score), run)
        except ValueError:
            raise ConfigurationError("This is no place in a list of runs: use `next` of the page before.") from None


class Listing:
    """Lists runs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._redis = store.redis
        self._keys = store.keys

    async def page(self, query: Query, *, count: int = 50, after: str = "") -> Page:
        """The first `count` runs (at most 1,000) that fit, or those behind the place `after`."""
        count = min(count, MAX_PAGE)
        place = _Place.read(after) if after else _Place(await self._smallest_index(query), 0, "")
        if place.index not in self._indexes(query):
            raise ConfigurationError("This place belongs to another list of runs.")
        runs: list[RunRecord] = []
        broken: list[str] = []
        for _ in range(_CHUNKS_A_PAGE):
            entries = await self._behind(place, query)
            for entry, found in zip(entries, await self._store.infos([entry.run for entry in entries]), strict=True):
                place = entry
                if isinstance(found, BrokenRecord):
                    broken.append(entry.run)
                elif isinstance(found, RunRecord) and query.fits(found):
                    runs.append(found)
                if len(runs) == count:
                    return Page(tuple(runs), tuple(broken), str(place))
            if len(entries) < _CHUNK:
                return Page(tuple(runs), tuple(broken), "")
        return Page(tuple(runs), tuple(broken), str(place))

    async def counts(self) -> dict[Status, int]:
        """How many runs are in each status."""
        sizes = await ask(self._redis, *(("ZCARD", self._keys.by_status(status)) for status in Status))
        return {status: number(size) for status, size in zip(Status, sizes, strict=True)}

    async def longest_in(self, status: Status, count: int = 1) -> list[RunRecord]:
        """The runs that have been in a status for longest, the longest first."""
        (ids,) = await ask(self._redis, ("ZRANGE", self._keys.by_status(status), 0, count - 1))
        found = await self._store.infos([text(run) for run in array(ids)])
        return [run for run in found if isinstance(run, RunRecord)]

    def _indexes(self, query: Query) -> dict[str, str]:
        """The indexes that hold all runs asked for, by their keys' short names."""
        keys = self._keys
        indexes = {"time": keys.by_time}
        if query.session:
            indexes["session"] = keys.by_session(scoped(query.tenant, query.session))
        if query.status:
            indexes["status"] = keys.by_status(query.status)
        if query.agent:
            indexes["agent"] = keys.by_agent(query.agent)
        if query.tenant:
            indexes["tenant"] = keys.by_tenant(query.tenant)
        return indexes

    async def _smallest_index(self, query: Query) -> str:
        indexes = self._indexes(query)
        sizes = await ask(self._redis, *(("ZCARD", key) for key in indexes.values()))
        return min(zip(map(number, sizes), indexes, strict=True))[1]

    async def _behind(self, place: _Place, query: Query) -> list[_Place]:
        """The next entries of an index."""
        entries = await newest(
            self._redis,
            self._indexes(query)[place.index],
            _CHUNK,
            behind=Entry(place.score, place.run) if place.run else None,
            since=query.since,
            until=None if place.index == "status" else query.until,
        )
        return [_Place(place.index, entry.at, entry.member) for entry in entries]
