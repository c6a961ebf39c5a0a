"""A history for servers that insist on its shape. PURE.

OpenAI takes turns in any order. Chat templates and gateways of others want one system message in front, then user and
assistant by turns, from a user to a user or to the results of tools, none of them empty, and ids of calls of nine letters and
digits. What was said stays, in its order; results of tools stay one message each, behind their calls.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from agent.messages import Message, Role

EMPTY: Final = "(empty)"
"""Stands for a text of nothing, where a turn cannot be left out."""

GO_ON: Final = "Go on."
"""The user's turn, where one has to be and nobody said anything."""

READ: Final = "OK."
"""The assistant's turn between the results of tools and a word of the user."""

_ID_LENGTH: Final = 9


def in_strict_turns(messages: Sequence[Message]) -> list[Message]:
    """The same history, as such servers take it."""
    turns: list[Message] = []
    for message in messages:
        if message.role is not Role.SYSTEM:
            _add(turns, message)
    if not turns or turns[0].role is not Role.USER:
        turns.insert(0, Message(role=Role.USER, content=GO_ON))
    if turns[-1].role is Role.ASSISTANT:
        turns.append(Message(role=Role.USER, content=GO_ON))
    texts = [message.content for message in messages if message.role is Role.SYSTEM and message.content]
    return [Message(role=Role.SYSTEM, content="\n\n".join(texts)), *turns] if texts else turns


def _add(turns: list[Message], message: Message) -> None:
    """Adds a turn, or joins it to the one before where both are of one speaker."""
    said = bool(message.content and message.content.strip())
    if message.role is Role.ASSISTANT and not said and not message.tool_calls:
        return
    if not said and not message.tool_calls:
        message = replace(message, content=EMPTY)
    message = _with_plain_ids(message)
    before = turns[-1] if turns else None
    if before is not None and before.role is message.role and message.role is not Role.TOOL:
        texts = [text for text in (before.content, message.content) if text]
        turns[-1] = replace(message, content="\n\n".join(texts) or None)
        return
    if before is not None and before.role is Role.TOOL and message.role is Role.USER:
        turns.append(Message(role=Role.ASSISTANT, content=READ))
    turns.append(message)


def _with_plain_ids(message: Message) -> Message:
    if message.tool_call_id:
        return replace(message, tool_call_id=_plain(message.tool_call_id))
    if not message.tool_calls:
        return message
    calls = tuple(replace(call, id=_plain(call.id)) for call in message.tool_calls)
    return replace(message, tool_calls=calls)


def _plain(call_id: str) -> str:
    """An id that every server takes; the same for the same id."""
    return sha256(call_id.encode()).hexdigest()[:_ID_LENGTH]
