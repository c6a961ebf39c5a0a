"""Reads docstrings in the styles of Google, numpy and Sphinx: the description, and a text for each parameter. Pure.

Names may be marked and listed as in Markdown, and the headings of sections may be Chinese.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

_PARAMETER_SECTIONS: Final = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
    | {"参数", "参数说明", "其他参数"}
)
_RESULT_SECTIONS: Final = frozenset(
    {"returns", "return", "yields", "yield", "raises", "raise", "warns"} | {"返回", "返回值", "异常", "抛出", "引发"}
)

_HEADING = re.compile(r"^\**(?P<title>[^\W\d_](?:[^\W\d_]| )*?)\s*\**[:：]\**$")
_UNDERLINE = re.compile(r"^[-=]{3,}$")
_MARKS = "[`*]{0,3}"
_GOOGLE_ENTRY = re.compile(
    rf"^(?:[-+*•]\s+)?{_MARKS}(?P<name>\w+){_MARKS}\s*(?:[(（].*?[)）])?{_MARKS}\s*"
    rf"(?::{_MARKS}(?:\s+|$)|：(?:{_MARKS}(?:\s+|$))?)(?P<text>.*)$"
)
_NAME = rf"{_MARKS}\w+{_MARKS}"
_NUMPY_ENTRY = re.compile(rf"^(?P<names>{_NAME}(?:\s*,\s*{_NAME})*)\s*(?:[:：].*)?$")
_FIELD = re.compile(r"^[:@](?P<keyword>\w+)(?:\s+(?P<subject>[^:]*?))?\s*:\s*(?P<text>.*)$")
_PARAMETER_FIELDS: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_OTHER_FIELDS: Final = frozenset(
    {"type", "return", "returns", "rtype", "raise", "raises", "except", "exception", "yields", "ytype"}
)


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says: the description without its parts on parameters, results and errors."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])


def parse_docstring(text: str | None) -> Docstring:
    """Reads a docstring. Never fails: a line that fits no style describes no parameter."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        title, body_start = _heading_at(lines, position)
        field_line = _field_at(lines[position])
        if title in _PARAMETER_SECTIONS | _RESULT_SECTIONS:
            is_numpy = body_start - position == 2
            find_end = _end_of_underlined if is_numpy else _end_of_section
            body_end = find_end(lines, body_start)
            if title in _PARAMETER_SECTIONS:
                entries = _entries(lines[body_start:body_end], _NUMPY_ENTRY if is_numpy else _GOOGLE_ENTRY)
                parameters.update(entries)
            position = body_end
        elif field_line is not None:
            body_end = _end_of_indented(lines, position + 1)
            if field_line["keyword"] in _PARAMETER_FIELDS and field_line["subject"]:
                name = field_line["subject"].split()[-1].strip("`*")
                parameters[name] = _joined([field_line["text"], *lines[position + 1 : body_end]])
            position = body_end
        else:
            description.append(lines[position])
            position += 1
    text_alone = re.sub(r"\n{3,}", "\n\n", "\n".join(description).strip())
    return Docstring(text_alone, {name: text for name, text in parameters.items() if text})


def _heading_at(lines: Sequence[str], position: int) -> tuple[str | None, int]:
    """The title of the section that begins here, in lower case, and where its body begins."""
    line = lines[position].strip()
    following = lines[position + 1].strip() if position + 1 < len(lines) else ""
    if _UNDERLINE.match(following):
        return line.lower(), position + 2
    heading = _HEADING.match(line)
    return (heading["title"].lower(), position + 1) if heading else (None, position)


def _field_at(line: str) -> re.Match[str] | None:
    found = _FIELD.match(line)
    return found if found and found["keyword"] in _PARAMETER_FIELDS | _OTHER_FIELDS else None


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    """Where the lines end that are indented below the one before `start`; blank lines between them belong to them."""
    end = start
    for position in range(start, len(lines)):
        if lines[position].strip():
            if _indent(lines[position]) <= _indent(lines[start - 1]):
                break
            end = position + 1
    return end


def _end_of_section(lines: Sequence[str], start: int) -> int:
    """Where a section ends that has no underline.

    A heading in the very first line has lost its indentation, so that what belongs to it may not be indented.
    """
    end = _end_of_indented(lines, start)
    if end == start:
        while end < len(lines) and lines[end].strip() and _heading_at(lines, end)[0] is None:
            end += 1
    return end


def _end_of_underlined(lines: Sequence[str], start: int) -> int:
    """Where the next underlined heading begins."""
    for position in range(start, len(lines) - 1):
        if lines[position].strip() and _UNDERLINE.match(lines[position + 1].strip()):
            return position
    return len(lines)


def _entries(lines: Sequence[str], pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The parameters of a section: each begins at the section's own indentation, and its text may go on below."""
    filled = [line for line in lines if line.strip()]
    margin = min((_indent(line) for line in filled), default=0)
    names: list[str] = []
    text: list[str] = []
    for line in [*filled, ""]:
        if line and _indent(line) > margin:
            text.append(line)
            continue
        yield from ((name, _joined(text)) for name in names)
        entry = pattern.match(line.strip())
        groups = entry.groupdict() if entry else {}
        names = [
            name.strip().strip("`*") for name in (groups.get("names") or groups.get("name") or "").split(",") if name
        ]
        text = [groups.get("text") or ""]


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line.strip() for line in lines if line.strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
