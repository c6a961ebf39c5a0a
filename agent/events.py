"""The typed events of a run: the wire format of its record, of the live stream and of replay.

A run is what its events say: `agent.state` folds them, live and on replay alike. An event is written once, in JSON, with its
`type` first. New fields have defaults; a changed meaning is a new type. A reader that meets a type it does not know gets an
`UnknownEvent` and passes over it; whether a worker may go on with a run at all is decided by the checkpoint's schema version.
"""

from dataclasses import field
from functools import cache
from typing import ClassVar, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from agent.budget import NO_USAGE, Budget, Usage
from agent.errors import BrokenRecord
from agent.messages import ToolCall
from agent.values import keyword_value

FailureReason = Literal[
    "model_unavailable",  # every attempt to get a reply failed
    "model_refused_request",  # the server will not answer this request
    "refused",  # the model declined the task
    "empty_reply",  # replies without text and without calls
    "cut_off",  # replies that the output limit cut, again and again
    "unusable_reply",  # replies in which no call could be executed, again and again
    "invalid_output",  # results that do not fit the output schema, again and again
    "result_too_large",  # the result is beyond the size of an event
    "result_not_json",  # the result cannot be stored: it holds what JSON cannot carry
    "outcome_unknown",  # a tool with on_unknown="fail" was cut off
    "unknown_price",  # a money limit without a price
    "worker_lost",  # workers died at this run again and again
    "broken_record",  # its record cannot be read
    "call_lost",  # a model call was given up with its worker, or for a hand-over
    "agent_error",  # the agent's own code failed outside of a tool
]

Outcome = Literal[
    "ok",  # the tool returned
    "error",  # it raised; the model reads why
    "invalid",  # the arguments did not fit its schema, or there is no such tool: not executed
    "invalid_output",  # the result that the exit was called with does not fit the output schema
    "cut_off",  # the output limit cut its arguments: not executed
    "over_budget",  # not executed: no tool calls left
    "unknown",  # it had started and nobody knows how it ended
    "interrupted",  # the run ended while it ran
    "rejected",  # a person said no
]


RequestKind = Literal["clarification", "approval"]
AnswerKind = Literal["reply", "approve", "reject", "expired"]


@keyword_value
class Event:
    """One fact about a run.

    Attributes:
        active_ms: Milliseconds in which workers had held the run when it happened; 0 where no worker was part of it.
    """

    type: ClassVar[str] = ""

    active_ms: int = 0


@keyword_value
class RunCreated(Event):
    """A run was accepted. Without a `budget` the agent's own holds, once a worker says what that is."""

    type = "run_created"
    agent: str
    task: str
    budget: Budget | None = None
    session: str = ""
    tenant: str = ""
    metadata: dict[str, object] = field(default_factory=dict[str, object])


@keyword_value
class RunClaimed(Event):
    """A worker took the run: a new activation."""

    type = "run_claimed"
    worker: str
    token: str = ""


@keyword_value
class ModelReplied(Event):
    """The model's reply of a step, with the calls that it asks for.

    Attributes:
        finish_reason: As the server wrote it.
        request_tokens: The estimated size of a request whose size was reported; set against that, it corrects later estimates.
        ms: Milliseconds that the attempt took.
    """

    type = "model_replied"
    step: int
    content: str | None = None
    calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    provider_fields: dict[str, object] | None = None
    model: str = ""
    usage: Usage = NO_USAGE
    request_tokens: int = 0
    ms: int = 0


@keyword_value
class ModelFailed(Event):
    """One attempt to get a reply failed.

    Attributes:
        usage: What it is charged: nothing, or all that was reserved where it may be billed.
        retry_ms: Milliseconds until the next attempt; None if there is none.
    """

    type = "model_failed"
    step: int
    error: str
    reason: FailureReason
    usage: Usage = NO_USAGE
    retry_ms: int | None = None
    ms: int = 0


@keyword_value
class ReplyRejected(Event):
    """A reply could not be used; the model is told why and asked again."""

    type = "reply_rejected"
    step: int
    reason: FailureReason
    message: str


@keyword_value
class ToolReturned(Event):
    """A tool call was answered.

    Attributes:
        call: The call's key, `<step>.<index>`.
        shown: Characters of the content that the model reads at once; 0: all.
        ms: Milliseconds that the execution took.
    """

    type = "tool_returned"
    call: str
    name: str
    outcome: Outcome
    content: str
    shown: int = 0
    ms: int = 0


@keyword_value
class Remembered(Event):
    """Something that the agent shall know in all later runs of the session."""

    type = "remembered"
    text: str


@keyword_value
class ContextCompacted(Event):
    """Older messages are no longer sent word for word: they are in the summary, each once.

    Attributes:
        run, offset: All messages before this run ('': the run itself), and the first `offset` of its own.
        usage: What the summary cost, where a model wrote it.
    """

    type = "context_compacted"
    run: str = ""
    offset: int = 0
    summary: str = ""
    usage: Usage = NO_USAGE
    model: str = ""
    ms: int = 0


@keyword_value
class RequestOpened(Event):
    """The run asks a person: a question of the model, or whether a tool may be called.

    Attributes:
        request: Its id: the key of the call that waits for it.
        tool: The tool that is called.
        deadline_ms: Milliseconds until `default` holds; None: it waits for ever.
        default: The reply, or `approve` or `reject`, if nobody answers in time.
        doubt: The call was cut off, and nobody knows whether it took effect: may it be executed again?
    """

    type = "request_opened"
    request: str
    kind: RequestKind
    tool: str
    question: str
    deadline_ms: int | None = None
    default: str | None = None
    doubt: bool = False


@keyword_value
class RequestAnswered(Event):
    """A request was answered, or nobody did in time (`expired`).

    Attributes:
        text: The reply, or the reason of a rejection.
        arguments: JSON of the arguments, where they were changed with the approval.
    """

    type = "request_answered"
    request: str
    answer: AnswerKind
    text: str = ""
    arguments: str | None = None


@keyword_value
class BudgetChanged(Event):
    """The run's limits were raised or replaced."""

    type = "budget_changed"
    budget: Budget


@keyword_value
class RunReleased(Event):
    """A worker gave the run back. It is queued again, or waits."""

    type = "run_released"
    why: Literal["yield", "drain", "waiting", "failure"]


@keyword_value
class RunRequeued(Event):
    """The run's worker was lost; the run is queued again."""

    type = "run_requeued"
    why: str


@keyword_value
class RecordWentBack(Event):
    """Redis lost the last commits of this run (a failover or a restart); it goes on from what is left."""

    type = "record_went_back"
    lost: int


@keyword_value
class RunResumed(Event):
    """A person set a failed or budget_exceeded run going again."""

    type = "run_resumed"
    budget: Budget | None = None


@keyword_value
class RunCompleted(Event):
    """The end: the task is done. `output` is the result as JSON, of the shape of the agent's output schema."""

    type = "run_completed"
    output: object = None


@keyword_value
class RunFailed(Event):
    """The end: it cannot go on by itself. `error` is for people, `reason` for programs."""

    type = "run_failed"
    reason: FailureReason
    error: str
    partial: str | None = None


@keyword_value
class RunCancelled(Event):
    """The end: somebody cancelled it."""

    type = "run_cancelled"
    reason: str = "user"


@keyword_value
class RunBudgetExceeded(Event):
    """The end, until it is resumed with a larger budget."""

    type = "run_budget_exceeded"
    limit: str
    used: str
    allowed: str
    partial: str | None = None


@keyword_value
class UnknownEvent(Event):
    """An event of a type that this version does not know; `kind` and `data` are as they were read."""

    type = "unknown"
    kind: str
    data: dict[str, object] = field(default_factory=dict[str, object])


TYPES: dict[str, type[Event]] = {
    event.type: event
    for event in (
        RunCreated,
        RunClaimed,
        ModelReplied,
        ModelFailed,
        ReplyRejected,
        ToolReturned,
        Remembered,
        ContextCompacted,
        RequestOpened,
        RequestAnswered,
        BudgetChanged,
        RunReleased,
        RunRequeued,
        RecordWentBack,
        RunResumed,
        RunCompleted,
        RunFailed,
        RunCancelled,
        RunBudgetExceeded,
    )
}


class Recorded(NamedTuple):
    """An event in its place: `seq` counts 1, 2, 3, … within the run; `at` is milliseconds since 1970 by the store's clock."""

    seq: int
    at: int
    event: Event


@cache
def _adapter(kind: type[Event]) -> TypeAdapter[Event]:
    return TypeAdapter(kind)


def encode(event: Event) -> bytes:
    """The event as JSON. Defaults are left out, so that what is stored is what was said."""
    body = _adapter(type(event)).serializer.to_json(event, exclude_defaults=True)
    return b'{"type":"%b"%b%b' % (event.type.encode(), b"" if body == b"{}" else b",", body[1:])


def decode(body: bytes) -> Event:
    """The event that was encoded.

    Raises:
        BrokenRecord: The bytes are not an event.
    """
    try:
        data = from_json(body)
        kind = data.pop("type")
        found = TYPES.get(kind)
        return _adapter(found or UnknownEvent).validate_python(data if found else {"kind": kind, "data": data})
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise BrokenRecord(f"not an event: {body[:80]!r}") from error


def fields_of(event: Event) -> dict[str, object]:
    """What there is to say of an event beside its type, as JSON carries it. Defaults are left out."""
    return _adapter(type(event)).dump_python(event, mode="json", exclude_defaults=True)


def as_json(recorded: Recorded) -> bytes:
    """A recorded event as one JSON line for people and programs: seq, at, type and the event's fields."""
    event = recorded.event
    return to_json({"seq": recorded.seq, "at": recorded.at, "type": event.type, **fields_of(event)})
