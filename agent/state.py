"""The state of a run, and the fold that makes it from events. Pure: the only way in which a state changes.

A checkpoint is the small head of a state at one sequence number. The state is the checkpoint, the history of messages and
the exchange that is under way (a reply with the calls that it asks for). Restoring is: take the checkpoint, read the events
for the history, and let those behind the checkpoint move the head as well. It gives what folding all events gives.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from agent.aside import preview
from agent.budget import NO_USAGE, Budget, Usage
from agent.conversation import NO_CONTEXT, ContextState, Conversation, EarlierRun, first_task_of
from agent.errors import BrokenRecord
from agent.events import (
    BudgetChanged,
    ContextCompacted,
    Event,
    FailureReason,
    ModelFailed,
    ModelReplied,
    Recorded,
    Remembered,
    ReplyRejected,
    RequestAnswered,
    RequestOpened,
    RunBudgetExceeded,
    RunCancelled,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunResumed,
    ToolReturned,
)
from agent.messages import INTERRUPTED, Message, Role, ToolCall

SCHEMA_VERSION = 1
"""The newest checkpoint that this code reads. A worker that meets a newer one leaves the run to newer workers."""


NOT_EXECUTED = frozenset({"invalid", "invalid_output", "cut_off", "over_budget", "rejected"})
"""Outcomes of tool calls that were answered without being executed."""

MISTAKES = frozenset({"invalid", "invalid_output", "cut_off"})
"""Those of them that are the model's own fault."""

Ending = Literal["completed", "failed", "cancelled", "budget_exceeded"]
"""The statuses in which a run has ended."""

OPEN_QUESTIONS: Final = 20
"""The most open questions that a session keeps."""

LEAST_CORRECTION: Final = 0.5

_NO_BUDGET: Final = Budget()
_ONE_TOOL_CALL: Final = Usage(tool_calls=1)
_REASONS: dict[str, FailureReason] = {"cut_off": "cut_off", "invalid_output": "invalid_output"}


class Mark(StrEnum):
    """How far a tool call has come. STARTED says: by this activation; DOUBTFUL: by an earlier one that did not end it; ASKED: a
    person has to answer first."""

    PLANNED = "planned"
    STARTED = "started"
    ASKED = "asked"
    DOUBTFUL = "doubtful"


@dataclass(slots=True)
class Checkpoint:
    """The small head of a run's state: no texts, no arguments.

    Attributes:
        seq: The last event that it contains.
        step: Model replies so far.
        attempts: Failed attempts to get the next reply, in a row.
        unusable: Replies in a row of which nothing could be used.
        unusable_reason: Why, of the last of them.
        reported_tokens, estimated_tokens: Input tokens of the last request, as reported and as estimated.
        ended: The status of a run that has ended, else ''.
    """

    schema_version: int = SCHEMA_VERSION
    seq: int = 0
    step: int = 0
    attempts: int = 0
    unusable: int = 0
    unusable_reason: FailureReason | None = None
    reported_tokens: int = 0
    estimated_tokens: int = 0
    usage: Usage = NO_USAGE
    budget: Budget = _NO_BUDGET
    ended: Ending | Literal[""] = ""

    def to_bytes(self) -> bytes:
        """JSON, defaults left out."""
        return _CHECKPOINT.serializer.to_json(self, exclude_defaults=True)

    @classmethod
    def of(cls, data: bytes) -> "Checkpoint":
        """The checkpoint that was written, upgraded where an older version wrote it.

        Raises:
            BrokenRecord: It cannot be read, or a newer version wrote it.
        """
        try:
            checkpoint = _CHECKPOINT.validate_json(data or b"{}")
        except ValidationError as error:
            raise BrokenRecord(f"the checkpoint cannot be read: {error.error_count()} errors") from error
        if checkpoint.schema_version > SCHEMA_VERSION:
            raise BrokenRecord(
                f"the checkpoint has schema version {checkpoint.schema_version}, known is {SCHEMA_VERSION}"
            )
        return checkpoint


_CHECKPOINT: Final = TypeAdapter(Checkpoint)


@dataclass(slots=True)
class OpenCall:
    """A tool call of the exchange under way.

    Attributes:
        key: `<step>.<index>`.
        attempt: 2 where it is executed again.
        request: What a person was asked about it last.
        approved: A person has allowed it.
    """

    key: str
    call: ToolCall
    mark: Mark = Mark.PLANNED
    attempt: int = 1
    request: RequestOpened | None = None
    approved: bool = False
    answer: ToolReturned | None = None


@dataclass(slots=True)
class Exchange:
    """A reply with tool calls, and the answers so far. It enters the history as a whole, answers in the order of the calls."""

    reply: Message
    calls: dict[str, OpenCall]

    @property
    def unanswered(self) -> Iterator[OpenCall]:
        """The calls without an answer, in order."""
        return (call for call in self.calls.values() if call.answer is None)

    def messages(self) -> list[Message]:
        """The exchange as messages: every call answered once, in order."""
        return [self.reply, *(_answer_of(open_call) for open_call in self.calls.values())]

    def change_arguments(self, changed: OpenCall, arguments: str) -> None:
        """A person has changed the arguments of a call; the model reads them as its own."""
        changed.call = replace(changed.call, arguments=arguments)
        calls = tuple(open_call.call for open_call in self.calls.values())
        self.reply = replace(self.reply, tool_calls=calls)


def _answer_of(open_call: OpenCall) -> Message:
    answer = open_call.answer
    return Message(
        role=Role.TOOL,
        tool_call_id=open_call.call.id,
        name=open_call.call.name,
        content=_shown(answer) if answer else _unanswered(open_call),
        refuses=answer is not None and answer.outcome in MISTAKES,
    )


def _unanswered(open_call: OpenCall) -> str:
    """What stands for an answer where a run ended without one."""
    request = open_call.request
    if open_call.mark is not Mark.ASKED or request is None or request.doubt:
        return INTERRUPTED
    return "Nobody answered." if request.kind == "clarification" else "Not executed: nobody decided about it."


def _shown(answer: ToolReturned) -> str:
    return preview(answer.content, answer.call, answer.shown) if answer.shown else answer.content


@dataclass(slots=True)
class RunState:
    """All that the step machine looks at.

    Attributes:
        head: The checkpoint.
        conversation: Complete messages, behind those of the session's earlier runs; no call in it is unanswered.
        context: What is known beside the messages that are sent word for word.
        exchange: The reply whose calls are not all answered yet.
        aside: Results that the model has read the beginning of only, by the key of their call.
        has_budget: False as long as nobody has said what the run may use.
        created_at: Milliseconds since 1970, by the store's clock.
    """

    head: Checkpoint = field(default_factory=Checkpoint)
    conversation: Conversation = field(default_factory=Conversation)
    context: ContextState = NO_CONTEXT
    exchange: Exchange | None = None
    aside: dict[str, str] = field(default_factory=dict[str, str])
    has_budget: bool = True
    created: RunCreated | None = None
    created_at: int = 0

    @classmethod
    def restore(
        cls,
        checkpoint: Checkpoint,
        events: Iterable[Recorded],
        *,
        earlier: Sequence[EarlierRun] = (),
        context: ContextState = NO_CONTEXT,
    ) -> "RunState":
        """The state at the last of the events, which must begin with the run's first.

        Args:
            earlier: The session's earlier runs, from the position of the context on.
            context: What the session knows.

        Raises:
            BrokenRecord: The events do not follow one another, or do not fit together.
        """
        remembered = [text for run in earlier for text in run.remembered]
        context = context.remembering(remembered).beginning_with(first_task_of(earlier))
        state = cls(head=replace(checkpoint), context=context)
        state.conversation.begin_behind(earlier, context)
        expected = 1
        for recorded in events:
            if recorded.seq != expected:
                raise BrokenRecord(f"event {expected} is missing: the next one is {recorded.seq}")
            state.apply(recorded)
            expected += 1
        if state.head.seq >= expected:
            raise BrokenRecord(f"the checkpoint is at event {state.head.seq}, but only {expected - 1} are there")
        return state

    def apply(self, recorded: Recorded) -> None:
        """Folds one event in. Events at or below the checkpoint's seq only add to the history."""
        closed = self._remember(recorded)
        head = self.head
        if recorded.seq > head.seq:
            self._advance(recorded.event)
            if closed:
                self._judge(closed)
            if recorded.event.active_ms > head.usage.active_ms:
                head.usage = head.usage.plus(NO_USAGE, active_ms=recorded.event.active_ms)
            head.seq = recorded.seq

    @property
    def correction(self) -> float:
        """What the sizes that a server reported are of those that were estimated; a server may leave out what it cached."""
        head = self.head
        known = head.reported_tokens and head.estimated_tokens
        return max(head.reported_tokens / head.estimated_tokens, LEAST_CORRECTION) if known else 1.0

    @property
    def history(self) -> list[Message]:
        """The run's own messages that are complete."""
        return self.conversation.messages[self.conversation.own :]

    def messages(self) -> list[Message]:
        """The history, with the exchange under way closed: calls without an answer have an unknown outcome."""
        return self.history + (self.exchange.messages() if self.exchange else [])

    def context_left_behind(self, run: str) -> ContextState:
        """What the session knows if the run ends here.

        Questions that nobody has answered stay open in it. A run that is completed has settled those of earlier runs.

        Args:
            run: The id of this run, which the position names from then on.
        """
        left_behind, asked = self.context.at_the_end_of(run), self._questions()
        known = () if self.head.ended == "completed" else left_behind.open_questions
        still_open = tuple(dict.fromkeys((*known, *asked)))[-OPEN_QUESTIONS:] if asked else known
        if still_open == left_behind.open_questions:
            return left_behind
        return replace(left_behind, open_questions=still_open)

    def _questions(self) -> list[str]:
        """What the run asks now."""
        return [
            call.request.question
            for call in (self.exchange.calls.values() if self.exchange else ())
            if call.mark is Mark.ASKED and call.request and call.request.kind == "clarification" and not call.answer
        ]

    @property
    def last_text(self) -> str | None:
        """The last text that the model wrote: what there is of an answer when a run ends early."""
        if self.exchange and self.exchange.reply.content:
            return self.exchange.reply.content
        latest = reversed(
            self.conversation.messages[max(self.conversation.own, len(self.conversation.messages) - 64) :]
        )
        return next((message.content for message in latest if message.role is Role.ASSISTANT and message.content), None)

    def _remember(self, recorded: Recorded) -> Exchange | None:
        """Adds the event to the history; returns the exchange that it closes, if it closes one."""
        event = recorded.event
        match event:
            case ModelReplied():
                if self.exchange is not None:
                    raise BrokenRecord(
                        f"the reply of step {event.step} came before the calls of the last one were answered"
                    )
                reply = Message(
                    role=Role.ASSISTANT,
                    content=event.content,
                    tool_calls=event.calls,
                    reasoning=event.reasoning,
                    provider_fields=event.provider_fields,
                )
                if event.calls:
                    self.conversation.call_ids.update(call.id for call in event.calls)
                    keys = ((f"{event.step}.{index}", call) for index, call in enumerate(event.calls))
                    self.exchange = Exchange(reply, {key: OpenCall(key, call) for key, call in keys})
                elif event.content:
                    self.conversation.append(reply)
            case ToolReturned():
                self._open_call(event.call).answer = event
                if event.shown:
                    self.aside[event.call] = event.content
                if self.exchange is not None and not any(self.exchange.unanswered):
                    closed, self.exchange = self.exchange, None
                    for message in closed.messages():
                        self.conversation.append(message)
                    return closed
            case RequestOpened():
                asked = self._open_call(event.request)
                asked.mark, asked.request = Mark.ASKED, event
            case RequestAnswered():
                self._answer(event)
            case ReplyRejected():
                self.conversation.append(Message(role=Role.USER, content=event.message, refuses=True))
            case BudgetChanged():
                self.has_budget = True
            case Remembered():
                self.context = self.context.remembering([event.text])
            case ContextCompacted():
                self.conversation.move_window(self.conversation.index_of(event.run, event.offset))
                self.context = replace(self.context, summary=event.summary, run=event.run, offset=event.offset)
            case RunCreated():
                self.context = self.context.beginning_with(event.task)
                self.has_budget = event.budget is not None
                self.created, self.created_at = event, recorded.at
                self.conversation.append(Message(role=Role.USER, content=event.task))
            case _:
                pass
        return None

    def _open_call(self, key: str) -> OpenCall:
        found = self.exchange.calls.get(key) if self.exchange else None
        if found is None or found.answer is not None:
            raise BrokenRecord(f"something about the call {key}, which is not open")
        return found

    def _answer(self, event: RequestAnswered) -> None:
        """An approval lets the call go on, with changed arguments where there are some; all else comes as its answer."""
        open_call = self._open_call(event.request)
        approved = event.answer == "approve"
        if event.answer == "expired" and open_call.request is not None:
            approved = open_call.request.default == "approve" and open_call.request.kind == "approval"
        if approved:
            open_call.mark, open_call.approved = Mark.PLANNED, True
            if open_call.request is not None and open_call.request.doubt:
                open_call.attempt = 2
            if event.arguments is not None and self.exchange is not None:
                self.exchange.change_arguments(open_call, event.arguments)

    def _judge(self, closed: Exchange) -> None:
        """Counts replies in a row of which no call could be executed; that a person said no is no fault of the model."""
        outcomes = [open_call.answer.outcome for open_call in closed.calls.values() if open_call.answer]
        faults = [outcome for outcome in outcomes if outcome != "rejected"]
        if not NOT_EXECUTED.issuperset(outcomes):
            self.head.unusable, self.head.unusable_reason = 0, None
        elif faults:
            self.head.unusable += 1
            self.head.unusable_reason = _REASONS.get(faults[-1], "unusable_reply")

    def _advance(self, event: Event) -> None:
        head = self.head
        match event:
            case ModelReplied():
                if event.request_tokens and not event.usage.estimated_tokens:
                    head.reported_tokens, head.estimated_tokens = event.usage.input_tokens, event.request_tokens
                head.step, head.attempts = event.step, 0
                head.usage = head.usage.plus(event.usage, active_ms=event.active_ms)
            case ModelFailed():
                head.attempts += event.reason != "call_lost"
                head.usage = head.usage.plus(event.usage, active_ms=event.active_ms)
            case ContextCompacted():
                head.attempts = 0
                if event.usage.model_calls:
                    head.usage = head.usage.plus(event.usage, active_ms=event.active_ms)
            case ReplyRejected():
                head.unusable, head.unusable_reason = head.unusable + 1, event.reason
            case ToolReturned():
                if event.outcome not in NOT_EXECUTED:
                    head.usage = head.usage.plus(_ONE_TOOL_CALL, active_ms=event.active_ms)
            case RunCreated():
                head.budget = event.budget or _NO_BUDGET
            case BudgetChanged():
                head.budget = event.budget
                if head.ended == "budget_exceeded":  # the limits were raised just before the end was final
                    head.ended = ""
            case RunResumed():
                head.ended, head.attempts, head.unusable = "", 0, 0
                head.budget = event.budget or head.budget
            case RunCompleted():
                head.ended = "completed"
            case RunFailed():
                head.ended = "failed"
            case RunCancelled():
                head.ended = "cancelled"
            case RunBudgetExceeded():
                head.ended = "budget_exceeded"
            case _:
                pass
