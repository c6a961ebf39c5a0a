"""The record of a run as it is stored, read and checked. Frozen: changing a run is the scripts' business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from agent.errors import BrokenRecord, RunNotFound
from scheduler.keys import unscoped
from scheduler.lifecycle import ENDED, Status
from scheduler.replies import Over, read_over
from scheduler.wire import Value, array, blob, number, pairs, text

SCHEMA = 1
"""The newest version of a record that this code reads and writes."""

T = TypeVar("T")


class Held(NamedTuple):
    """A reservation of the model call under way."""

    ledger: str
    field: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run. Times are milliseconds by the store's clock; bytes are opaque to the store.

    Attributes:
        wait: What a waiting run waits for.
        reason: Why it ended, or why it is put off.
        moves: How often its status has changed; `status_at`: when it last did.
        expires_at: When its keys expire; None while it lives.
        fence: How often it was claimed; `token`: its owner's proof; `worker`: the owner. Both empty unless it is running.
        rev: Commits so far; `last`: the nonce of the latest; `seq`: events so far; `step`: the step it stands at.
        open: The model call under way, or left open by an owner that is gone, after its token; `hold`: its reservations.
        over: The limit of a ledger that refused the last reservation.
        cancel: Why it was asked to end; `forgotten`: it is no part of its session's memory.
        behind: It stands behind the active run of its session.
        crashes: At this step; `crashes_total`: in all.
        rings: Since it was last queued; `not_before`: no claim before; `deferrals`: how often workers put it off.
        mirror_status: The status that RQ was last told of; `epoch`: changes where Redis lost events that were read.
    """

    id: str
    status: Status
    schema: int
    agent: str
    session: str
    tenant: str
    queue: str
    idempotency_key: str
    digest: str
    metadata: bytes
    created_at: int
    wait: str
    reason: str
    moves: int
    status_at: int
    expires_at: int | None
    fence: int
    token: str
    worker: str
    rev: int
    last: str
    seq: int
    step: int
    state: bytes
    open: bytes
    hold: tuple[Held, ...]
    over: Over | None
    limits: bytes
    cancel: str
    forgotten: bool
    behind: bool
    crashes: int
    crashes_total: int
    rings: int
    not_before: int | None
    deferrals: int
    mirror_status: str
    epoch: str

    @property
    def ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is stored: `at` in ms by the store's clock, `body` its JSON."""

    seq: int
    at: int
    body: bytes


def read_event(run: str, entry: Value) -> StoredEvent:
    """Reads an entry of the stream. Raises BrokenRecord."""
    try:
        entry_id, fields = array(entry)
        stored = dict(pairs(fields))
        return StoredEvent(int(text(entry_id).removesuffix("-0")), number(stored[b"t"]), blob(stored[b"b"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenRecord(f"An event of run {run!r} cannot be read.") from error


def parse_record(run: str, fields: Mapping[bytes, bytes]) -> RunRecord:
    """Reads what is stored of `run`.

    Raises:
        RunNotFound: There is nothing.
        BrokenRecord: A field is missing or cannot be read; names it.
    """
    if not fields:
        raise RunNotFound(f"There is no run {run!r}: it never existed, or its retention is over.")
    read = _Fields(run, fields)
    if read.text("id") != run:
        raise BrokenRecord(f"The record of run {run!r} says that it is run {read.text('id')!r}.")
    return RunRecord(
        id=run,
        status=read.each("status", Status),
        schema=read.number("schema"),
        agent=read.text("agent"),
        session=unscoped(read.text("session")),
        tenant=read.text("tenant"),
        queue=read.text("queue"),
        idempotency_key=unscoped(read.text("idem")),
        digest=read.text("digest"),
        metadata=read.blob("metadata"),
        created_at=read.number("created_at"),
        wait=read.text("wait"),
        reason=read.text("reason"),
        moves=read.number("moves"),
        status_at=read.number("status_at"),
        expires_at=read.number_or_none("expires_at"),
        fence=read.number("fence"),
        token=read.text("token"),
        worker=read.text("worker"),
        rev=read.number("rev"),
        last=read.text("last"),
        seq=read.number("seq"),
        step=read.number("step"),
        state=read.blob("state"),
        open=read.blob("open"),
        hold=read.each("hold", _hold),
        over=read.each("over", read_over),
        limits=read.blob("limits"),
        cancel=read.text("cancel"),
        forgotten=bool(read.text("forgotten")),
        behind=bool(read.text("behind")),
        crashes=read.number("crashes"),
        crashes_total=read.number("crashes_total"),
        rings=read.number("rings"),
        not_before=read.number_or_none("not_before"),
        deferrals=read.number("deferrals"),
        mirror_status=read.text("mirror_status"),
        epoch=read.text("epoch"),
    )


class _Fields:
    """The fields of one record; each way of reading names the field that it cannot read."""

    def __init__(self, run: str, fields: Mapping[bytes, bytes]) -> None:
        self._run = run
        self._fields = fields

    def blob(self, field: str) -> bytes:
        value = self._fields.get(field.encode())
        if value is None:
            raise BrokenRecord(f"The record of run {self._run!r} lacks the field {field!r}.")
        return value

    def each(self, field: str, read: Callable[[str], T]) -> T:
        value = self.blob(field)
        try:
            return read(value.decode())
        except ValueError as error:
            shown = value[:50]
            raise BrokenRecord(f"The record of run {self._run!r} has {shown!r} in the field {field!r}.") from error

    def text(self, field: str) -> str:
        return self.each(field, str)

    def number(self, field: str) -> int:
        return self.each(field, int)

    def number_or_none(self, field: str) -> int | None:
        return self.each(field, lambda value: int(value) if value else None)


def _hold(value: str) -> tuple[Held, ...]:
    parts = value.split("\n") if value else []
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return tuple(Held(ledger, field, int(amount)) for ledger, field, amount in triples)
