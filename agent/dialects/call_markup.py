"""The markup in which models write tool calls: where it stands, and which tool it names. PURE.

    <tool_call>…   [TOOL_CALLS]search[ARGS]…   <|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>…
    <function=search>…   <|channel|>commentary to=functions.search <|constrain|>json<|message|>…   ```tool_code …

A few kinds are surely calls, and are read where JSON follows them. Of all others no more is known than that tags and tokens
which speak of tools, functions or channels call a tool where its name and its arguments follow: ordinary XML does not.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from agent.dialects.loose_json import OPENING

_PREFIX: Final = r"(?:[\w-]{1,32}:|[|｜]\w{1,32}[|｜])?"
_ATTRIBUTES: Final = r"[\s=(][^<>\n]{1,128}"
_WORD: Final = (
    r"(?-i:(?<![A-Za-z])(?:tool|function|invoke)s?(?![a-z])|(?:Tool|Function|Invoke)s?(?![a-z])"
    r"|(?<![A-Za-z])(?:TOOL|FUNCTION|INVOKE)S?(?![A-Za-z]))(?!tip|bar|kit|box)"
)
"""A whole word, parted from others by signs or by case: `use_tool` and `toolUse`, but neither `tooltip` nor `ToolBar`."""

_TAG: Final = rf"<{_PREFIX}[\w-]{{0,32}}{_WORD}[\w-]{{0,32}}(?:{_ATTRIBUTES})?(?<!/)>"
_SPECIAL: Final = r"<[|｜][^<>\n]{1,64}[|｜]>"
_SURE: Final = "|".join((
    rf"<{_PREFIX}(?:tool|function)_?calls?>",
    rf"<{_PREFIX}(?:tool_call|function|invoke){_ATTRIBUTES}(?<!/)>",
    r"<[|｜]tool[_▁]calls?(?:[_▁]section)?(?:[_▁]begin)?[|｜]>",
    r"<\|(?:python_tag|python_start|start_action|action_start)\|>",
    r"\[TOOL_CALLS\]",
    r"✿FUNCTION✿:",
    r"(?:<\|start\|>assistant\s*)?(?:(?:<\|channel\|>)?commentary\s+to=|to=(?=functions\.))",
))  # fmt: skip
_LOOSE: Final = "|".join((
    _TAG,
    r"<[|｜](?![^<>\n]*end)[^<>|｜\n]{0,64}(?:tool|function|invoke|action|channel|plugin|python)[^<>\n]{0,64}>",
    r"^>>>(?=\w)",
))  # fmt: skip
_CODE_OR_MARK: Final = re.compile(
    rf"(?P<fence>```(?:tool|function)_\w+)(?P<fenced>.*?)(?:```|\Z)|```.*?(?:```|\Z)|`[^`\n]+`|(?P<sure>{_SURE})|(?P<loose>{_LOOSE})",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_BETWEEN: Final = re.compile(
    rf"(?:\s+|{_SPECIAL}|{_TAG}|\[ARGS\]|\[CALL_ID\]\w+|✿\w+✿:?|```(?:json)?|function(?=<)|json\b|commentary\b|to=|functions\."
    r"|print\(){0,12}",
    re.IGNORECASE,
)
"""What may stand between the beginning of a call, the name of its tool and its arguments."""

_NAME: Final = re.compile(r"(?P<name>[^\W\d][\w.-]{0,63})(?::\d+)?")
_ATTRIBUTE: Final = re.compile(r"""[=(]\s*["']?([\w.-]{1,64})""")
_CALLED: Final = re.compile(r"([\w.-]{1,64})\(")
_BEHIND_A_NAME: Final = re.compile(r"\s*[<({\[（｛［]|[ \t]*(?:\n|\Z)")
_ARGUMENTS: Final = re.compile(rf"\s*[{{｛]|[(（]|\s*<{_PREFIX}(?:parameter|param|arg)", re.IGNORECASE)
_NAMED_BY_SIGN: Final = re.compile(r"<[\w:|｜-]*[=(]")
_WITH_ATTRIBUTES: Final = re.compile(r"<[\w:|｜-]+\s")
_ARGUMENTS_FOLLOW: Final = re.compile(r"\s*(?:[<{\[｛［]|\Z)|[\w.:-]{2,}\s*[<({\[（｛［]")
_PROSE_FOLLOWS: Final = re.compile(r"[ \t]+\w")
_INDENT: Final = 200


@dataclass(frozen=True, slots=True)
class Mark:
    """Markup of a call.

    Attributes:
        start, end: Where it stands; at its end the arguments begin, or the whole call.
        tool: The tool that it names, if there is such a tool.
        is_sure: It is of a kind that is read.
        is_call: It begins a call, whatever follows.
        is_fenced: What follows ends with a code fence.
    """

    start: int
    end: int
    tool: str | None
    is_sure: bool
    is_call: bool
    is_fenced: bool


def marks(text: str, start: int, tools: Collection[str]) -> Iterator[Mark]:
    """The markup outside of code from a place on."""
    for found in _CODE_OR_MARK.finditer(text, start):
        if found.lastgroup is not None:
            yield _mark(text, found, tools)


def begins_at(text: str, position: int) -> bool:
    """Whether markup of a kind that is read begins at a place."""
    found = _CODE_OR_MARK.match(text, position)
    return found is not None and found["sure"] is not None


def _mark(text: str, found: re.Match[str], tools: Collection[str]) -> Mark:
    is_fence, is_sure = found["fence"] is not None, found["loose"] is None
    begin = found.end("fence") if is_fence else found.end()
    end = _end_of_between(text, begin)
    tool = next((name for name in _ATTRIBUTE.findall(text[found.start() : end]) if name in tools), None)
    is_call = tool is not None and (
        _NAMED_BY_SIGN.match(text, found.start()) is not None or _ARGUMENTS.match(text, end) is not None
    )
    if found["sure"] is not None and _WITH_ATTRIBUTES.match(text, found.start()) is None:
        is_call = is_call or _looks_like_a_call(text, found.start(), begin)
    name = _NAME.match(text, end)
    if name is not None and name["name"] in tools:
        behind = _end_of_between(text, name.end())
        is_whole = text[behind : behind + 1] in set(OPENING)
        if is_sure:
            is_call = is_call or is_whole or _BEHIND_A_NAME.match(text, name.end()) is not None
        else:
            has_brackets = found[0] != ">>>" and _ARGUMENTS.match(text, name.end()) is not None
            is_call = is_call or has_brackets or text[behind : behind + 1] == "{"
        tool, end = (name["name"], behind) if is_whole else (None, end)
    if is_fence:
        is_call = is_call or any(called in tools for called in _CALLED.findall(found["fenced"]))
    return Mark(found.start(), end, tool, is_sure, is_call, "```" in text[found.start() : end])


def _looks_like_a_call(text: str, start: int, end: int) -> bool:
    """Whether sure markup is more than a mention. Within a line, arguments have to follow it."""
    before = text[max(0, start - _INDENT) : start]
    begins_a_line = not before.rpartition("\n")[2].strip() and ("\n" in before or start <= _INDENT)
    return _ARGUMENTS_FOLLOW.match(text, end) is not None or (begins_a_line and _PROSE_FOLLOWS.match(text, end) is None)


def _end_of_between(text: str, start: int) -> int:
    between = _BETWEEN.match(text, start)
    return between.end() if between else start
