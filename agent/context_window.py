"""The context window: what of a conversation a model reads, and when older messages are summarised. Pure.

Exchanges (a reply with calls and their answers) are never parted. Each message is summarised once. The first task of the
session, the task at work and what was to be remembered are always among what is sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final, Literal

from agent.conversation import ContextState, Conversation, tokens_of
from agent.dialects.base import Asking
from agent.errors import AgentDefinitionError
from agent.messages import Message, Role
from agent.models.base import ModelRequest
from agent.rendering import cut
from agent.text import bounded
from agent.tokens import MESSAGE_TOKENS, estimate

LINE_CHARACTERS: Final = 300
SUMMARY_CHARACTERS: Final = 4000
LEAST_BYTES: Final = 80
"""What is left of a text at least that has to be cut."""

KEPT_SHARE: Final = 0.6
"""After a compaction the window takes this share of what may be sent, so that the next one is not due at once."""

SUMMARISE: Final = (
    "You keep the memory of a conversation. Write one summary of it, in at most 250 words: what was asked, what was found "
    "and decided, names, numbers and what is still open. Keep what the summary so far says, unless it is settled."
)
SUMMARY_TOKENS: Final = 1024
"""Output tokens that a summary may have; a quarter of a window that is smaller."""

LEAST_TOKENS: Final = 500
MOST_RUNS: Final = 32
KEPT_RUNS: Final = 16
"""Of earlier runs in the window, however short. A session keeps 50: so none leaves it before it is summarised."""

Strategy = Literal["window", "summary", "llm_summary"]


@dataclass(frozen=True, slots=True)
class Compaction:
    """The messages from the window's begin up to `index` leave it; `summary` is what is known of them then."""

    index: int
    summary: str


@dataclass(frozen=True, slots=True)
class ContextManager:
    """How much of a conversation a model reads.

    Attributes:
        max_tokens: No request is larger than this, as far as its size can be estimated.
        recent_messages: The most messages that stay word for word after a compaction.
        strategy: What becomes of the others: `window` forgets them, `summary` keeps the beginning of each, `llm_summary`
            asks the model for a summary, which counts against the budget.
        result_preview: Characters of a tool's result that the model reads at once; it is offered a tool to read on.
    """

    max_tokens: int = 100_000
    recent_messages: int = 40
    strategy: Strategy = "summary"
    result_preview: int = 16_000

    def __post_init__(self) -> None:
        if self.result_preview < 100:
            raise AgentDefinitionError(f"result_preview={self.result_preview}: it must be at least 100 characters")
        if self.max_tokens < LEAST_TOKENS or self.recent_messages < 2:
            raise AgentDefinitionError(
                f"a context window needs max_tokens of at least {LEAST_TOKENS} and recent_messages of at least 2"
            )

    def measured_in_estimates(self, correction: float) -> "ContextManager":
        """The same window, where a token of its own is so many of those that the estimates count.

        Args:
            correction: What reported sizes are of estimated ones.
        """
        if correction == 1.0:
            return self
        return _resized(self, max(int(self.max_tokens / correction), LEAST_TOKENS))

    def build(self, conversation: Conversation, context: ContextState, overhead: int) -> list[Message]:
        """The messages of a request, beside the instruction: what is known of older ones, and the window.

        Args:
            overhead: Estimated tokens of the instruction and the tools.
        """
        front = self._front(conversation, context)
        room = self.max_tokens - overhead - front.tokens
        tail = conversation.messages[conversation.window :]
        if conversation.window_tokens > room:
            tail = _cut_to(tail, conversation.sizes[conversation.window :], room)
        return [*front.messages, *tail]

    def tokens(self, conversation: Conversation, context: ContextState, overhead: int) -> int:
        """The estimated size of a request."""
        front = self._front(conversation, context).tokens
        return overhead + min(front + conversation.window_tokens, max(self.max_tokens - overhead, 1))

    def due(self, conversation: Conversation, context: ContextState, overhead: int) -> int | None:
        """Where the window shall begin, if it has to move; None where nothing needs, or nothing more can, leave it."""
        front = self._front(conversation, context).tokens
        runs = conversation.runs_in_window
        if overhead + front + conversation.window_tokens <= self.max_tokens and len(runs) <= MOST_RUNS:
            return None
        begin = self._begin(conversation, int(self.max_tokens * KEPT_SHARE) - overhead - front)
        if len(runs) > MOST_RUNS:
            begin = max(begin, runs[-KEPT_RUNS])
        return begin if conversation.window < begin < len(conversation.messages) else None

    def halved(self, conversation: Conversation) -> int | None:
        """Where the window shall begin so that about half of it stays, for a model that cannot read as much as was thought;
        None where nothing more can leave it."""
        begin = self._begin(conversation, conversation.window_tokens // 2)
        return begin if conversation.window < begin < len(conversation.messages) else None

    def _begin(self, conversation: Conversation, room: int) -> int:
        """Where a window of so many tokens begins. The newest exchange is in it, whatever its size."""
        end = index = begin = len(conversation.messages)
        kept = 0
        while index > conversation.window:
            index -= 1
            kept += conversation.sizes[index]
            if begin < end and (kept > room or end - index > self.recent_messages):
                break
            if conversation.messages[index].role is not Role.TOOL:
                begin = index
        return begin

    def compact(self, conversation: Conversation, context: ContextState, index: int) -> Compaction:
        """The compaction that needs no model."""
        if self.strategy == "window":
            return Compaction(index, context.summary)
        leaving = conversation.messages[conversation.window : index]
        return Compaction(index, summarised(context.summary, leaving, self.summary_characters))

    @property
    def summary_characters(self) -> int:
        """The longest summary: 4,000 characters, or about a quarter of a smaller window."""
        return min(SUMMARY_CHARACTERS, self.max_tokens)

    @property
    def summary_tokens(self) -> int:
        """Output tokens that a summary by the model may have."""
        return min(SUMMARY_TOKENS, self.max_tokens // 4)

    def _front(self, conversation: Conversation, context: ContextState) -> "_Front":
        """What stands before the window: what is known, and the task at work where the window no longer holds it."""
        task = conversation.messages[conversation.own].content or "" if conversation.own_messages else ""
        is_behind_the_first = conversation.window > 0 or context.run
        if not (is_behind_the_first or context.summary or context.memory or context.open_questions):
            return _NO_FRONT
        return _front(
            first_task=context.first_task if is_behind_the_first and context.first_task != task else "",
            summary=context.summary,
            memory=context.memory,
            open_questions=context.open_questions,
            task=task if conversation.window > conversation.own else "",
            limit=self.max_tokens,
        )


@lru_cache(maxsize=1_000)  # asked for when a request is planned, and when it is made
def _resized(window: ContextManager, max_tokens: int) -> ContextManager:
    return replace(window, max_tokens=max_tokens)


@dataclass(frozen=True, slots=True)
class _Front:
    """Messages, and their estimated tokens."""

    messages: Sequence[Message]
    tokens: int


_NO_FRONT: Final = _Front((), 0)


@lru_cache(maxsize=1_000)  # it stays the same from step to step, until the window moves
def _front(
    *, first_task: str, summary: str, memory: tuple[str, ...], open_questions: tuple[str, ...], task: str, limit: int
) -> _Front:
    """Each part has a share of what may be sent."""
    parts: list[str] = []
    if first_task:
        parts.append(f"The conversation began with this task:\n{_fitted(first_task, limit // 8)}")
    if summary:
        parts.append(f"What came before, in short:\n{_fitted(summary, limit // 3)}")
    if memory:
        parts.append(f"To be remembered:\n{_newest(memory, limit // 8)}")
    if open_questions:
        parts.append(f"Questions that are still open:\n{_newest(open_questions, limit // 16)}")
    front = [Message(role=Role.SYSTEM, content="\n\n".join(parts))] if parts else []
    if task:
        front.append(Message(role=Role.USER, content=_fitted(task, limit // 4)))
    return _Front(front, sum(tokens_of(message) for message in front))


def _newest(texts: Sequence[str], limit: int) -> str:
    """The newest of the texts that fit into so many tokens, a line each; the last one is cut where it alone is too long."""
    lines: list[str] = []
    for text in reversed(texts):
        line = f"- {text}"
        if lines and estimate(line) > limit:
            break
        lines.append(_fitted(line, limit))
        limit -= estimate(lines[-1]) + 1
    return "\n".join(reversed(lines))


def summarised(summary: str, messages: Sequence[Message], limit: int = SUMMARY_CHARACTERS) -> str:
    """The summary with one line more for each message: its beginning. Of what is too long the newest lines are kept."""
    kept: list[str] = []
    room = limit
    for line in chain(_newest_lines(messages), reversed(summary.split("\n") if summary else ())):
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(reversed(kept))


def _newest_lines(messages: Sequence[Message]) -> Iterator[str]:
    """A line for each message that says something, the newest first; made as they are asked for, for few are of many."""
    for message in reversed(messages):
        line = _line(message)
        if line:
            yield f"{message.role.value}: {line}"


def transcript(messages: Sequence[Message], tokens: int) -> str:
    """Messages as text, for a model that shall summarise them; each cut, so that all together fit."""
    share = tokens // max(len(messages), 1) - MESSAGE_TOKENS
    return "\n".join(f"{message.role.value}: {_fitted(_words(message), share)}" for message in messages)


def summary_request(
    conversation: Conversation, context: ContextState, index: int, asking: Asking, room: int
) -> ModelRequest:
    """The question for a summary of the messages that leave the window.

    Args:
        room: Estimated tokens that the request may have.
    """
    leaving = conversation.messages[conversation.window : index]
    known = _fitted(context.summary, room // 3)
    before = f"Summary so far:\n{known}\n\n" if known else ""
    text = f"{before}Messages to add:\n{transcript(leaving, room - estimate(SUMMARISE) - estimate(before))}"
    messages = [Message(role=Role.SYSTEM, content=SUMMARISE), Message(role=Role.USER, content=text)]
    return ModelRequest(
        messages=messages,
        max_tokens=asking.max_tokens,
        timeout=asking.timeout,
        run_id=asking.run_id,
        step=asking.step,
        attempt=asking.attempt,
        purpose="summary",
    )


def _line(message: Message) -> str:
    return bounded(" ".join(_words(message).split()), LINE_CHARACTERS)


def _words(message: Message) -> str:
    calls = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    return " ".join(part for part in (message.content, f"[calls {calls}]" if calls else "") if part)


def _fitted(text: str, tokens: int) -> str:
    """The text, or its start with a note, in about so many tokens at most."""
    have = estimate(text)
    if have <= tokens:
        return text
    size = max(len(text.encode()) * max(tokens, 1) // have, LEAST_BYTES)
    while (
        estimate(shorter := cut(text, size)) > tokens and size > LEAST_BYTES
    ):  # its start may weigh more than the rest
        size = max(size * 9 // 10, LEAST_BYTES)
    return shorter


def _cut_to(messages: Sequence[Message], sizes: Sequence[int], room: int) -> list[Message]:
    """The messages with long contents cut, so that the newest stay whole and all fit; none is left out."""
    floor = 40
    left = max(room, floor)
    kept: list[Message] = []
    for number, (message, size) in enumerate(zip(reversed(messages), reversed(sizes), strict=True)):
        share = max(left - floor * (len(messages) - number - 1), floor)
        if size > share and message.content:
            shorter = _fitted(message.content, estimate(message.content) - size + share)
            kept.append(replace(message, content=shorter))
        else:
            kept.append(message)
        left -= min(size, share)
    return kept[::-1]
