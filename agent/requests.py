"""Requests: what a run asks of a person, and what the answer means. Pure.

A request is always about one tool call: the call of a question (`ask_user`) is answered by the reply; a call that needs an
approval is executed, or answered with the reason of the rejection; so is a call of which nobody knows whether it took effect.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import ConfigDict, Field

from agent.errors import InvalidArguments
from agent.events import AnswerKind, Event, Outcome, Remembered, RequestAnswered, RequestOpened, ToolReturned
from agent.messages import INTERRUPTED
from agent.state import Exchange, Mark, OpenCall
from agent.text import bounded, well_formed
from agent.tools import Approval, Tool

QUESTION_LIMIT: Final = 4000
"""Characters of a question that are kept."""

SHOWN_ARGUMENTS: Final = 2000
REMEMBERED_LIMIT: Final = 500
"""Characters of one thing that is remembered."""


class Question(Tool):
    """A tool whose calls are answered by a person. `timeout` is the seconds until `default_reply` holds."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    default_reply: str = Field(default="Nobody answered in time. Go on without an answer.")


class Note(Tool):
    """A tool whose calls are remembered for the session, and answered at once."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said to a request. `arguments` replace those of the call that is approved."""

    request: str
    kind: AnswerKind
    text: str = ""
    arguments: Mapping[str, object] | None = None


def question_tool(
    name: str = "ask_user",
    description: str = "Ask the user a question, when something is missing that only they can say. Waits for the answer.",
    *,
    timeout: float | None = None,
    default_reply: str | None = None,
) -> Question:
    """A tool by which the model asks the user.

    Args:
        timeout: Seconds until `default_reply` is taken for the answer; None: the run waits for ever, and holds nothing.
    """
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {"question": {"type": "string", "description": "The question, complete in itself."}},
        "required": ["question"],
        "additionalProperties": False,
    }
    made = Question(name=name, description=description, parameters=parameters, function=_nobody, timeout=timeout)
    return made if default_reply is None else made.model_copy(update={"default_reply": default_reply})


def remember_tool(
    name: str = "remember",
    description: str = "Remember a fact or a wish of the user for later tasks of this conversation. One short sentence.",
) -> Note:
    """A tool by which the model keeps something in the memory of the session, however long that gets."""
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1, "maxLength": REMEMBERED_LIMIT}},
        "required": ["text"],
        "additionalProperties": False,
    }
    return Note(name=name, description=description, parameters=parameters, function=_nobody, idempotent=True)


def noted(open_call: OpenCall, tool: Note, *, active_ms: int) -> list[Event]:
    """What a call of the memory means: it is noted, and answered."""
    try:
        text = str(tool.validate_arguments(open_call.call.arguments)["text"])
    except InvalidArguments as problem:
        return [_returned(open_call, "invalid", str(problem), active_ms)]
    return [Remembered(text=text, active_ms=active_ms), _returned(open_call, "ok", "Noted.", active_ms)]


def _returned(open_call: OpenCall, outcome: Outcome, content: str, active_ms: int) -> ToolReturned:
    return ToolReturned(
        call=open_call.key, name=open_call.call.name, outcome=outcome, content=content, active_ms=active_ms
    )


def _nobody(**arguments: object) -> str:
    raise RuntimeError("this tool is answered by the engine, never executed")


def needs_person(open_call: OpenCall, tool: Tool) -> bool:
    """Whether a person must answer before the call can go on."""
    if open_call.approved:
        return False
    if isinstance(tool, Question):
        return True
    approval = tool.approval
    condition = approval.condition if isinstance(approval, Approval) else approval
    if not callable(condition):
        return condition is not False
    try:
        return bool(condition(tool.validate_arguments(open_call.call.arguments)))
    except InvalidArguments:
        return True
    except Exception:  # a condition that fails must not let a call through
        return True


def opening(open_call: OpenCall, tool: Tool, *, active_ms: int) -> Event:
    """The request of a call that needs a person; or its answer, where the arguments cannot be used anyway."""
    try:
        arguments = tool.validate_arguments(open_call.call.arguments)
    except InvalidArguments as problem:
        return _returned(open_call, "invalid", str(problem), active_ms)
    if isinstance(tool, Question):
        return RequestOpened(
            request=open_call.key,
            kind="clarification",
            tool=tool.name,
            question=bounded(str(arguments.get("question", "")), QUESTION_LIMIT),
            deadline_ms=_ms(tool.timeout),
            default=tool.default_reply if tool.timeout else None,
            active_ms=active_ms,
        )
    approval = tool.approval if isinstance(tool.approval, Approval) else Approval()
    return RequestOpened(
        request=open_call.key,
        kind="approval",
        tool=tool.name,
        question=f"May {tool.name} be called with {bounded(open_call.call.arguments, SHOWN_ARGUMENTS)}?",
        deadline_ms=_ms(approval.timeout),
        default=approval.default if approval.timeout else None,
        active_ms=active_ms,
    )


def doubt(open_call: OpenCall, *, active_ms: int) -> Event:
    """The request of a call that was cut off, of a tool with on_unknown='ask'."""
    shown = bounded(open_call.call.arguments, SHOWN_ARGUMENTS)
    return RequestOpened(
        request=open_call.key,
        kind="approval",
        tool=open_call.call.name,
        question=f"{open_call.call.name} was cut off, and may or may not have taken effect. Execute it again with {shown}?",
        doubt=True,
        active_ms=active_ms,
    )


def answer_events(exchange: Exchange | None, answer: Answer, *, active_ms: int) -> list[Event]:
    """What an answer means. One that comes too late, or to nothing, means nothing."""
    open_call = exchange.calls.get(answer.request) if exchange else None
    if (
        open_call is None
        or open_call.answer is not None
        or open_call.mark is not Mark.ASKED
        or open_call.request is None
    ):
        return []
    request = open_call.request
    answer = replace(answer, text=well_formed(answer.text))
    arguments = None if answer.arguments is None else _json_of(answer.arguments)
    answered = RequestAnswered(
        request=answer.request, answer=answer.kind, text=answer.text, arguments=arguments, active_ms=active_ms
    )
    outcome, content = _content_of(request, answer)
    if outcome is None:
        return [answered]
    return [answered, _returned(open_call, outcome, content, active_ms)]


def waits_for(exchange: Exchange) -> Literal["reply", "approval"] | None:
    """What the exchange waits for, where nothing of it can go on without a person."""
    unanswered = list(exchange.unanswered)
    asked = [open_call.request for open_call in unanswered if open_call.mark is Mark.ASKED and open_call.request]
    if any(open_call.mark is Mark.STARTED for open_call in unanswered) or not asked:
        return None
    return "reply" if any(request.kind == "clarification" for request in asked) else "approval"


def _content_of(request: RequestOpened, answer: Answer) -> tuple[Literal["ok", "rejected", "unknown"] | None, str]:
    """The answer of the call; None where the call itself goes on."""
    refused: Literal["unknown", "rejected"] = "unknown" if request.doubt else "rejected"
    prefix = f"{INTERRUPTED} It was not executed again" if request.doubt else "A person did not allow this call"
    match answer.kind:
        case "reply":
            return "ok", answer.text
        case "approve":
            return None, ""
        case "reject":
            return refused, f"{prefix}: {answer.text}" if answer.text else f"{prefix}."
        case "expired":
            if request.kind == "clarification":
                return "ok", request.default or ""
            return (None, "") if request.default == "approve" else (refused, f"{prefix}: nobody decided in time.")


def _json_of(arguments: Mapping[str, object]) -> str:
    return well_formed(json.dumps(arguments, ensure_ascii=False, allow_nan=False))


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
