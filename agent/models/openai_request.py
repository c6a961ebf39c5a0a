"""A request in the words of an OpenAI-compatible server. PURE."""

import json
import re
from collections.abc import Callable, Mapping, Set
from typing import Final

from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelRequest, ToolSpecification
from agent.models.untrusted import items, mapping
from agent.text import well_formed

SchemaForm = Callable[[Mapping[str, object]], Mapping[str, object]]
"""A JSON Schema, put into the words of one server."""

_UNNAMEABLE: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64
_SCHEMA_NAME: Final = "reply"


def request_bytes(
    request: ModelRequest,
    *,
    model: str,
    origin: str,
    output_limit_field: str,
    extra_body: Mapping[str, object],
    schema_form: SchemaForm = dict,
) -> bytes:
    """The body of the request.

    Args:
        request: What to ask.
        model: The model's name as the server knows it.
        origin: Whose `provider_fields` go back: only those of messages that came from there.
        output_limit_field: `max_tokens`, or `max_completion_tokens` where the server wants that.
        extra_body: Further fields of the body; they win over ours, and None leaves a field out.
        schema_form: Makes of each schema the one that the server takes.
    """
    offered = {tool.name for tool in request.tools}
    body: dict[str, object] = {
        "model": model,
        "messages": [_message(message, origin, offered) for message in request.messages],
        output_limit_field: request.max_tokens,
    }
    if request.tools:
        body["tools"] = [_tool(tool, schema_form) for tool in request.tools]
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.response_schema is not None:
        schema = {"name": _SCHEMA_NAME, "schema": schema_form(request.response_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.temperature is not None:
        body["temperature"] = request.temperature
    body |= extra_body
    present = {name: value for name, value in body.items() if value is not None}
    return well_formed(json.dumps(present, ensure_ascii=False)).encode()


def _message(message: Message, origin: str, offered: Set[str]) -> dict[str, object]:
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content or ""}
    if message.role is not Role.ASSISTANT:
        return {"role": message.role.value, "content": message.content or ""}
    returned = mapping((message.provider_fields or {}).get(origin))
    written: dict[str, object] = {"role": "assistant", "content": message.content or ""}
    written |= {name: value for name, value in returned.items() if name != "tool_calls"}
    if message.tool_calls:
        written["content"] = (
            message.content or None
        )  # some servers refuse an empty text beside calls, none refuses null
        additions = list(items(returned.get("tool_calls")))
        additions += [{}] * (len(message.tool_calls) - len(additions))
        written["tool_calls"] = [
            _tool_call(call, mapping(addition), offered)
            for call, addition in zip(message.tool_calls, additions, strict=False)
        ]
    return written


def _tool_call(call: ToolCall, addition: Mapping[str, object], offered: Set[str]) -> dict[str, object]:
    """What the model wrote as a name may be anything; servers take only what could be the name of a function, and the names that
    the same request offers."""
    name = call.name if call.name in offered else _UNNAMEABLE.sub("_", call.name)[:_LONGEST_NAME] or "unnamed"
    function = {"name": name, "arguments": call.arguments}
    return {**addition, "id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpecification, schema_form: SchemaForm) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": schema_form(tool.parameters)}
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> object:
    if choice in ("auto", "required", "none"):
        return choice
    return {"type": "function", "function": {"name": choice}}
