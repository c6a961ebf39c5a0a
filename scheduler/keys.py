"""PURE. Every key that Pawl has in Redis, and how long each lives. No key is spelled anywhere else.

All keys share one hash tag, so that a service in cluster mode keeps them in one slot. RQ's keys are RQ's own; the RQ
bridge names them.

A script is given one key, a run's record, and builds from it those that it uses: each further key would cost it as much as
a field of the record. Their names in Lua are made here too (`lua_names`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache

from agent.errors import ConfigurationError

MAX_NAME_BYTES = 256


class Life(StrEnum):
    """How long a key lives, and so what bounds it."""

    RUN = "run"  # for ever while the run lives; all of an ended run's keys expire at once
    SESSION = "session"  # for ever while one of its runs lives, then so long after the last
    LEDGER = "ledger"  # so long after the last entry
    ENTRIES = "entries"  # the key stays, its entries leave with the run, its status or its session
    FIXED = "fixed"  # one small key, or one a tenant; stays


FAMILY = {
    "run": "hash: the record",
    "events": "stream: `<n>-0`, n = 1, 2, 3 ...; fields b (the event, JSON) and t (ms)",
    "inbox": "list: what came from outside and the owner has not yet taken",
    "calls": "hash: call -> planned, asked, started:<token>",
    "asks": "hash: ask -> `<kind> <deadline ms> <words>`, or closed",
    "sids": "hash: signal id -> how it was answered",
    "live": "stream: pieces of a reply that is being written",
}
"""A run's own keys, `<prefix>:<kind>:<run>`, all with `Life.RUN`."""

SHARED = {
    "clock": (Life.FIXED, "string: milliseconds in place of the server's time; only tests set it"),
    "leases": (Life.ENTRIES, "zset: running run -> ms until its owner holds it"),
    "due": (Life.ENTRIES, "zset: queued or waiting run -> ms when it is rung or its wait is over"),
    "mirror": (Life.ENTRIES, "zset: run -> ms of a status that RQ was not yet told of"),
    "expiring": (Life.ENTRIES, "zset: what unindexes an ended run -> ms when its keys expire"),
    "by-time": (Life.ENTRIES, "zset: run -> ms of its creation"),
    "sessions": (Life.ENTRIES, "zset: session -> ms of its last activity"),
    "hints": (Life.FIXED, "channel: runs that were asked to end, or passed on"),
}

DERIVED = {
    "by-status": (Life.ENTRIES, "zset by status: run -> ms since when"),
    "by-agent": (Life.ENTRIES, "zset by agent: run -> ms of its creation"),
    "by-tenant": (Life.ENTRIES, "zset by tenant: likewise"),
    "by-session": (Life.ENTRIES, "zset by session: likewise"),
    "session": (Life.SESSION, "hash by session: active (the run it works on), state, cursor"),
    "next": (Life.SESSION, "list by session: runs behind the active one"),
    "begun": (Life.SESSION, "list by session: the latest runs that it remembers, in the order in which they began"),
    "sessions-of": (Life.ENTRIES, "zset by tenant: session -> ms of its last activity"),
    "idem": (Life.RUN, "string by idempotency key: the run that was submitted with it"),
}

OTHERS = {
    "swept-at": (Life.FIXED, "string: ms of the last sweep"),
    "fsync": (Life.FIXED, "string: written to wait for the disk or a replica behind everything before it"),
    "cards": (Life.FIXED, "hash: agent -> what workers published of it"),
    "served": (Life.FIXED, "hash: agent, line break, queue -> ms until a worker that serves both is believed in"),
    "usage": (Life.LEDGER, "hash by day: used:<field>"),
    "tenant": (Life.FIXED, "hash by tenant: used:<field>, held:<field>, limit:<field>"),
}


@dataclass(frozen=True, slots=True)
class Ledger:
    """A hash of counters: `used:<field>`; and, where there are limits, `held:<field>` and `limit:<field>`."""

    key: str
    life: Life


def name(kind: str, value: str) -> str:
    """`value`, if it can be part of a key. Raises ConfigurationError that names `kind`."""
    if not value or len(value.encode(errors="replace")) > MAX_NAME_BYTES:
        raise ConfigurationError(f"The {kind} must have 1 to {MAX_NAME_BYTES} bytes.")
    if not value.isprintable():
        raise ConfigurationError(f"The {kind} {value!r} has characters that cannot be printed; use letters and digits.")
    if kind == "tenant" and ":" in value:
        raise ConfigurationError(f"The tenant {value!r} must not contain ':'.")
    return value


def scoped(tenant: str, value: str) -> str:
    """A session or idempotency key as it is stored: no tenant meets another's."""
    return f"{tenant}:{value}"


def unscoped(value: str) -> str:
    """The session or idempotency key as its tenant gave it."""
    return value.partition(":")[2]


_IN_LUA = (
    {kind: f"PREFIX .. '{kind}:' .. own" for kind in FAMILY}
    | {kind: f"PREFIX .. '{kind}'" for kind in SHARED}
    | {kind: f"PREFIX .. '{kind}:'" for kind in DERIVED}
)


def lua_names(code: str, known: Collection[str] = ()) -> dict[str, str]:
    """What a piece of Lua calls keys, and the Lua that makes each of them from `PREFIX` and the run's id, `own`.

    Derived keys are prefixes, which a value of the record (its session, its agent ...) completes.

    Args:
        known: Names that are there already.
    """
    names = {kind.upper().replace("-", "_"): making for kind, making in _IN_LUA.items()}
    used = set(re.findall(r"\b[A-Z_]+\b", code)).difference(known)
    return {name: making for name, making in names.items() if name in used}


@lru_cache(maxsize=1_000)
def _usage(prefix: str, day: date) -> Ledger:
    return Ledger(f"{prefix}:usage:{day.isoformat()}", Life.LEDGER)


class Keys:
    """The keys of one deployment.

    Args:
        namespace: Begins all of Pawl's keys, in braces, since it is their hash tag.
    """

    def __init__(self, namespace: str = "pawl") -> None:
        self.prefix = f"{{{namespace}}}"

    def _key(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    def family(self, run: str) -> tuple[str, ...]:
        """All keys of one run, its record first."""
        return tuple(self._key(kind, run) for kind in FAMILY)

    def run(self, run: str) -> str:
        return self._key("run", run)

    def events(self, run: str) -> str:
        return self._key("events", run)

    def inbox(self, run: str) -> str:
        return self._key("inbox", run)

    def calls(self, run: str) -> str:
        return self._key("calls", run)

    def asks(self, run: str) -> str:
        return self._key("asks", run)

    def live(self, run: str) -> str:
        return self._key("live", run)

    def session(self, scoped_session: str) -> str:
        return self._key("session", scoped_session)

    def next(self, scoped_session: str) -> str:
        return self._key("next", scoped_session)

    def begun(self, scoped_session: str) -> str:
        return self._key("begun", scoped_session)

    def sessions_of(self, tenant: str) -> str:
        return self._key("sessions-of", tenant)

    def idem(self, scoped_key: str) -> str:
        return self._key("idem", scoped_key)

    def by_status(self, status: str) -> str:
        return self._key("by-status", status)

    def by_agent(self, agent: str) -> str:
        return self._key("by-agent", agent)

    def by_tenant(self, tenant: str) -> str:
        return self._key("by-tenant", tenant)

    def by_session(self, scoped_session: str) -> str:
        return self._key("by-session", scoped_session)

    @property
    def by_time(self) -> str:
        return self._key("by-time")

    @property
    def sessions(self) -> str:
        return self._key("sessions")

    @property
    def clock(self) -> str:
        return self._key("clock")

    @property
    def leases(self) -> str:
        return self._key("leases")

    @property
    def due(self) -> str:
        return self._key("due")

    @property
    def mirror(self) -> str:
        return self._key("mirror")

    @property
    def expiring(self) -> str:
        return self._key("expiring")

    @property
    def hints(self) -> str:
        return self._key("hints")

    @property
    def swept_at(self) -> str:
        return self._key("swept-at")

    @property
    def fsync(self) -> str:
        return self._key("fsync")

    @property
    def cards(self) -> str:
        return self._key("cards")

    @property
    def served(self) -> str:
        return self._key("served")

    def usage(self, day: date) -> Ledger:
        """What all runs of a day used; the worker chooses the fields."""
        return _usage(self.prefix, day)

    def tenant(self, tenant: str) -> Ledger:
        """What a tenant used, holds, and may use."""
        return Ledger(self._key("tenant", tenant), Life.FIXED)

    def life(self, key: str) -> Life | None:
        """The life of a key of ours; None if it is none."""
        kind = key.removeprefix(f"{self.prefix}:").partition(":")[0]
        if kind in FAMILY:
            return Life.RUN
        found = SHARED.get(kind) or DERIVED.get(kind) or OTHERS.get(kind)
        return found[0] if found else None
