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
    """A word that is not known here: the turn is not taken for finished."""


_STOP: Final = re.compile(
    r"(?:(?:stop|eos|eot|end)(?:_(?:turn|sequence|token|string|word|criteria|id|found|reached))*|end_?of_?\w+|im_end"
    r"|stopped|completed?|done|finish(?:ed)?|success|succeeded|normal|ok|none|null|unspecified)?"
)
_PARTS: Final = (
    (FinishKind.MALFORMED, re.compile(r"malformed|function_call_filter|(?:unexpected|invalid)_(?:tool|function)_call")),
    (FinishKind.LENGTH, re.compile(r"length|max_(?:\w+_)?tokens?|token_limit|context_(?:window|limit)")),
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
    (FinishKind.PAUSED, re.compile(r"pause|incomplete|unfinished|in_progress|partial")),
)
"""By which parts of words the kinds are known; the first that occurs counts. A finished turn is known by the whole word alone."""


@lru_cache(maxsize=256)  # two or three words, at every step
def finish_kind(reason: str | None) -> FinishKind:
    """The kind of a finish reason, whatever its spelling; never fails."""
    word = re.sub(r"[\W_]+", "_", reason or "").strip("_").lower()
    word = re.sub(r"^(?:finish|stop)_?reason_", "", word)
    if _STOP.fullmatch(word):
        return FinishKind.STOP
    return next((kind for kind, part in _PARTS if part.search(word)), FinishKind.UNKNOWN)
