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
_WORDS: Final = "think|thinking|thought|reasoning"
_OPENING: Final = rf"(?:<(?:{_WORDS})>|\[THINK\])"
_CLOSING: Final = rf"(?:</(?:{_WORDS})>|\[/THINK\])"
_CHANNEL: Final = r"(?:<\|start\|>assistant\s*)?<\|channel\|>"
_THINKING: Final = rf"{_CHANNEL}(?:analysis|commentary)\s*<\|message\|>"
_ANSWERING: Final = re.compile(rf"\s*{_CHANNEL}final\s*<\|message\|>", _FLAGS)
_BLOCKS: Final = (
    (re.compile(rf"\s*{_OPENING}", _FLAGS), re.compile(rf"`[^`\n]+`|(?P<end>{_CLOSING})", _FLAGS)),
    (re.compile(rf"\s*{_THINKING}", _FLAGS), re.compile(r"(?P<end><\|end\|>|(?=<\|(?:start|channel)\|>))", _FLAGS)),
)
"""How reasoning begins and ends: in tags, and in the channels of gpt-oss, where what it says beside calls is no answer either."""

_TAGS: Final = re.compile(
    r"^[ \t]*```.*?^[ \t]*```|`[^`\n]+`"
    rf"|(?P<open>{_OPENING})"
    rf"|(?P<end>^[ \t]*{_CLOSING}|{_CLOSING}[ \t\r]*$|(?<=[^\s\"'`(]){_CLOSING}(?=[\w{{<\[]))"
    rf"|(?P<mentioned>{_CLOSING})",
    _FLAGS,
)
"""Tags outside of code. A mention of one stands within a line, apart from the words around it or in quotes."""

_MARKUP: Final = re.compile(rf"{_OPENING}|{_CLOSING}|{_THINKING}|<\|end\|>", _FLAGS)


def without_reasoning(text: str) -> tuple[str, str]:
    """The text without the reasoning in front of it, and that reasoning.

    A block without an end holds all that there is. An end without a beginning counts as well, as many templates write the
    beginning themselves; one that belongs to a beginning within the text is a mention.
    """
    if "<" not in text and "[" not in text:  # most texts: no markup at all
        return text, ""
    start = 0
    thoughts: list[str] = []
    while (end := _end_of_reasoning(text, start)) is not None:
        thoughts.append(_MARKUP.sub("", text[start:end]).strip())
        start = end
    answering = _ANSWERING.match(text, start)
    if answering is not None:
        start = answering.end()
    return (text[start:].lstrip() if start else text), "\n".join(filter(None, thoughts))


def without_end_of_turn(text: str) -> str:
    """The text without what is not seen around it, and without the tokens by which a model ends its turn."""
    kept = text.strip().strip(_AT_THE_ENDS).strip()
    while token := next(_tokens_at_the_end(kept), None):
        kept = kept.removesuffix(token).rstrip()
    return kept if any(unicodedata.category(sign) not in _UNSEEN for sign in kept) else ""


def _end_of_reasoning(text: str, start: int) -> int | None:
    """Where the reasoning ends that stands at a place; None where there is none."""
    for opening, closing in _BLOCKS:
        if block := opening.match(text, start):
            ends = (found.end() for found in closing.finditer(text, block.end()) if found["end"] is not None)
            return next(ends, len(text))
    opened = 0
    for tag in _TAGS.finditer(text, start):
        if tag["open"]:
            opened += 1
        elif tag["end"] and not opened:
            return tag.end()
        elif tag["end"] or tag["mentioned"]:
            opened = max(0, opened - 1)
    return None


def _tokens_at_the_end(text: str) -> Iterator[str]:
    """The token that a text ends with. Where it closes a tag of the text, it is the text's own."""
    return (
        token
        for token in _ENDS_OF_TURNS
        if text.endswith(token) and not ("/" in token and token.replace("/", "") in text)
    )
