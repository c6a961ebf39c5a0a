"""The context of a model call, put together from messages: `build`, and `compact` with a cursor. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent import context_window
from agent.conversation import ContextState, Conversation
from agent.documents.messages import Message, engine_messages, message_of
from agent.messages import Role
from agent.tokens import estimate


@dataclass(frozen=True, slots=True)
class ContextManager:
    """How much of a conversation a model reads.

    `state.offset` is the cursor: so many messages are in the summary already, so that none is summarised twice.

    Attributes:
        max_tokens: No context is larger, as far as its size can be estimated.
        recent_messages: So many of the latest messages stay word for word.
        strategy: What becomes of the others; see `agent.context_window.ContextManager`.
    """

    max_tokens: int = 100_000
    recent_messages: int = 40
    strategy: context_window.Strategy = "summary"

    @property
    def window(self) -> context_window.ContextManager:
        """What the engine goes by."""
        return context_window.ContextManager(self.max_tokens, self.recent_messages, self.strategy)

    def build(self, system_instruction: str, state: ContextState, messages: Sequence[Message]) -> list[Message]:
        """The system message, with what is known of older messages, and the latest messages, cut where they do not fit.

        Calls and their results stay together.
        """
        conversation = _conversation(messages)
        conversation.move_window(self._begin(conversation, state))
        selected = self.window.build(conversation, state, estimate(system_instruction))
        known = selected.pop(0).content if selected and selected[0].role is Role.SYSTEM else None
        system = "\n\n".join(part for part in (system_instruction, known) if part)
        return [Message(role=Role.SYSTEM, content=system), *(message_of(message) for message in selected)]

    def compact(self, state: ContextState, messages: Sequence[Message]) -> ContextState:
        """The state with a summary of the messages that are no longer recent; the same state where there are none.

        Args:
            messages: All of them, from the first on; the cursor says which are new.
        """
        conversation = _conversation(messages)
        conversation.move_window(min(state.offset, len(conversation.messages)))
        begin = self._begin(conversation, state)
        if begin <= conversation.window:
            return state
        compaction = self.window.compact(conversation, state, begin)
        return replace(state, summary=compaction.summary, offset=begin)

    def _begin(self, conversation: Conversation, state: ContextState) -> int:
        """Where the recent messages begin: not between a call and its results."""
        begin = max(len(conversation.messages) - self.recent_messages, state.offset, 0)
        while 0 < begin < len(conversation.messages) and conversation.messages[begin].role is Role.TOOL:
            begin -= 1
        return min(begin, len(conversation.messages))


def _conversation(messages: Sequence[Message]) -> Conversation:
    conversation = Conversation()
    for message in engine_messages(messages):
        conversation.append(message)
    conversation.own = len(conversation.messages)  # they are all of the past
    return conversation
