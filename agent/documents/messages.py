"""Messages in the shape of a chat API: what a memory holds, and what it is for the engine. Pure."""

from collections.abc import Sequence
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
    """The messages as the engine sends them: valid, whatever a memory has left out.

    A call without its answer gets one, which says that its outcome is unknown; an answer without its call is left out.

    Raises:
        ValueError: A role is none of those that there are.
    """
    history: list[core.Message] = []
    unanswered: dict[str, core.ToolCall] = {}
    for message in messages:
        role = Role(message.role)
        if role is Role.TOOL:
            call = unanswered.pop(message.tool_call_id or "", None)
            if call is not None:
                history.append(_answer(call, message.content or ""))
            continue
        history += [_answer(call, INTERRUPTED) for call in unanswered.values()]
        raw = [
            RawToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in message.tool_calls or ()
        ]
        calls = read_calls(raw, step=len(history), finish_reason=None)
        unanswered = {call.id: call for call in calls}
        history.append(core.Message(role=role, content=message.content, tool_calls=calls))
    return history + [_answer(call, INTERRUPTED) for call in unanswered.values()]


def _answer(call: core.ToolCall, content: str) -> core.Message:
    return core.Message(role=Role.TOOL, content=content, tool_call_id=call.id, name=call.name)
