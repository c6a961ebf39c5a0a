"""Tool calls that a model wrote into its text, since its server did not read them. PURE.

Markup of a call around JSON, or nothing but JSON, is a call where it names a tool that the agent has. What else looks like
one cannot be read, and never becomes an answer. What stands in code is quoted: it is neither.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from agent.dialects.loose_json import OPENING, read_value
from agent.models.base import RawToolCall

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_CODE_OR_TAG: Final = re.compile(
    _CODE.pattern + r"|(?P<tag><(?:tool_calls?|function_calls?)>|\[TOOL_CALLS\]|<｜tool▁calls?▁begin｜>"
    r"|<\|(?:python_tag|python_start|tool_calls?(?:_begin)?)\|>|<function=(?P<name>[^<>\s]{1,64})>)",
    re.DOTALL,
)
_FIRST_OBJECT: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_BROKEN_CALL: Final = re.compile(
    r"""(?:\{\s*["'](?:tool|function)_calls?["']\s*:)?"""
    r"""[\[\s]*\{\s*["'](?:name|tool|action)["']\s*:\s*["'](?P<name>[^"']{1,64})["']"""
)
_KEYS: Final = (("name", "arguments"), ("name", "parameters"), ("tool", "arguments"), ("action", "action_input"))
_BESIDE: Final = frozenset({"id", "type"})
_WRAPPERS: Final = frozenset({"tool_calls", "tool_call", "function_calls", "function_call"})
_BESIDE_WRAPPED: Final = frozenset({"role", "content"})
_BETWEEN: Final = re.compile(r"[\s;,]*")


@dataclass(frozen=True, slots=True)
class WrittenCalls:
    """What looks like tool calls in a text: no `calls` where they cannot be read. `before` is the text up to them."""

    calls: tuple[RawToolCall, ...]
    before: str | None = None


def written_calls(text: str, tools: Collection[str]) -> WrittenCalls | None:
    """The calls in a text, or None where nothing looks like one.

    Args:
        tools: The names of the tools that there are.
    """
    calls: list[RawToolCall] = []
    tag = _next_tag(text, 0)
    if tag is None:
        return _without_markup(text, tools)
    before = text[: tag.start()].strip() or None
    while tag is not None:
        found, end = _calls_at(text, tag.end(), tag["name"], tools)
        if not found:
            return WrittenCalls((), before)
        calls += found
        tag = _next_tag(text, end)
    return WrittenCalls(tuple(calls), before)


def call_of(value: object, tools: Collection[str]) -> RawToolCall | None:
    """The call that an object is: the name of a tool, its arguments, and nothing else that matters."""
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, object]", value)
    function = fields.get("function")
    if isinstance(function, Mapping):
        fields = cast("Mapping[str, object]", function)
    for name_key, arguments_key in _KEYS:
        name, arguments = fields.get(name_key), fields.get(arguments_key)
        if set(fields) - _BESIDE == {name_key, arguments_key} and isinstance(name, str) and name in tools:
            if isinstance(arguments, str):
                return RawToolCall(name, arguments)
            if isinstance(arguments, Mapping):
                return RawToolCall(name, cast("Mapping[str, object]", arguments))
    return None


def _next_tag(text: str, start: int) -> re.Match[str] | None:
    """The next tag outside of code. Within a line, one counts only where a call follows it."""
    for found in _CODE_OR_TAG.finditer(text, start):
        if found["tag"] is None:
            continue
        line_before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        follows = _skipping(text, found.end())
        if not line_before.strip() or text[follows : follows + 1] in {"", "<", *OPENING}:
            return found
    return None


def _calls_at(text: str, start: int, name: str | None, tools: Collection[str]) -> tuple[list[RawToolCall], int]:
    """The calls that stand one behind the other from a place on, and where they end; none where one cannot be read.

    Args:
        name: The tool, where the markup names it and only the arguments follow.
    """
    calls: list[RawToolCall] = []
    end = _skipping(text, start)
    while text[end : end + 1] in set(OPENING):
        try:
            value, end = read_value(text, end)
        except (ValueError, RecursionError):
            return [], end
        said = {"name": name, "arguments": value} if name else value
        for item in _items(said):
            call = call_of(item, tools)
            if call is None:
                return [], end
            calls.append(call)
        end = _skipping(text, end)
    return calls, end


def _without_markup(text: str, tools: Collection[str]) -> WrittenCalls | None:
    """Calls that are the whole text. One that begins a line of it may be an example, and is not executed."""
    calls, end = _calls_at(text, 0, None, tools)
    if calls and end == len(text):
        return WrittenCalls(tuple(calls))
    begin = _FIRST_OBJECT.search(_CODE.sub(lambda code: " " * len(code[0]), text))
    if begin is None or not _resembles_a_call(text, begin.end(), tools):
        return None
    return WrittenCalls((), text[: begin.end()].strip() or None)


def _resembles_a_call(text: str, start: int, tools: Collection[str]) -> bool:
    """Whether a call stands at a place, be it whole or broken off."""
    try:
        value, _ = read_value(text, start)
    except (ValueError, RecursionError):
        broken = _BROKEN_CALL.match(text, start)
        return broken is not None and broken["name"] in tools
    return any(call_of(item, tools) for item in _items(value))


def _items(value: object) -> Sequence[object]:
    """The calls that a value may be: itself, those of a list, or those of a whole message in a server's form."""
    inner = value
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        wrappers = set(fields) - _BESIDE_WRAPPED
        if len(wrappers) == 1 and wrappers <= _WRAPPERS:
            inner = fields[wrappers.pop()]
    return cast("list[object]", inner) if isinstance(inner, list) else [inner]


def _skipping(text: str, start: int) -> int:
    """Where something begins that is neither space nor a separator."""
    between = _BETWEEN.match(text, start)
    return between.end() if between else start
