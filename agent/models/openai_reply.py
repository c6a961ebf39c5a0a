"""What an OpenAI-compatible server answered. PURE.

Such servers agree on the outline and differ in the details, so that nothing is taken for granted here: what is absent
or has another shape is left out, and what a server says beyond the outline does not matter.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast

from agent.dialects.templates import without_reasoning
from agent.models.base import ModelReply, RawToolCall
from agent.models.untrusted import amount, count, items, mapping, text
from agent.prices import nano

_log: Final = logging.getLogger(__name__)

# Some servers refuse a turn that called tools unless they get their own thoughts back with it, unchanged.
_RETURNED_FIELDS: Final = ("reasoning_content", "reasoning_details", "thinking_blocks")
_KNOWN_CALL_FIELDS: Final = frozenset({"id", "type", "index", "function", "name", "arguments", "input"})


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
    delivered = text(message.get("reasoning_content")) or text(message.get("reasoning")) or answer.thoughts
    said, thoughts = without_reasoning(answer.text, known=bool(delivered))
    calls = _calls(message) or answer.calls
    usage = mapping(body.get("usage"))
    finish_reason = choice.get("finish_reason")
    return ModelReply(
        content=said or None,
        tool_calls=[_raw_call(call) for call in calls],
        finish_reason=None if finish_reason is None else str(finish_reason),
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        reasoning=delivered or thoughts,
        refusal=text(message.get("refusal")) or answer.refusal or None,
        model=text(body.get("model")) or "",
        cost=_cost(usage),
        provider_fields=_provider_fields(message, calls, origin),
    )


class _Content:
    """The content of a message, which is a text, a part, or a list of both."""

    def __init__(self, content: object) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        refusals: list[str] = []
        self.calls: list[Mapping[str, object]] = []
        for part in items(content) or [content]:
            if isinstance(part, str):
                texts.append(part)
                continue
            fields = mapping(part)
            match text(fields.get("type")):
                case "text" | "output_text" | None:
                    texts.append(_inner_text(fields.get("text")))
                case "thinking" | "reasoning" as kind:
                    thoughts.append(_inner_text(fields.get(kind, fields.get("text"))))
                case "refusal":
                    refusals.append(text(fields.get("refusal")) or "")
                case "tool_use":
                    self.calls.append(fields)
                case unknown:
                    _log.debug("left out a part of a model's reply, of the unknown type %r", unknown)
        self.text = "".join(texts)
        self.thoughts = "".join(thoughts)
        self.refusal = "".join(refusals)


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
    """The call, with its name and arguments in an object of their own or, as in a part of the content, beside its id."""
    function = mapping(call.get("function")) or call
    arguments = function.get("arguments", call.get("input"))
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
    """Nano-dollars: some routers report in US dollars what the call cost. What they charge for a call with a key of one's own for
    the provider behind them does not hold what that provider charges, and is less."""
    cost, behind = amount(usage.get("cost")), amount(mapping(usage.get("cost_details")).get("upstream_inference_cost"))
    if cost is not None and behind is not None and (cost >= behind or usage.get("is_byok") is False):
        behind = None
    known = [nano(part) for part in (cost, behind) if part is not None]
    return sum(known) if known else None
