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

    UNKNOWN = "unknown"
    """A word that is not known here: the turn is not taken for finished."""


_WORDS: Final[dict[FinishKind, str]] = {
    FinishKind.STOP: "stop eos eos_token end end_turn stop_sequence stop_token complete completed done finish finished",
    FinishKind.LENGTH: "length max_tokens max_output_tokens model_length model_context_window_exceeded token_limit",
    FinishKind.TOOL_CALLS: "tool_calls tool_call tool_use function_call",
    FinishKind.FILTERED: "content_filter content_filtered sensitive safety refusal recitation guardrail_intervened "
    "blocklist prohibited_content spii blocked image_safety",
    FinishKind.FAILED: "error network_error server_error failed abort aborted cancelled timeout overloaded "
    "insufficient_system_resource",
    FinishKind.MALFORMED: "malformed_function_call unexpected_tool_call",
}
_KIND_OF: Final = {word: kind for kind, words in _WORDS.items() for word in words.split()}


@lru_cache(maxsize=256)  # two or three words, at every step
def finish_kind(reason: str | None) -> FinishKind:
    """The kind of a finish reason, whatever its spelling; never fails."""
    word = re.sub(r"[\W_]+", "_", reason or "").strip("_").lower()
    if not word:
        return FinishKind.STOP
    if "malformed" in word:
        return FinishKind.MALFORMED
    return _KIND_OF.get(word, FinishKind.UNKNOWN)
