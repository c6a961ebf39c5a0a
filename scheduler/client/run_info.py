"""PURE. What there is to know of a run, read from its record, and why it waits, in words."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from agent.budget import Amount, Budget, Elapsed, Reservation, Usage, left
from agent.errors import BrokenRecord
from agent.events import Event, RunBudgetExceeded, RunCancelled, RunCompleted, RunFailed
from agent.state import Checkpoint
from scheduler.lifecycle import CancelReason, Status, Wait
from scheduler.records import RunRecord
from scheduler.replies import Ask

REQUEST_WAITS = frozenset({Wait.REPLY, Wait.APPROVAL})
"""Waits that only a person ends."""


_ANSWERS = {
    "reply": "`pawl reply {run} TEXT --request REQUEST`",
    "approval": "`pawl approve {run} REQUEST` or `pawl reject {run} REQUEST`",
}
"""How one of several requests is answered."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a run asks of a person.

    Attributes:
        kind: `reply` (a question) or `approval` (of a tool call).
        question: In words, for people.
    """

    id: str
    kind: str
    deadline: datetime | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is stored of a run beside its record. Times are milliseconds."""

    claimed_at: int | None = None
    due_at: int | None = None
    asks: Mapping[str, Ask] = field(default_factory=dict[str, Ask])
    last_event: Event | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a waiting run depends on.

    Attributes:
        now: Milliseconds, by the store's clock.
        served: The agents that workers have; None: not looked at.
        suspended: RQ's workers are suspended.
        active: The run that its session works on.
    """

    now: int
    served: Collection[str] | None = None
    suspended: bool = False
    active: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as it stood when it was looked at.

    Attributes:
        wait: What a waiting run waits for: reply, approval, timer, children, rate_limit.
        reason: Why it waits or how it ended, for people.
        step: Model replies so far.
        usage: What it has used. A call that was cut off counts with all that was reserved for it.
        budget_left: What is left of each limit that it has, in the limit's own unit.
        worker: Who has it now.
        due_at: When its wait is over at the latest, or when it may begin; None: not known, or at once.
        crashes: Workers that it lost, in all.
        requests: What it asks of people now.
        output: The result as JSON, where it is completed. Only `info()` of one run reads it, not a list.
        error: Why it failed or was ended. `partial`: the last text that the model wrote before. Not in a list either.
    """

    id: str
    status: Status
    wait: str = ""
    reason: str = ""
    agent: str
    session: str = ""
    tenant: str = ""
    queue: str = "default"
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    step: int = 0
    usage: Usage
    budget: Budget
    budget_left: Mapping[str, Amount]
    worker: str = ""
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    due_at: datetime | None = None
    crashes: int = 0
    requests: tuple[Request, ...] = ()
    output: object = None
    error: str = ""
    partial: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it has ended; a failed or budget_exceeded run can be resumed."""
        return self.ended_at is not None

    @property
    def cost_usd(self) -> Decimal | None:
        """US dollars so far; None where the price of a call is not known."""
        return None if self.usage.unpriced_calls else self.usage.cost_usd

    def to_json(self) -> dict[str, object]:
        """All of it as JSON carries it."""
        return {**to_jsonable_python(self), "cost_usd": None if self.cost_usd is None else str(self.cost_usd)}


def info_of(record: RunRecord, facts: Facts, surroundings: Surroundings) -> RunInfo:
    """Puts together what was read.

    Raises:
        BrokenRecord: The checkpoint, the limits or the metadata cannot be read.
    """
    head, usage, budget = _checkpoint(record)
    until = record.status_at if record.ended else surroundings.now
    elapsed = Elapsed(usage.active_ms, max(until - record.created_at, 0))
    ending = facts.last_event if record.ended else None
    return RunInfo(
        id=record.id,
        status=record.status,
        wait=record.wait,
        reason=reason_of(record, facts, surroundings),
        agent=record.agent,
        session=record.session,
        tenant=record.tenant,
        queue=record.queue,
        metadata=_metadata(record),
        step=head.step,
        usage=usage,
        budget=budget,
        budget_left=left(budget, usage, head.step, elapsed),
        worker=record.worker,
        created_at=moment(record.created_at),
        started_at=moment_or_none(facts.claimed_at),
        ended_at=moment(record.status_at) if record.ended else None,
        due_at=_due(record, facts),
        crashes=record.crashes_total,
        requests=tuple(
            Request(name, ask.kind, moment_or_none(ask.deadline), ask.words)
            for name, ask in sorted(facts.asks.items(), key=_place)
            if not record.ended
        ),
        output=ending.output if isinstance(ending, RunCompleted) else None,
        error=error_in(ending),
        partial=ending.partial if isinstance(ending, RunFailed | RunBudgetExceeded) else None,
    )


def _place(asked: tuple[str, Ask]) -> tuple[list[int], str]:
    """The order of requests is that of the calls which they are about: `<step>.<index>`."""
    name = asked[0]
    return [int(part) for part in name.split(".") if part.isdecimal()], name


def _due(record: RunRecord, facts: Facts) -> datetime | None:
    """When a wait ends, or when a run that was put off may begin."""
    return moment_or_none(facts.due_at if record.status is Status.WAITING else record.not_before)


_OVERTAKEN: Final = {
    CancelReason.INTERRUPT.value: "a newer run of its session interrupted it",
    CancelReason.ROLLBACK.value: "a newer run of its session took its place, and its memory is rolled back",
}


def reason_of(record: RunRecord, facts: Facts, surroundings: Surroundings) -> str:
    """Why the run stands where it stands; '' where nothing is to be said."""
    match record.status:
        case Status.QUEUED:
            return _why_queued(record, surroundings)
        case Status.WAITING:
            return _why_waiting(record, facts)
        case Status.RUNNING:
            return "was asked to end" if record.cancel else ""
        case Status.CANCELLED if record.cancel in _OVERTAKEN:
            return _OVERTAKEN[record.cancel]
        case _:
            return "" if record.reason == record.status else record.reason


def error_in(ending: Event | None) -> str:
    """Why a run came to no result, as its last event says; '' where it did, or has not ended."""
    match ending:
        case RunFailed(reason=reason, error=error):
            return f"{reason}: {error}"
        case RunBudgetExceeded(limit=limit, used=used, allowed=allowed):
            return f"{limit}: used {used} of {allowed}"
        case RunCancelled(reason=reason):
            return f"cancelled ({reason})"
        case _:
            return ""


def _why_queued(record: RunRecord, surroundings: Surroundings) -> str:
    if record.behind:
        return f"behind run {surroundings.active} of its session" if surroundings.active else "behind in its session"
    start = record.not_before
    if start is not None and start > surroundings.now and not record.deferrals:
        return f"starts at {moment(start):%Y-%m-%d %H:%M:%S} UTC"
    if surroundings.suspended:
        return "workers are suspended: `rq resume` lets them take runs again"
    if surroundings.served is not None and record.agent not in surroundings.served:
        return f"no worker has the agent {record.agent!r}: start one with `pawl worker <module of the agent>`"
    if record.deferrals and record.reason:
        return record.reason
    if record.reason:
        return f"waits for a free worker ({record.reason})"
    return f"waits for a free worker of queue {record.queue!r}"


def _why_waiting(record: RunRecord, facts: Facts) -> str:
    until = f" until {moment(facts.due_at):%Y-%m-%d %H:%M:%S} UTC" if facts.due_at is not None else ""
    if len(facts.asks) > 1 and record.wait in REQUEST_WAITS:
        kinds = {ask.kind for ask in facts.asks.values()}
        commands = [words.format(run=record.id) for kind, words in _ANSWERS.items() if kind in kinds]
        return f"waits for {len(facts.asks)} answers{until}: {', '.join(commands)}"
    match record.wait:
        case Wait.REPLY:
            return f"waits for a reply{until}: `pawl reply {record.id} TEXT`"
        case Wait.APPROVAL:
            return f"waits for an approval{until}: `pawl approve {record.id}` or `pawl reject {record.id}`"
        case Wait.RATE_LIMIT:
            return f"the model's server asked to wait{until}"
        case _:
            return f"waits for {record.wait}{until}"


def _checkpoint(record: RunRecord) -> tuple[Checkpoint, Usage, Budget]:
    try:
        head = Checkpoint.of(record.state)
        budget = Budget.model_validate_json(record.limits) if record.limits else head.budget
        _, _, reserved = record.open.partition(b" ")
        lost = Reservation.of(reserved) if reserved and record.status is not Status.RUNNING else None
    except ValidationError as error:
        raise BrokenRecord(f"the record of run {record.id} cannot be read: {error.error_count()} errors") from error
    usage = head.usage.plus(lost.as_usage(), active_ms=0) if lost else head.usage
    return head, usage, budget


def _metadata(record: RunRecord) -> dict[str, object]:
    try:
        found: object = json.loads(record.metadata or b"{}")
    except ValueError as error:
        raise BrokenRecord(f"the metadata of run {record.id} cannot be read") from error
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def moment(milliseconds: int) -> datetime:
    """A stored time."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def moment_or_none(milliseconds: int | None) -> datetime | None:
    """A stored time, where there is one."""
    return None if milliseconds is None else moment(milliseconds)
