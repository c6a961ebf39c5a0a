"""How a dialect speaks with a model: what a request looks like, and what a reply means. Pure.

A dialect turns the neutral history into a request, and a reply into one of: calls to execute, a final text, or a reply
that cannot be used (with the reminder that the model gets). Everything else of the loop is the same in all dialects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.dialects.templates import without_end_of_turn, without_reasoning
from agent.events import FailureReason
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelReply, ModelRequest
from agent.text import well_formed
from agent.values import value

if TYPE_CHECKING:
    from agent.program import Program


@value
class Calls:
    """The model asks for tools. `text` is what it said beside them."""

    calls: tuple[ToolCall, ...]
    text: str | None = None


@value
class Final:
    """The model gave its answer as plain text. `text` is all that it wrote, with the `answer` in it."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Declined:
    """The model declined the task."""

    text: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """Nothing can be done with the reply. `reminder` is what the model is told; `text` what it had written."""

    reason: FailureReason
    reminder: str
    text: str | None = None


Reading = Calls | Final | Declined | Unusable


@value
class Asking:
    """Where a request stands: what both a dialect and a scripted model may want to know.

    Attributes:
        last: Only the exit is offered: the budget allows no other call.
        reminded: The reply before could not be used, and the model was told so.
        note: A word on what is left of the budget, or None.
        timeout: Seconds for the attempt.
    """

    run_id: str
    step: int
    attempt: int
    max_tokens: int
    timeout: float
    last: bool = False
    reminded: bool = False
    note: str | None = None


class Dialect(Protocol):
    """One way to speak with a model."""

    @property
    def name(self) -> str:
        """The word for it in `Agent(dialect=...)`."""
        ...

    def request(self, program: "Program", messages: Sequence[Message], asking: Asking) -> ModelRequest:
        """The request for the next reply."""
        ...

    def read(self, reply: ModelReply, program: "Program", asking: Asking) -> Reading:
        """What a reply means."""
        ...

    def overhead(self, program: "Program") -> int:
        """Estimated tokens of what every request carries beside the messages: instruction and tools."""
        ...


def text_of(reply: ModelReply) -> str:
    """What a reply says. Every dialect takes it from here, so that no thought is ever executed or shown as an answer."""
    said, _ = without_reasoning(well_formed(reply.content or ""), known=reply.reasoning is not None)
    return without_end_of_turn(said)


def joined(instruction: Message, messages: Sequence[Message]) -> list[Message]:
    """The instruction and the messages; what is known of older ones becomes part of the one system message."""
    if messages and messages[0].role is Role.SYSTEM:
        content = f"{instruction.content}\n\n{messages[0].content}"
        return [Message(role=Role.SYSTEM, content=content), *messages[1:]]
    return [instruction, *messages]


def with_note(messages: list[Message], asking: Asking, last_words: str) -> list[Message]:
    """The messages, with a word on the budget behind them where there is one to say."""
    words = [word for word in (asking.note, last_words if asking.last else None) if word]
    return [*messages, Message(role=Role.USER, content="\n".join(words))] if words else messages
