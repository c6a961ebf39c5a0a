"""What a model wrote in the labels of ReAct, read as it is meant. PURE.

Labels count at the start of a line only, and outside of code fences and of the JSON that the first action takes. The first
action counts; what stands behind it, such as an observation that the model made up, was never said.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import takewhile
from typing import Final, cast

from agent.dialects.loose_json import OPENING, read_value
from agent.dialects.written_calls import call_of
from agent.text import bounded


@dataclass(frozen=True, slots=True)
class Action:
    """A tool to call.

    Attributes:
        thought: What stands before it.
        arguments: The object, or text that cannot be read as one; None where there is no input.
    """

    thought: str
    name: str
    arguments: str | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer. `text` is all that was said up to its end."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Neither an action nor an answer. `text` is what was said."""

    text: str


class _Kind(Enum):
    THOUGHT = r"thoughts?|思考|思路|想法"
    INPUT = r"action[ _]?(?:\d+[ _])?input|(?:行[动動]|[动動]作)(?:输入|輸入|参数|參數)"
    ACTION = r"action|行[动動]|[动動]作"
    OBSERVATION = r"observations?|[观觀]察(?:[结結]果)?"
    ANSWER = r"final[ _]?answer|最[终終](?:答案|回答|[结結]果)"


@dataclass(frozen=True, slots=True)
class _Label:
    kind: _Kind
    word: str
    start: int
    end: int


_WORDS: Final = "|".join(f"(?P<{kind.name}>{kind.value})" for kind in _Kind)
_BOLD: Final = "[*_`]{0,3}"
_LABEL: Final = re.compile(
    rf"[ \t\u3000]*(?:#+[ \t]+)?{_BOLD}(?:{_WORDS})(?: ?#?\d+)?{_BOLD}[ \t]*[:：]{_BOLD}[ \t\u3000]*", re.IGNORECASE
)
_FENCE: Final = "```"
_CUT_LABEL: Final = re.compile(r"(?:^|\n)[ \t]*Obs(?:e|er|erv|erva|ervat|ervati|ervatio|ervation)?(?:\s*[:：])?\s*+\Z")
_BEFORE_VALUE: Final = re.compile(r"\s*(?:```[ \t]*\w*\s*|`)?")
_FUNCTION_CALL: Final = re.compile(r"[*`\"'“]*(?P<name>[\w.-]+)[*`\"'”]*[ \t]*(?P<open>[(（\[{｛])\s*")
_NOTHING: Final = re.compile(r"(?:none|null|nil|n/?a|no|nothing|-+)(?!\w)|(?:无|無|没有|沒有|不需要)|\Z", re.IGNORECASE)
_AROUND_NAME: Final = " \t\r*`\"'“”‘’「」[].。"
_LONGEST_NAME: Final = 100
_ON_THE_WAY: Final = frozenset({"thought", "observation", "思考", "观察", "觀察"})
_ANSWER_WORDS: Final = frozenset({"final answer", "final_answer", "finalanswer", "最终答案", "最終答案"})


def read(text: str, tools: Collection[str]) -> Action | Answer | Unlabelled:
    """What a reply says.

    Args:
        tools: The names of the tools that there are.
    """
    text = _CUT_LABEL.sub("", _unwrapped(text))
    labels = _labels(text)
    for index, label in enumerate(labels):
        match label.kind:
            case _Kind.OBSERVATION:
                return Unlabelled(text[: label.start].rstrip())
            case _Kind.ACTION:
                action = _action(text, labels, index, tools)
                if action is not None:
                    return action
            case _Kind.ANSWER:
                return _action_after_all(text, labels, index, tools) or _answer(text, labels, index, tools)
            case _Kind.THOUGHT | _Kind.INPUT:
                pass
    return Unlabelled(text)


def leading_value(text: str) -> object | None:
    """The object or list that a text begins with, be it in a code fence; None where there is none."""
    begin = _end_of(_BEFORE_VALUE, text, 0)
    try:
        return read_value(text, begin)[0]
    except (ValueError, RecursionError):
        return None


def _unwrapped(text: str) -> str:
    """The text without the one code fence that is around the whole of it."""
    stripped = text.strip()
    is_wrapped = stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and stripped.count(_FENCE) == 2
    return stripped.partition("\n")[2].removesuffix(_FENCE).rstrip() if is_wrapped else stripped


def _labels(text: str) -> list[_Label]:
    """The labels at the start of lines, outside of code fences."""
    labels: list[_Label] = []
    fenced = False
    start = 0
    for line in text.split("\n"):
        found = None if fenced else _LABEL.match(line)
        if found is not None:
            kind = _Kind[found.lastgroup or ""]
            labels.append(_Label(kind, found[kind.name].lower(), start, start + found.end()))
        if line.count(_FENCE) % 2:
            fenced = not fenced
        start += len(line) + 1
    return labels


def _action(text: str, labels: Sequence[_Label], index: int, tools: Collection[str]) -> Action | None:
    """The action at a label; None where it names no tool, as "None" does."""
    end = _start_of(labels, index + 1, text)
    named = _named(text[labels[index].end : end], tools)
    if named is None:
        return None
    name, arguments = named
    if index + 1 < len(labels) and labels[index + 1].kind is _Kind.INPUT:
        arguments = _input(text, labels[index + 1].end, _start_of(labels, index + 2, text))
    return Action(text[: labels[index].start].rstrip(), name, arguments)


def _action_after_all(text: str, labels: Sequence[_Label], index: int, tools: Collection[str]) -> Action | None:
    """The action that follows on an answer, if it is one beyond doubt: then the answer came too early."""
    for later in range(index + 1, len(labels) - 1):
        if labels[later].kind is _Kind.OBSERVATION:
            return None
        if labels[later].kind is _Kind.ACTION and labels[later + 1].kind is _Kind.INPUT:
            named = _named(text[labels[later].end : labels[later + 1].start], tools)
            action = _action(text, labels, later, tools) if named and named[0] in tools else None
            if action is not None:
                return replace(action, thought=text[: labels[index].start].rstrip())
    return None


def _answer(text: str, labels: Sequence[_Label], index: int, tools: Collection[str]) -> Answer | Unlabelled:
    """The answer at a label. It may have headings that read like labels: only where the model went on behind it does it end."""
    behind = range(index + 1, len(labels))
    last_turn = max((at for at in behind if _is_a_turn(text, labels, at, tools)), default=index)
    words = [text[labels[at].end : _start_of(labels, at + 1, text)].strip(_AROUND_NAME + "\n") for at in behind]
    nothing = len(labels) - sum(1 for _ in takewhile(_NOTHING.fullmatch, reversed(words)))
    ends = (
        labels[at].start
        for at, said in zip(behind, words, strict=True)
        if _ends_an_answer(labels[at], said, goes_on=at < last_turn, is_all=at >= nothing)
    )
    kept = text[: next(ends, len(text))].rstrip()
    answer = kept[labels[index].end :].strip()
    if answer.count("**") % 2:  # it was opened before the label
        answer = answer.removesuffix("**").rstrip()
    return Answer(kept, answer) if answer else Unlabelled(kept)


def _is_a_turn(text: str, labels: Sequence[_Label], at: int, tools: Collection[str]) -> bool:
    """Whether a label is beyond doubt an action or another answer."""
    label = labels[at]
    if label.kind is _Kind.ACTION:
        named = _named(text[label.end : _start_of(labels, at + 1, text)], tools)
        return named is not None and named[0] in tools
    return label.kind is _Kind.ANSWER and label.word in _ANSWER_WORDS


def _ends_an_answer(label: _Label, said: str, *, goes_on: bool, is_all: bool) -> bool:
    """Whether the model went on at a label: to a thought or an observation on the way to another turn, or to an action that is
    none, with no words behind it that could belong to the answer.

    Args:
        said: What stands behind the label.
        goes_on: Another turn follows.
        is_all: From here on nothing is said.
    """
    if label.word in _ON_THE_WAY:
        return goes_on
    is_none = label.kind is _Kind.ACTION and bool(said) and _NOTHING.fullmatch(said) is not None
    return is_none and (goes_on or is_all)


def _named(written: str, tools: Collection[str]) -> tuple[str, str | Mapping[str, object] | None] | None:
    """The tool that is named behind a label, and the arguments where they stand there as well; None where it is none."""
    said = written.strip()
    line = said.partition("\n")[0].strip(_AROUND_NAME)
    if line in tools:
        return line, None
    if said[_end_of(_BEFORE_VALUE, said, 0) :][:1] in set(OPENING):
        call = call_of(leading_value(said), tools)
        return None if call is None else (call.name or "", call.arguments)
    if _NOTHING.match(line):
        return None
    call = _FUNCTION_CALL.match(said)
    if call is None:
        return bounded(line, _LONGEST_NAME), None
    return bounded(call["name"], _LONGEST_NAME), _in_brackets(said, call)


def _in_brackets(said: str, call: re.Match[str]) -> str | Mapping[str, object] | None:
    """The arguments of what looks like a function call: an object, and nothing else, in its brackets."""
    written = said[call.start("open") :]
    value, _ = _object_at(written)
    if value is not None:
        return value
    inner = said[call.end() :]
    if inner[:1] in {")", "）", "]"}:
        return None
    value, rest = _object_at(inner)
    return value if value is not None and rest.lstrip()[:1] in {")", "）"} else written


def _input(text: str, start: int, end: int) -> str | Mapping[str, object] | None:
    """The input behind a label. Labels within its strings are none, so that it may go on behind what ends it otherwise."""
    begin = _end_of(_BEFORE_VALUE, text, start)
    value, rest = _object_at(text[begin:])
    if value is not None and rest.lstrip()[:1] not in {"{", "｛"}:
        return value
    written = text[begin:end].strip().strip("`").strip()
    return None if value is None and _NOTHING.match(written) else written


def _object_at(text: str) -> tuple[Mapping[str, object] | None, str]:
    """The object that a text begins with, and what is behind it."""
    try:
        value, end = read_value(text)
    except (ValueError, RecursionError):
        return None, text
    return (cast("Mapping[str, object]", value), text[end:]) if isinstance(value, Mapping) else (None, text)


def _start_of(labels: Sequence[_Label], index: int, text: str) -> int:
    return labels[index].start if index < len(labels) else len(text)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
