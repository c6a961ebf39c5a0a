"""The memory of an agent as a thing of its own: what it keeps, and what of it the model sees at each turn."""

from dataclasses import dataclass, field

from pydantic import BaseModel

from agent import messages as core
from agent.context_window import ContextManager
from agent.conversation import ContextState, Conversation, tokens_of
from agent.documents.messages import AnyMessage, Message, engine_messages, message_of


class Memory(BaseModel):
    """The conversation of one run: append and read. Subclass it to keep it elsewhere, or to show the model less of it.

    Whatever `get` leaves out, the model reads a valid history: no call without an answer, no answer without its call.
    """

    messages: list[AnyMessage] = []

    def add(self, message: Message | core.Message) -> None:
        """Appends a message."""
        self.messages.append(message_of(message) if isinstance(message, core.Message) else message)

    def get(self) -> list[Message]:
        """What the model sees."""
        return self.messages


class MemoryFeed:
    """Tells a memory what happens in one run: each message once, as soon as it is complete.

    Args:
        task: The memory has the run's task already.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._told = 1  # the task is there before the run begins
        self._conversation: Conversation | None = None

    def follow(self, conversation: Conversation) -> None:
        """Takes the conversation that is to be told, and tells what is new."""
        self._conversation = conversation
        self.catch_up()

    def catch_up(self) -> None:
        """Tells what is new since the last time."""
        messages = self._conversation.messages if self._conversation else []
        for message in messages[self._told :]:
            self.memory.add(message)
        self._told = max(self._told, len(messages))


@dataclass(frozen=True, slots=True)
class MemoryWindow(ContextManager):
    """A context window that shows what a memory shows."""

    feed: MemoryFeed = field(kw_only=True)

    def build(self, conversation: Conversation, context: ContextState, overhead: int) -> list[core.Message]:
        """The messages of a request beside the instruction, with which a memory begins."""
        self.feed.follow(conversation)
        messages = engine_messages(self.feed.memory.get())
        return messages[1:] if messages and messages[0].role is core.Role.SYSTEM else messages

    def tokens(self, conversation: Conversation, context: ContextState, overhead: int) -> int:
        """The estimated size of a request."""
        return overhead + sum(tokens_of(message) for message in self.build(conversation, context, overhead))

    def due(self, conversation: Conversation, context: ContextState, overhead: int) -> int | None:
        """Nothing is compacted: what is left out is the memory's business."""
        return None
