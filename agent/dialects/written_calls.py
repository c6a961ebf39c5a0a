"""Tool calls that a model wrote into its text, since its server did not read them. PURE.

Markup of a call around JSON, or nothing but JSON, is a call where it names a tool that the agent has. What else looks like
one cannot be read, and never becomes an answer. What stands in code is quoted: it is neither.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from agent.dialects import call_markup
from agent.dialects.call_markup import Mark
from agent.dialects.loose_json import OPENING, read_value
from agent.models.base import RawToolCall

_NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_EVERYDAY: Final = frozenset({"input"})
"""A word of many answers: without markup only an object under it is arguments."""

_BESIDE: Final = frozenset({"id", "type", "index", "call_id", "tool_call_id"})
_WRAPPERS: Final = frozenset({"tool_calls", "tool_call", "function_calls", "function_call"})
_CALLING: Final = frozenset({"tool_use", "function", "tool_call", "function_call"})
_BESIDE_WRAPPED: Final = frozenset({"role", "content"})
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_PYTHON: Final = re.compile(r"\[\s*(?P<name>[\w.-]{1,64})\(\s*(?:\w+\s*=.*)?\)\s*\]", re.DOTALL)
_FIRST_OBJECT: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_SPACE: Final = r"\s{0,32}"
_SCALAR: Final = r"""(?:["'][^"'\n]{0,64}["']|[\w.-]{1,20})"""
_FIELDS: Final = rf"""(?:{_SPACE}["']\w{{1,20}}["']{_SPACE}:{_SPACE}{_SCALAR}{_SPACE},){{0,4}}{_SPACE}"""
_BEGINNING: Final = re.compile(
    rf"""[\[\s]{{0,32}}\{{{_FIELDS}(?:["'](?:function|(?:tool|function)_calls?)["']{_SPACE}:[\[\s]{{0,32}}\{{{_FIELDS}){{0,2}}"""
    rf"""["'](?:{"|".join(_NAME_KEYS)})["']{_SPACE}:{_SPACE}["'](?P<name>[^"']{{1,64}})["']{_SPACE},"""
    rf"""{_FIELDS}["'](?:{"|".join(_ARGUMENT_KEYS)})["']{_SPACE}:"""
)
"""The beginning of a call, up to its arguments. It is never long, so that a text of nothing but beginnings is soon read."""

_BETWEEN: Final = re.compile(r"[\s;,]*")
_FENCE_END: Final = re.compile(r"\s*```")


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
    mark = _next_mark(text, 0, tools)
    if mark is None:
        return _without_markup(text, tools)
    before = text[: mark.start].strip() or None
    while mark is not None:
        found, end = _calls_at(text, mark.end, mark.tool, tools) if mark.is_sure else ([], mark.end)
        fence = _FENCE_END.match(text, end) if mark.is_fenced else None
        if not found:
            return WrittenCalls((), before)
        calls += found
        mark = _next_mark(text, fence.end() if fence else end, tools)
    return WrittenCalls(tuple(calls), before)


def call_of(value: object, tools: Collection[str], *, is_bare: bool = False) -> RawToolCall | None:
    """The call that an object is: the name of a tool, its arguments if there are any, and nothing else that matters.

    Args:
        is_bare: No markup says that it is a call. An answer may well name a tool: only the arguments or the type tell.
    """
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, object]", value)
    is_told = not is_bare or fields.get("type") in _CALLING
    function = fields.get("function")
    if isinstance(function, Mapping):
        fields = cast("Mapping[str, object]", function)
    named = [key for key in _NAME_KEYS if key in fields]
    given = [key for key in _ARGUMENT_KEYS if key in fields]
    name = fields[named[0]] if len(named) == 1 and len(given) <= 1 else None
    if not isinstance(name, str) or name not in tools or set(fields) - _BESIDE - {*named, *given}:
        return None
    arguments = fields[given[0]] if given else None
    if not is_told and not (isinstance(arguments, Mapping) or (given and given[0] not in _EVERYDAY)):
        return None
    if arguments is None or isinstance(arguments, str):
        return RawToolCall(name, arguments or {})
    if isinstance(arguments, Mapping):
        return RawToolCall(name, cast("Mapping[str, object]", arguments))
    return RawToolCall(name, json.dumps(arguments))  # which the reading of calls refuses, unless it is empty


def _next_mark(text: str, start: int, tools: Collection[str]) -> Mark | None:
    """The next markup outside of code that begins a call. What only speaks of markup calls no tool that there is."""
    return next((mark for mark in call_markup.marks(text, start, tools) if _calls_a_tool(text, mark, tools)), None)


def _calls_a_tool(text: str, mark: Mark, tools: Collection[str]) -> bool:
    return mark.is_call or _resembles_a_call(text, mark.end, tools)


def _calls_at(
    text: str, start: int, name: str | None, tools: Collection[str], *, is_bare: bool = False
) -> tuple[list[RawToolCall], int]:
    """The calls that stand one behind the other from a place on, and where they end; none where one cannot be read.

    Args:
        name: The tool, where the markup names it and only its arguments follow.
    """
    calls: list[RawToolCall] = []
    end = _skipping(text, start)
    while text[end : end + 1] in set(OPENING) and not call_markup.begins_at(text, end):
        try:
            value, end = read_value(text, end)
        except (ValueError, RecursionError):
            return [], end
        said = [{"name": name, "arguments": value}] if name else _items(value)
        for item in said:
            call = call_of(item, tools, is_bare=is_bare)
            if call is None or (name and calls):
                return [], end
            calls.append(call)
        end = _skipping(text, end)
    return calls, end


def _without_markup(text: str, tools: Collection[str]) -> WrittenCalls | None:
    """Calls that are the whole text. One that begins a line of it may be an example, and is not executed."""
    calls, end = _calls_at(text, 0, None, tools, is_bare=True)
    if calls and end == len(text):
        return WrittenCalls(tuple(calls))
    python = _PYTHON.fullmatch(text)
    if python is not None and python["name"] in tools:
        return WrittenCalls(())
    begin = _FIRST_OBJECT.search(_CODE.sub(lambda code: " " * len(code[0]), text))
    if begin is None or not _resembles_a_call(text, begin.end(), tools):
        return None
    return WrittenCalls((), text[: begin.end()].strip() or None)


def _resembles_a_call(text: str, start: int, tools: Collection[str]) -> bool:
    """Whether a call stands at a place, be it whole or broken off."""
    beginning = _BEGINNING.match(text, start)
    if beginning is None or beginning["name"] not in tools:
        return False
    try:
        value, _ = read_value(text, _skipping(text, start))
    except (ValueError, RecursionError):
        return True
    return any(call_of(item, tools, is_bare=True) for item in _items(value))


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
