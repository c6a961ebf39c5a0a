"""What an OpenAI-compatible server answered. PURE.

Such servers agree on the outline and differ in the details, so that nothing is taken for granted here: what is absent
or has another shape is left out, and what a server says beyond the outline does not matter.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast

from agent.models.base import ModelReply, RawToolCall
from agent.models.untrusted import amount, count, items, mapping, text
from agent.prices import nano

_log: Final = logging.getLogger(__name__)

# Some servers refuse a turn that called tools unless they get their own thoughts back with it, unchanged.
_RETURNED_FIELDS: Final = ("reasoning_content", "reasoning_details", "thinking_blocks")
_KNOWN_CALL_FIELDS: Final = frozenset({"id", "type", "index", "function"})


def read_reply(body: Mapping[str, object], *, origin: str) -> ModelReply | None:
    """The reply, or None if the body holds none.

    Args:
        body: The parsed body of the response.
        origin: Under this name goes into `provider_fields` what the same server wants back.
    """
    choice = next((mapping(choice) for choice in items(body.get("choices")) if choice), None)
    if choice is None:
        return None
    message = mapping(choice.get("message"))
    answer = _Content(message.get("content"))
    calls = _calls(message)
    usage = mapping(body.get("usage"))
    finish_reason = choice.get("finish_reason")
    return ModelReply(
        content=answer.text,
        tool_calls=[_raw_call(call) for call in calls],
        finish_reason=None if finish_reason is None else str(finish_reason),
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        reasoning=text(message.get("reasoning_content")) or text(message.get("reasoning")) or answer.thoughts,
        refusal=text(message.get("refusal")) or answer.refusal,
        model=text(body.get("model")) or "",
        cost=_cost(usage),
        provider_fields=_provider_fields(message, calls, origin),
    )


class _Content:
    """The content of a message, which is a text or a list of parts."""

    def __init__(self, content: object) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        refusals: list[str] = []
        for part in [content] if isinstance(content, str) else items(content):
            if isinstance(part, str):
                texts.append(part)
                continue
            fields = mapping(part)
            match text(fields.get("type")):
                case "text" | "output_text":
                    texts.append(text(fields.get("text")) or "")
                case "thinking" | "reasoning" as kind:
                    thoughts.append(_inner_text(fields.get(kind, fields.get("text"))))
                case "refusal":
                    refusals.append(text(fields.get("refusal")) or "")
                case unknown:
                    _log.debug("left out a part of a model's reply, of the unknown type %r", unknown)
        self.text = "".join(texts) or None
        self.thoughts = "".join(thoughts) or None
        self.refusal = "".join(refusals) or None


def _inner_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "".join(text(mapping(part).get("text")) or "" for part in items(value))


def _calls(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The calls of a message; `function_call` is how servers once spelled a single one."""
    calls = [mapping(call) for call in items(message.get("tool_calls"))]
    single = message.get("function_call")
    return calls or ([{"function": single}] if isinstance(single, dict) else [])


def _raw_call(call: Mapping[str, object]) -> RawToolCall:
    function = mapping(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        arguments = cast("Mapping[str, object]", arguments)
    elif arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    call_id = call.get("id")
    return RawToolCall(text(function.get("name")), arguments, None if call_id is None else str(call_id))


def _provider_fields(
    message: Mapping[str, object], calls: Sequence[Mapping[str, object]], origin: str
) -> dict[str, object] | None:
    if not calls:
        return None
    returned: dict[str, object] = {name: message[name] for name in _RETURNED_FIELDS if message.get(name)}
    additions = [{name: call[name] for name in call if name not in _KNOWN_CALL_FIELDS} for call in calls]
    if any(additions):
        returned["tool_calls"] = additions
    return {origin: returned} if returned else None


def _cost(usage: Mapping[str, object]) -> int | None:
    """Nano-dollars: some routers report in US dollars what the call cost."""
    cost = amount(usage.get("cost"))
    return None if cost is None else nano(cost)
