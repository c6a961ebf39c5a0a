"""What the template of a model leaves in its text, where the server did not take it out: reasoning, and how a turn ends. PURE."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_AT_THE_ENDS: Final = "\u200b\u2060\ufeff"
_UNSEEN: Final = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_ENDS_OF_TURNS: Final = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>",
    "<|end_of_turn|>", "<|eos|>", "<｜end▁of▁sentence｜>", "<end_of_turn>", "<eos>", "</s>",
)  # fmt: skip

_FLAGS: Final = re.DOTALL | re.IGNORECASE | re.MULTILINE
_OPENING: Final = r"(?:<think(?:ing)?(?:\s[^<>\n]*)?>|\[THINK\])"
_CLOSING: Final = r"(?:</think(?:ing)?>|\[/THINK\])"
_CHANNEL: Final = r"(?:<\|start\|>assistant\s*)?<\|channel\|>"
_THINKING: Final = rf"{_CHANNEL}(?:analysis|commentary)\s*<\|message\|>"
_ANSWERING: Final = re.compile(rf"\s*{_CHANNEL}final\s*<\|message\|>", _FLAGS)
_BLOCKS: Final = (
    (re.compile(rf"\s*{_OPENING}", _FLAGS), re.compile(rf"`[^`\n]+`|(?P<end>{_CLOSING})", _FLAGS)),
    (re.compile(rf"\s*{_THINKING}", _FLAGS), re.compile(r"(?P<end><\|end\|>|(?=<\|(?:start|channel)\|>))", _FLAGS)),
)
"""How reasoning begins and ends: in tags, and in the channels of gpt-oss, where what it says beside calls is no answer either.

Other words, such as `<thought>` and `<reasoning>`, are as often what an answer in XML is made of, so that they are no tags here.
"""

_LINE_ENDS: Final = r"(?=[ \t\r]*$)"
_TEXT_FOLLOWS: Final = r"(?=[\w{<\[])"
_TAGS: Final = re.compile(
    rf"`[^`\n]+`|(?P<open>{_OPENING})"
    rf"|(?P<end>^[ \t]*{_CLOSING}(?:{_LINE_ENDS}|{_TEXT_FOLLOWS})"
    rf"|(?<=[^\s\"'`(:：]){_CLOSING}{_LINE_ENDS}|(?<=[.!?…。！？]){_CLOSING}{_TEXT_FOLLOWS})"
    rf"|(?P<mentioned>{_CLOSING})",
    _FLAGS,
)
"""Tags in a line. An end stands alone in it, or right behind what it ends; in prose a blank or a quote stands before a tag."""

_ANY_CLOSING: Final = re.compile(_CLOSING, _FLAGS)
_FENCE: Final = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[^\s`~]*[ \t\r]*\Z")
_STRUCTURED: Final = re.compile(r"\s*[{\[]")
_ANSWER: Final = re.compile(
    r"^[ \t]*(?:#+[ \t]+)?[*_`]{0,3}(?:final[ _]?answer|最[终終]答案)[*_`]{0,3}[ \t]*[:：]", _FLAGS
)
_MARKUP: Final = re.compile(rf"{_OPENING}|{_CLOSING}|{_THINKING}|<\|end\|>", _FLAGS)
_OPENED: Final = re.compile(r"<s\b", re.IGNORECASE)


def without_reasoning(text: str, *, known: bool = False) -> tuple[str, str | None]:
    """The text without the reasoning in front of it, and that reasoning; None where there is none.

    A block without an end holds all that there is. An end without a beginning may count as well, as many templates write the
    beginning themselves.

    Args:
        known: The reasoning came apart from the text, so that an end without a beginning is a mention.
    """
    if "<" not in text and "[" not in text:  # most texts: no markup at all
        return text, None
    start = 0
    thoughts: list[str] = []
    end = _end_of_block(text, 0)
    if end is None and not known:
        end = _end_without_beginning(text)
    while end is not None:
        thoughts.append(_MARKUP.sub("", text[start:end]).strip())
        start = end
        end = _end_of_block(text, start)
    answering = _ANSWERING.match(text, start)
    if answering is not None:
        start = answering.end()
    return (text[start:].lstrip() if start else text), "\n".join(filter(None, thoughts)) if thoughts else None


def without_end_of_turn(text: str) -> str:
    """The text without what is not seen around it, and without the tokens by which a model ends its turn."""
    kept = text.strip().strip(_AT_THE_ENDS).strip()
    end = len(kept)
    tokens = _ENDS_OF_TURNS
    if kept.endswith(">") and _OPENED.search(kept):  # then it closes what the text is struck through by
        tokens = tuple(token for token in tokens if "/" not in token)
    while token := next((token for token in tokens if kept.endswith(token, 0, end)), None):
        end -= len(token)
        while end and kept[end - 1].isspace():
            end -= 1
    kept = kept[:end]
    return kept if any(unicodedata.category(sign) not in _UNSEEN for sign in kept) else ""


def _end_of_block(text: str, start: int) -> int | None:
    """Where the reasoning ends that begins at a place; None where none does."""
    for opening, closing in _BLOCKS:
        if block := opening.match(text, start):
            ends = (found.end() for found in closing.finditer(text, block.end()) if found["end"] is not None)
            return next(ends, len(text))
    return None


def _end_without_beginning(text: str) -> int | None:
    """Where reasoning ends whose beginning the template wrote; None where the end is likelier one that an answer speaks of.

    To show a thought does less harm than to cut off an answer: the end must be the only one, and what is before it no answer.
    """
    if not _ANY_CLOSING.search(text) or _STRUCTURED.match(text):
        return None
    found = (tag for start, end in _lines_outside_of_code(text) for tag in _TAGS.finditer(text, start, end))
    tags = [tag for tag in found if tag.lastgroup]
    if not tags or tags[0].lastgroup != "end" or any(tag.lastgroup != "open" for tag in tags[1:]):
        return None
    start, end = tags[0].span()
    answered = _ANSWER.search(text, 0, start)
    if answered and (not text[: answered.start()].strip() or not _ANSWER.search(text, end)):
        return None
    return end


def _lines_outside_of_code(text: str) -> Iterator[tuple[int, int]]:
    """Where the lines begin and end that are in no fence. A fence may stand behind the mark of a list."""
    fence = ""
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if fence:
            if line.lstrip(" \t>").startswith(fence):
                fence = ""
        elif opened := _FENCE.search(line):
            fence = opened[1]
        else:
            yield start, end
        start = end + 1
