"""What a server means by its finish reason. The servers' words differ; the raw one is kept beside the kind."""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final


class FinishKind(StrEnum):
    """Why a model stopped writing, as far as the engine must tell the kinds apart."""

    STOP = "stop"
    """It was done, as servers also mean by no reason at all."""

    LENGTH = "length"
    """The output limit or the context window cut it off."""

    TOOL_CALLS = "tool_calls"
    """It waits for tools."""

    FILTERED = "filtered"
    """A filter of the provider holds the reply back: asking again does not help."""

    FAILED = "failed"
    """The server broke off: asking again may help."""

    MALFORMED = "malformed"
    """The model wrote a tool call that the server itself could not read."""

    PAUSED = "paused"
    """The model is to go on."""

    UNKNOWN = "unknown"
    """A word that is not known here: it may be the one by which this server ends every turn."""


_STOP: Final = re.compile(
    r"(?:(?:stop|eos|eot|end)(?:_(?:turn|sequence|token|str|string|words?|criteria|id|found|met|reached))*|end_?of_?\w+|im_end"
    r"|(?:finished_)?stopped|complet(?:ed?|ion)|done|finish(?:ed)?|success(?:ful)?|succeeded|normal|ok|none|null|unspecified)?"
)
_PARTS: Final = (
    (FinishKind.MALFORMED, re.compile(r"malformed|function_call_filter|(?:unexpected|invalid)_(?:tool|function)_call")),
    (
        FinishKind.LENGTH,
        re.compile(r"length|max_(?:\w{1,32}_)?tokens?|max_output|token_limit|context_(?:window|limit)"),
    ),
    (
        FinishKind.FILTERED,
        re.compile(r"filter|safety|sensitive|refus|recitation|guardrail|blocklist|blocked|prohibited|spii|moderation"),
    ),
    (
        FinishKind.FAILED,
        re.compile(
            r"error|fail|abort|cancel|time[d_]*out|overload|insufficient|interrupt|unavailable|rate_limit|disconnect"
        ),
    ),
    (FinishKind.TOOL_CALLS, re.compile(r"tool_call|tool_use|function_call")),
    (FinishKind.PAUSED, re.compile(r"pause|incomplete|unfinished|in_progress")),
)
"""By which parts of words the kinds are known; the first that occurs counts. A finished turn is known by the whole word alone."""

_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where one word ends and the next begins by case alone, as in `endTurn`."""


@lru_cache(maxsize=256)  # two or three words, at every step
def finish_kind(reason: str | None) -> FinishKind:
    """The kind of a finish reason, whatever its spelling; never fails."""
    parted = _BETWEEN_WORDS.sub("_", reason or "")
    word = re.sub(r"[\W_]+", "_", parted).strip("_").lower()
    word = re.sub(r"^(?:finish|stop)_?reason_", "", word)
    if _STOP.fullmatch(word):
        return FinishKind.STOP
    return next((kind for kind, part in _PARTS if part.search(word)), FinishKind.UNKNOWN)
