"""Text at the borders: what comes in is made fit to be stored, sent and shown."""

import json
import unicodedata
from typing import Final

_ELLIPSIS: Final = "…"
_ZERO_WIDTH_JOINER: Final = "\u200d"
_LONGEST_CLUSTER: Final = 32
"""Code points that are kept together at most."""


def well_formed(text: str) -> str:
    """The text with split surrogate pairs joined and lone surrogates replaced by U+FFFD, so that UTF-8 can carry it."""
    if text.isascii():  # known without a look at the characters
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_json(value: object) -> object:
    """What JSON can carry, with texts that UTF-8 can carry."""
    written = json.dumps(value, ensure_ascii=False)
    mended = well_formed(written)
    return value if mended is written else json.loads(mended)


def bounded(text: str, limit: int) -> str:
    """The text, or its start and an ellipsis, in at most `limit` characters."""
    return text if len(text) <= limit else text[: place_to_cut(text, limit - 1)] + _ELLIPSIS


def words_of(error: BaseException) -> str:
    """The type of an exception and what it says; the type alone where its text cannot be had."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except BaseException:  # its own `__str__`, which may do anything
        return f"{name} (its text cannot be had)"


def place_to_cut(text: str, position: int) -> int:
    """The last place up to a position that parts no characters which are shown as one, such as an emoji with its skin tone."""
    place = position
    while 0 < place < len(text) and _continues(text, place):
        place -= 1
        if position - place >= _LONGEST_CLUSTER:
            return position
    return place


def without_fence(text: str) -> str:
    """The text without space around it, and without the code fence that is around the whole of it."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped[stripped.index("\n") + 1 : -3]
    return stripped


def _continues(text: str, position: int) -> bool:
    """Whether the characters before and after a position are shown as one."""
    before, after = text[position - 1], text[position]
    if _ZERO_WIDTH_JOINER in (before, after) or unicodedata.category(after) in {"Mn", "Me", "Mc"}:
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":  # skin tones, flag tags
        return True
    if _is_regional(before) and _is_regional(after):  # two letters make a flag
        letters = 0
        while letters < position and _is_regional(text[position - 1 - letters]):
            letters += 1
        return letters % 2 == 1
    return before == "\r" and after == "\n"


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
