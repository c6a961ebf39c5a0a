"""What the scripts are told, beside plain values. Bodies are opaque bytes; times are milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from scheduler.keys import Ledger
from scheduler.sessions import OnBusy

ASK_OF = {"reply": "reply", "approve": "approval", "reject": "approval", "top_up": ""}
"""Kinds of signals, and the kind of request that each answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run to be accepted.

    Attributes:
        digest: Tells one submission from another under the same idempotency key.
        event: The first event, with the task.
        session, tenant, idempotency_key: Empty: none. Sessions and idempotency keys are a tenant's own.
        limits: The budget; `metadata`: the submitter's.
        at_ms, delay_ms: When it is due, if not at once.
        on_busy: What to do where another run of the session is active.
        overtaken_event: The event that ends a run which `on_busy` overtakes, where no worker has it.
    """

    id: str
    digest: str
    event: bytes
    agent: str
    queue: str
    session: str = ""
    tenant: str = ""
    idempotency_key: str = ""
    limits: bytes = b""
    metadata: bytes = b""
    at_ms: int | None = None
    delay_ms: int | None = None
    on_busy: OnBusy = OnBusy.ENQUEUE
    overtaken_event: bytes = b""


class Entry(NamedTuple):
    """An amount of something on a ledger: used or to be held. Integers only; money in nano- or micro-dollars."""

    ledger: Ledger
    field: str
    amount: int


class NewAsk(NamedTuple):
    """A request that a run opens: kind is `reply` or `approval`; `words` are for people."""

    kind: str
    delay_ms: int | None = None
    words: str = ""


class PoisonEvent(NamedTuple):
    """The event and the reason of the end, where a crash turns out to be one too many."""

    body: bytes
    reason: str
