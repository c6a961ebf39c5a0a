"""Messages in the shape of a chat API: what a memory holds, and what it is for the engine. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from agent import messages as core
from agent.dialects.calls import read_calls
from agent.messages import INTERRUPTED, Role
from agent.models.base import RawToolCall


class FunctionCall(TypedDict):
    """Which function the model wants to call; `arguments` is JSON text."""

    arguments: str
    name: str


class CalledFunction(TypedDict):
    """A tool call as a chat API writes it."""

    function: FunctionCall
    id: str
    type: Literal["function"]


class Message(BaseModel):
    """One turn, as `model_dump(exclude_none=True)` gives it to a chat API.

    Attributes:
        role: One of the words of `Role`.
        tool_calls: The calls that an assistant asks for.
        tool_call_id, name: The call and the tool that a tool message answers for.
    """

    role: str
    content: str | None = None
    tool_calls: list[CalledFunction] | None = None
    tool_call_id: str | None = None
    name: str | None = None


def _of_any(message: object) -> object:
    return message_of(message) if isinstance(message, core.Message) else message


AnyMessage = Annotated[Message, BeforeValidator(_of_any)]
"""A message, also where the engine's own form is given."""


def message_of(message: core.Message) -> Message:
    """An engine's message in the shape of a chat API."""
    calls = [
        CalledFunction(function=FunctionCall(arguments=call.arguments, name=call.name), id=call.id, type="function")
        for call in message.tool_calls
    ]
    return Message(
        role=message.role.value,
        content=message.content,
        tool_calls=calls or None,
        tool_call_id=message.tool_call_id,
        name=message.name,
    )


def engine_messages(messages: Sequence[Message]) -> list[core.Message]:
    """The messages as the engine sends them: valid, whatever a memory has left out or put in another order.

    A call without its answer gets one, which says that its outcome is unknown; an answer without its call is left out.

    Raises:
        ValueError: A role is none of those that there are.
    """
    history: list[core.Message] = []
    calls: dict[str, core.ToolCall] = {}  # of the last message, by the ids that the memory knows
    answers: dict[str, str] = {}
    ids: set[str] = set()

    def close() -> None:
        history.extend(_answer(call, answers.get(known, INTERRUPTED)) for known, call in calls.items())
        calls.clear()
        answers.clear()

    for message in messages:
        role = Role(message.role)
        if role is Role.TOOL:
            answers.setdefault(message.tool_call_id or "", message.content or "")
            continue
        close()
        for call in _calls_of(message, step=len(history)):
            calls[call.id] = replace(call, id=f"{call.id}_{len(history)}") if call.id in ids else call
            ids.add(calls[call.id].id)
        history.append(core.Message(role=role, content=message.content, tool_calls=tuple(calls.values())))
    close()
    return history


def _calls_of(message: Message, *, step: int) -> Sequence[core.ToolCall]:
    called = message.tool_calls or ()
    raw = [RawToolCall(one["function"]["name"], one["function"]["arguments"], one["id"]) for one in called]
    return read_calls(raw, step=step, finish_reason=None)


def _answer(call: core.ToolCall, content: str) -> core.Message:
    return core.Message(role=Role.TOOL, content=content, tool_call_id=call.id, name=call.name)
