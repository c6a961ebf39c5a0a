"""The conversation of a run: its own messages behind those of the session's earlier runs, and what is known of older ones.

Every message keeps its estimated size, so that no step walks the whole. The window is what is still sent word for word; what
is before it lives on in the `ContextState`, as a summary that holds each message once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from pydantic import TypeAdapter

from agent.errors import BrokenRecord
from agent.messages import Message, Role
from agent.tokens import MESSAGE_TOKENS, estimate
from agent.values import value

MOST_REMEMBERED: Final = 200


@value
class ContextState:
    """What a session knows beside its messages. It passes from run to run.

    Attributes:
        first_task: The task that the conversation began with.
        summary: Of all messages before the position.
        memory: What the agent was told to remember, oldest first.
        open_questions: Questions that nobody has answered, of the runs that ended since one was completed.
        run, offset: The position: all messages before `run`, and the first `offset` of its own, are in the summary. ''
            is the run at work.
    """

    first_task: str = ""
    summary: str = ""
    memory: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    run: str = ""
    offset: int = 0

    def remembering(self, texts: Sequence[str]) -> "ContextState":
        """With more to remember, each thing once; of more than 200 the oldest are forgotten."""
        return replace(self, memory=tuple(dict.fromkeys((*self.memory, *texts)))[-MOST_REMEMBERED:])

    def beginning_with(self, task: str) -> "ContextState":
        """With the first task, if it is not known yet."""
        return self if self.first_task or not task else replace(self, first_task=task)

    def at_the_end_of(self, run: str) -> "ContextState":
        """As the session keeps it: the run at work gets its name."""
        return self if self.run or not self.offset else replace(self, run=run)

    def to_bytes(self) -> bytes:
        """JSON, defaults left out."""
        return _CONTEXT.dump_json(self, exclude_defaults=True)

    @classmethod
    def of(cls, data: bytes) -> "ContextState":
        """The state that was written; a new one where nothing was.

        Raises:
            pydantic.ValidationError: It cannot be read.
        """
        return _CONTEXT.validate_json(data or b"{}")


_CONTEXT: Final = TypeAdapter(ContextState)

NO_CONTEXT = ContextState()


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run of the session: its messages, and what was to be remembered in it."""

    run: str
    messages: Sequence[Message]
    remembered: Sequence[str] = ()


def first_task_of(earlier: Sequence[EarlierRun]) -> str:
    """What a conversation began with; a run that was ended before it began still had a task."""
    messages = (message for run in earlier for message in run.messages)
    return next((message.content for message in messages if message.role is Role.USER and message.content), "")


def tokens_of(message: Message) -> int:
    """The estimated tokens of one message."""
    count = MESSAGE_TOKENS
    if message.content:
        count += estimate(message.content)
    if message.reasoning:
        count += estimate(message.reasoning)
    for call in message.tool_calls:
        count += _of_name(call.name) + estimate(call.arguments) + MESSAGE_TOKENS
    return count


@lru_cache(maxsize=1_000)  # a model calls the same few tools again and again
def _of_name(name: str) -> int:
    return estimate(name)


@dataclass(slots=True)
class Conversation:
    """Messages in order, each with its size.

    Attributes:
        own: Where the messages of the run at work begin.
        window: Where the messages begin that are sent word for word.
        window_tokens: Their estimated tokens.
        call_ids: The ids of all calls so far.
    """

    messages: list[Message] = field(default_factory=list[Message])
    sizes: list[int] = field(default_factory=list[int])
    own: int = 0
    window: int = 0
    window_tokens: int = 0
    call_ids: set[str] = field(default_factory=set[str])
    _starts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def own_messages(self) -> int:
        """How many messages the run at work has."""
        return len(self.messages) - self.own

    @property
    def runs_in_window(self) -> Sequence[int]:
        """Where the earlier runs begin of which all is in the window."""
        return [start for start in self._starts.values() if start >= self.window]

    def append(self, message: Message) -> None:
        """Adds a message to the run at work."""
        size = tokens_of(message)
        self.messages.append(message)
        self.sizes.append(size)
        self.window_tokens += size

    def begin_behind(self, earlier: Sequence[EarlierRun], context: ContextState) -> None:
        """Puts the messages of earlier runs in front, up to the position of the context left out."""
        for number, run in enumerate(earlier):
            skipped = context.offset if run.run == context.run else 0
            self._starts[run.run] = len(self.messages) - skipped
            for message in run.messages[skipped:]:
                self.append(self._with_own_ids(message, number))
        self.own = len(self.messages)

    def index_of(self, run: str, offset: int) -> int:
        """Where a position is; one in a run that is not here any more is before everything.

        Raises:
            BrokenRecord: It is behind the end of the conversation.
        """
        start = self.own if not run else self._starts.get(run)
        if start is None:
            return 0
        if start + offset > len(self.messages):
            raise BrokenRecord(f"the position {run or 'of this run'}+{offset} is not in the conversation")
        return start + offset

    def position_of(self, index: int) -> tuple[str, int]:
        """The run and the offset of an index; the begin of the run at work is the end of the one before it."""
        if index > self.own or not self._starts:
            return "", index - self.own
        run, start = next((run, start) for run, start in reversed(self._starts.items()) if start <= index)
        return run, index - start

    def move_window(self, index: int) -> None:
        """The messages before this index are no longer sent word for word."""
        if index > self.window:
            self.window_tokens -= sum(self.sizes[self.window : index])
            self.window = index

    def _with_own_ids(self, message: Message, number: int) -> Message:
        """The message with call ids that no other run's calls have: some servers count from 0 in every reply."""
        if message.role is Role.TOOL and message.tool_call_id:
            return replace(message, tool_call_id=f"{message.tool_call_id}_{number}")
        if not message.tool_calls:
            return message
        calls = tuple(replace(call, id=f"{call.id}_{number}") for call in message.tool_calls)
        self.call_ids.update(call.id for call in calls)
        return replace(message, tool_calls=calls)
