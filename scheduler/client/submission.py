"""PURE. From what a caller submits to the run that is created: checked, completed and made safe to send twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Literal, cast

from agent.agent import Agent, require_price
from agent.budget import Budget
from agent.errors import AgentDefinitionError, ConfigurationError
from agent.events import RunCancelled, RunCreated, encode
from agent.text import well_formed
from scheduler.cards import AgentCard
from scheduler.inputs import NewRun
from scheduler.keys import name
from scheduler.sessions import OVERTAKES, OnBusy

Priority = Literal["high", "default", "low"]

LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""From here on a moment in another time zone, or rounded up, may be beyond what a datetime can say."""

PRIORITY_QUEUES: Final = ("high", "default", "low")
"""The queues of workers that serve all agents; an agent on another queue has workers of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A task as it was submitted.

    Attributes:
        delay: Seconds until it may begin; `at`: the moment. At most one of the two.
        budget: None: the agent's own.

    Raises:
        ConfigurationError: Something is not of the type that it must have, or is no name; says which.
    """

    task: str
    session: str = ""
    tenant: str = ""
    idempotency_key: str = ""
    priority: Priority = "default"
    delay: float | None = None
    at: datetime | None = None
    budget: Budget | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    on_busy: OnBusy = OnBusy.ENQUEUE

    def __post_init__(self) -> None:
        for field_name, kind, words in _TYPES:
            value = cast(object, getattr(self, field_name))
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ConfigurationError(f"The {_words(field_name)} must be {words}, not {type(value).__name__}.")
        for field_name in ("session", "tenant", "idempotency_key"):
            if value := cast(str, getattr(self, field_name)):
                name(_words(field_name), value)


_TYPES: Final = (
    ("task", str, "a text"),
    ("session", str, "a text"),
    ("tenant", str, "a text"),
    ("idempotency_key", str, "a text"),
    ("delay", (int, float, Decimal, NoneType), "a number of seconds"),
    ("at", (datetime, NoneType), "a datetime with a time zone"),
    ("budget", (Budget, NoneType), "a Budget"),
    ("metadata", Mapping, "a mapping"),
)
"""What a caller in Python, which does not look at types, gets wrong."""


def _words(field_name: str) -> str:
    return field_name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Target:
    """The agent that is to do it, as far as a submission has to know it. `budget` is None where nobody has said its own yet."""

    name: str
    queue: str = "default"
    budget: Budget | None = None

    @classmethod
    def of_card(cls, card: AgentCard, submission: Submission) -> Target:
        """The agent of a card.

        Raises:
            UnknownPriceError: A money limit that could never bite.
        """
        card.check(submission.budget or card.budget, None)
        return cls(card.name, card.queue, card.budget)

    @classmethod
    def of_agent(cls, agent: Agent[Any], submission: Submission) -> Target:
        """An agent in code; no worker needs to have published it yet.

        Raises:
            AgentDefinitionError: It has no name.
            UnknownPriceError: A money limit that could never bite.
        """
        if agent.name is None:
            raise AgentDefinitionError("an agent that is submitted needs a name: Agent(..., name='support')")
        budget = submission.budget or agent.budget
        if budget.max_cost_usd is not None:
            require_price(budget, agent.model)
        return cls(agent.name, agent.queue, agent.budget)

    def queue_for(self, priority: Priority) -> str:
        """The RQ queue. Where an agent has workers of its own, all its runs go to their queue."""
        return priority if self.queue in PRIORITY_QUEUES and priority != "default" else self.queue


def new_run(run_id: str, target: Target, submission: Submission) -> NewRun:
    """The run to create.

    Raises:
        ConfigurationError: Something cannot be stored, or contradicts itself; names it.
    """
    task = well_formed(submission.task)
    metadata = json_object(submission.metadata)
    budget = submission.budget or target.budget
    created = RunCreated(
        agent=target.name,
        task=task,
        budget=budget,
        session=submission.session,
        tenant=submission.tenant,
        metadata=metadata,
    )
    at_ms, delay_ms = _start(submission)
    return NewRun(
        id=run_id,
        digest=digest_of(target.name, task, submission, metadata),
        event=encode(created),
        agent=target.name,
        queue=target.queue_for(submission.priority),
        session=submission.session,
        tenant=submission.tenant,
        idempotency_key=submission.idempotency_key,
        limits=(budget or Budget()).model_dump_json().encode(),
        metadata=json.dumps(metadata, ensure_ascii=False).encode(),
        at_ms=at_ms,
        delay_ms=delay_ms,
        on_busy=submission.on_busy,
        overtaken_event=encode(RunCancelled(reason=submission.on_busy)) if submission.on_busy in OVERTAKES else b"",
    )


def digest_of(agent: str, task: str, submission: Submission, metadata: Mapping[str, object]) -> str:
    """Tells one submission from another under the same idempotency key.

    The budget counts as it was given, so that a default which changes between two attempts does not make a conflict.
    """
    budget = submission.budget
    given = None if budget is None else budget.model_dump(mode="json", exclude_unset=True)
    parts = [agent, task, submission.session, submission.tenant, given, metadata]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def json_object(given: Mapping[str, object], what: str = "metadata") -> dict[str, object]:
    """What was given, the metadata unless something else is named, as JSON carries it.

    Raises:
        ConfigurationError: A value is not JSON; names its key.
    """
    kept: dict[str, object] = {}
    for key, value in given.items():
        if not isinstance(cast(object, key), str):
            raise ConfigurationError(f"The keys of {what} must be texts, and {key!r} is none.")
        try:
            kept[well_formed(key)] = json.loads(well_formed(json.dumps(value, allow_nan=False, ensure_ascii=False)))
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"{what}[{key!r}] cannot be stored as JSON: {error}") from error
    return kept


def _start(submission: Submission) -> tuple[int | None, int | None]:
    """When it is due: as a moment or as a delay, in milliseconds; neither: at once."""
    delay, at = submission.delay, submission.at
    if delay is not None and at is not None:
        raise ConfigurationError("Give delay (seconds) or at (a moment), not both.")
    if at is not None:
        if at.utcoffset() is None:
            raise ConfigurationError(f"at={at} says no time zone: use datetime.now(UTC) + timedelta(...), or delay=.")
        if at >= LATEST:
            raise ConfigurationError(f"at={at} is no moment that can be waited for: it must be before {LATEST}.")
        return int(at.timestamp() * 1000), None
    if delay is not None and not 0 <= delay < 1e9:
        raise ConfigurationError(f"delay={delay} must be a number of seconds, 0 to 1e9 (31 years).")
    return None, int(delay * 1000) if delay else None
