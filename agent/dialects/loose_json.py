"""JSON as models write it by hand: read as it is meant, where it can be meant in one way only. PURE.

Outside of strings one sign may stand for another: full-width punctuation, quotes of other kinds, Python's words for true,
false and null, a comma behind the last item. Nothing that is missing is added, so that half a value is never read as one.
"""

import re
from typing import Final

from agent.dialects.calls import decode, decode_beginning

OPENING: Final = "{[｛［"
"""What an object or a list begins with."""

_SIGNS: Final = {"｛": "{", "｝": "}", "［": "[", "］": "]", "：": ":", "，": ",", "\u3000": " "}
_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
_CLOSING: Final = {'"': '"', "'": "'", "“": "“”", "”": "“”", "‘": "‘’", "’": "‘’", "＂": "＂"}
_ESCAPED_BY_HAND: Final = frozenset(_CLOSING) - {'"'}
_PARTNERS: Final = {"{": "}", "[": "]"}
_TOKEN: Final = re.compile(r"[A-Za-z]+|.", re.DOTALL)


def read_value(text: str, start: int = 0) -> tuple[object, int]:
    """The object or list that begins at a place in a text, and where it ends.

    Raises:
        ValueError: It is none, is not whole, or does not say one thing clearly.
        RecursionError: It is nested too deep.
    """
    if text[start : start + 1] not in set(OPENING):
        raise ValueError("neither an object nor a list")
    try:
        return decode_beginning(text, start)
    except (ValueError, RecursionError):
        rewritten, end = _in_plain_signs(text, start)
        return decode(rewritten), end


def _in_plain_signs(text: str, start: int) -> tuple[str, int]:
    """The value that begins at a place, in the signs of JSON, and where it ends.

    Raises:
        ValueError: Its brackets do not match, or a string has no end.
    """
    written: list[str] = []
    expected: list[str] = []
    position = start
    while token := _TOKEN.match(text, position):
        sign = _SIGNS.get(token[0], token[0])
        position = token.end()
        if sign in _CLOSING:
            content, position = _string(text, position, _CLOSING[sign])
            written.append(content)
        elif sign in _PARTNERS:
            expected.append(_PARTNERS[sign])
            written.append(sign)
        elif sign in "}]":
            if not expected or expected.pop() != sign:
                raise ValueError("brackets do not match")
            if written[-1] == " ":
                written.pop()
            if written[-1] == "," and written[-2] not in "[{":
                written.pop()
            written.append(sign)
            if not expected:
                return "".join(written), position
        elif not sign.isspace():
            written.append(_WORDS.get(sign, sign))
        elif written and written[-1].isalnum():
            written.append(" ")
    raise ValueError("it has no end")


def _string(text: str, start: int, closing: str) -> tuple[str, int]:
    """A string in JSON's quotes, and where it ends.

    Raises:
        ValueError: It has no end.
    """
    written = ['"']
    position = start
    while position < len(text):
        sign = text[position]
        position += 1
        if sign in closing:
            return "".join((*written, '"')), position
        if sign == "\\":
            escaped = text[position : position + 1]
            position += 1
            written.append(escaped if escaped in _ESCAPED_BY_HAND else sign + escaped)
        else:
            written.append('\\"' if sign == '"' else sign)
    raise ValueError("a string has no end")
