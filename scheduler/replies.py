"""What the scripts answer, as frozen records. `code` is the first word of the reply; each Lua file lists its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from scheduler.keys import unscoped
from scheduler.lifecycle import Status
from scheduler.wire import Reply, Value, array, blob, groups, number, pairs, text, texts


@dataclass(frozen=True, slots=True)
class Refused:
    """The script changed nothing of the run. `detail` is what its reply adds, such as a status, a field or milliseconds."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """Something from outside that the owner is to take: kind is reply, approve, reject, top_up or expired."""

    kind: str
    ask: str
    at: int
    sid: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """An open request. `deadline` in ms, None where it has none; `words` say to people what is asked."""

    kind: str
    deadline: int | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Created:
    """`created`, or `already` with the run that was made before. `cancelled`: the run that it ended, or ''."""

    code: str
    run: str
    behind: bool = False
    now: int = 0
    cancelled: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """`claimed` or `yours`: all that an owner needs, but for the events.

    `session_state` is what the session knew when this run became its active one; `begun`: the latest runs that it
    remembers, this one among them, in the order in which they began. `events`: all of them, as the stream holds them; None
    where there are many, which are read apart.
    """

    code: str
    now: int
    queued_since: int
    token: str
    rev: int
    seq: int
    step: int
    state: bytes
    open: bytes
    limits: bytes
    crashes: int
    crashes_total: int
    cancel: str
    created_at: int
    agent: str
    session: str
    tenant: str
    queue: str
    schema: int
    metadata: bytes
    epoch: str
    session_state: bytes
    begun: tuple[str, ...]
    calls: Mapping[str, str]
    asks: Mapping[str, Ask]
    inbox: tuple[InboxEntry, ...]
    events: Reply | None


class Over(NamedTuple):
    """A limit of a ledger that left no room for what was to be held, and how much of it was used and held."""

    ledger: str
    field: str
    used: int
    held: int
    limit: int


class Committed(NamedTuple):
    """`done`, or `already` for a commit sent again.

    `own`: the run is still this owner's, and running: a park was declined if one was asked for. `over`: the limit that left
    no room for the hold. `promoted`: the session's next run, to be rung, or ''. `inbox`: what was not yet consumed.
    """

    code: str
    own: bool
    status: Status
    rev: int
    seq: int
    cancel: str
    over: Over | None
    promoted: str
    now: int
    inbox: tuple[InboxEntry, ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """Redis lost commits of this owner: it holds only those up to `rev` and events up to `seq`."""

    rev: int
    seq: int
    code: str = "behind"


class Flag(NamedTuple):
    """A run with news for its owner."""

    run: str
    cancel: str
    unread: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """`lost`: runs that are no longer this worker's."""

    lost: tuple[str, ...]
    flagged: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script did, in its own word. `promoted`: the session's next run, to be rung, or ''."""

    code: str
    promoted: str = ""


class Expired(NamedTuple):
    run: str
    token: str


class ToRing(NamedTuple):
    run: str
    queue: str


@dataclass(frozen=True, slots=True)
class Swept:
    """`fresh` (another sweep was just there), `amnesty` (all leases raised), or `swept` and what is to be done."""

    code: str
    expired: tuple[Expired, ...] = ()
    rings: tuple[ToRing, ...] = ()
    unmirrored: tuple[str, ...] = ()
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deferred:
    delay_ms: int
    code: str = "deferred"


_STATUSES: Final = {status.value.encode(): status for status in Status}


def read_refused(reply: Reply) -> Refused:
    return Refused(text(reply[0]), text(reply[1]) if len(reply) > 1 else "")


def read_created(reply: Reply) -> Created | Refused:
    code = text(reply[0])
    if code == "already":
        return Created(code, text(reply[1]))
    if code != "created":
        return read_refused(reply)
    _, run, behind, now, cancelled = reply
    return Created(code, text(run), behind == b"1", number(now), text(cancelled))


def read_claimed(reply: Reply) -> Claimed | Refused:
    code = text(reply[0])
    if code not in ("claimed", "yours"):
        return read_refused(reply)
    (_, now, queued_since, token, rev, seq, step, state, opened, limits, crashes, crashes_total, cancel, created_at,
     agent, session, tenant, queue, schema, metadata, epoch, session_state, begun, calls, asks, inbox,
     events) = reply  # fmt: skip
    return Claimed(
        code=code, now=number(now), queued_since=number(queued_since), token=text(token), rev=number(rev),
        seq=number(seq), step=number(step), state=blob(state), open=blob(opened), limits=blob(limits),
        crashes=number(crashes), crashes_total=number(crashes_total), cancel=text(cancel),
        created_at=number(created_at), agent=text(agent), session=unscoped(text(session)), tenant=text(tenant),
        queue=text(queue), schema=number(schema), metadata=blob(metadata), epoch=text(epoch),
        session_state=blob(session_state), begun=texts(begun),
        calls={text(call): text(mark) for call, mark in pairs(calls)},
        asks=read_asks(asks), inbox=read_inbox(inbox), events=array(events) if events else None,
    )  # fmt: skip


def read_committed(reply: Reply) -> Committed | Behind | Refused:
    code = text(reply[0])
    if code == "behind":
        return Behind(number(reply[1]), number(reply[2]))
    if code not in ("done", "already"):
        return read_refused(reply)
    _, own, status, rev, seq, cancel, over, promoted, now, inbox = reply
    return Committed(
        code, own == 1, _STATUSES[blob(status)], number(rev), number(seq), text(cancel),
        read_over(text(over)) if over else None, text(promoted), number(now), read_inbox(inbox) if inbox else (),
    )  # fmt: skip


def read_renewed(reply: Reply) -> Renewed:
    _, lost, flagged = reply
    flags = groups(flagged, 3)
    return Renewed(texts(lost), tuple(Flag(text(run), text(cancel), number(unread)) for run, cancel, unread in flags))


def read_outcome(reply: Reply) -> Outcome | Refused:
    code = text(reply[0])
    if code in ("requeued", "cancelled", "failed", "asked"):
        return Outcome(code, text(reply[1]))
    return read_refused(reply)


def read_swept(reply: Reply) -> Swept:
    code = text(reply[0])
    if code != "swept":
        return Swept(code)
    _, expired, rings, unmirrored, fired = reply
    return Swept(
        code,
        tuple(Expired(text(run), text(token)) for run, token in groups(expired, 2)),
        tuple(ToRing(text(run), text(queue)) for run, queue in groups(rings, 2)),
        texts(unmirrored),
        texts(fired),
    )


def read_deferred(reply: Reply) -> Deferred | Refused:
    return Deferred(number(reply[1])) if reply[0] == b"deferred" else read_refused(reply)


def read_over(stored: str) -> Over | None:
    """A limit as it is stored: ledger, field, used, held, limit. Raises ValueError."""
    if not stored:
        return None
    ledger, field, used, held, limit = stored.split("\n")
    return Over(ledger, field, int(used), int(held), int(limit))


def read_asks(value: Value) -> dict[str, Ask]:
    """Requests `<kind> <deadline> <words>` as they are stored, those that are open."""
    asks: dict[str, Ask] = {}
    for ask, stored in pairs(value):
        kind, is_open, rest = text(stored).partition(" ")
        if is_open:
            deadline, _, words = rest.partition(" ")
            asks[text(ask)] = Ask(kind, int(deadline) if deadline else None, words)
    return asks


def read_inbox(value: Value) -> tuple[InboxEntry, ...]:
    """Entries `<kind> <ask> <at> <sid> <body>` as they are stored."""
    entries: list[InboxEntry] = []
    for entry in array(value):
        kind, ask, at, sid, body = blob(entry).split(b" ", 4)
        entries.append(InboxEntry(kind.decode(), ask.decode(), int(at), sid.decode(), body))
    return tuple(entries)
