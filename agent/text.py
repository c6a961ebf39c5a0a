"""Text at the borders: what comes in is made fit to be stored, sent and shown."""

from typing import Final

_ELLIPSIS: Final = "…"


def well_formed(text: str) -> str:
    """The text with split surrogate pairs joined and lone surrogates replaced by U+FFFD, so that UTF-8 can carry it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def bounded(text: str, limit: int) -> str:
    """The text, or its start and an ellipsis, in at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + _ELLIPSIS


def without_fence(text: str) -> str:
    """The text without space around it, and without the code fence that is around the whole of it."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped[stripped.index("\n") + 1 : -3]
    return stripped
