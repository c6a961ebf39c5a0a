"""What an answer means that holds no reply: whether it is worth another attempt, and whether it may be billed. PURE."""

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from agent.errors import ContextExceeded, ModelError, ModelRefusedRequest, ModelUnavailable
from agent.models.base import ModelReply
from agent.models.retry_after import retry_after
from agent.models.untrusted import items, mapping, parsed, text
from agent.redaction import redact
from agent.text import bounded

_LONGEST_MESSAGE: Final = 500
_LONGEST_PREVIEW: Final = 200
_LONGEST_READ: Final = 20_000

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

# Of bodies that have a code whatever happened.
_CODES_OF_SUCCESS: Final = (0, 200, "0", "200")

_TEMPORARY_REFUSALS: Final = frozenset({408, 409, 425, 429})

# A gateway gave up on an answer that may have been made behind it.
_BILLABLE: Final = frozenset({502, 504, 520, 524})

# Of the words that servers use in place of a status, without what joins them; the first that is found counts.
_STATUS_OF_WORD: Final = (
    ("contextlength", 400),
    ("contextwindow", 400),
    ("ratelimit", 429),
    ("quota", 429),
    ("resourceexhausted", 429),
    ("toomanyrequests", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("authentic", 401),
    ("unauthorized", 401),
    ("apikey", 401),
    ("permission", 403),
    ("notfound", 404),
    ("invalid", 400),
    ("badrequest", 400),
)
_UNKNOWN_STATUS: Final = 500

# What the model wrote is at fault, and not the request: the server could not read it as a call, or as the JSON that it had to be.
_ABOUT_THE_CALL: Final = re.compile(
    r"tool_use_failed|json_validate_failed|output_parse_failed"
    r"|failed to call a function|tool call validation failed|\bpars(e|ing) (the )?tool call",
    re.IGNORECASE,
)

_TOO_LONG_BY_CODE: Final = re.compile(r"context_?(length|window|size)", re.IGNORECASE)
_TOO_LONG: Final = re.compile(
    r"context (length|window|size|limit)|\b(prompt|input|request)s?\b[^:]{0,40}\btoo (long|large)|too many (\w+ )?tokens"
    r"|exceed\w* (the )?(max\w* (number of tokens|length)|model token limit)|reduce the length|range of input length",
    re.IGNORECASE | re.DOTALL,
)
# What no shorter history mends: one part of the request is too long, or more is asked for than the model ever writes.
_PART_TOO_LONG: Final = re.compile(
    r"\b(tools?|functions?|messages)(\[| name\b| description\b).{0,80}\b(too (long|large)|exceed)",
    re.IGNORECASE | re.DOTALL,
)
_ANSWER_TOO_LONG: Final = re.compile(
    r"\bmax_(\w+_)?tokens\b.{0,60}?\b(invalid|too (large|high|long))\b(\W+(?P<asked>\d+))?"
    r"|\binvalid (\w+ ){0,3}\W?max_(\w+_)?tokens",
    re.IGNORECASE | re.DOTALL,
)
_CONTEXT: Final = re.compile(r"context (?:length|window|size|limit)\D{0,20}(\d+)", re.IGNORECASE)

_MAY_BE_TOO_LONG: Final = frozenset({400, 422})
_PAYLOAD_TOO_LARGE: Final = 413
_RATE_LIMITED: Final = 429
_LARGER_THAN_THE_RATE: Final = "request too large"

# Servers whose chat template raises answer 500.
_REFUSALS_OF_TURNS: Final = frozenset({400, 422, 500})
_ABOUT_TURNS: Final = re.compile(
    r"alternat|consecutive|successive|\broles?\b|(system|first|last) message|function call turn"
    r"|tool[ _]?(call|use)s?\b.{0,40}\bids?\b|tool_(call|use|call_id|result)s?\b"
    r"|content.{0,60}\b(empty|null|blank)|(empty|either) content|(content|text) (parts?|blocks?) must",
    re.IGNORECASE | re.DOTALL,
)


def failure_of_status(status: int, headers: Mapping[str, str], data: bytes, now: datetime) -> ModelError | ModelReply:
    """What an answer with this status means: an error, or a reply of which nothing can be used.

    Args:
        status: Of the response; anything but a success.
        headers: Of the response; the mapping must not mind the case of names.
        data: The body, of which only the message is shown, or the start.
        now: The time with its zone, for `Retry-After`.
    """
    if 300 <= status < 400:
        said = f"a redirect to {headers.get('location')}; set the base URL accordingly"
        return _failure(status, _NOTHING, said, headers, now)
    try:
        error = _error_in(parsed(data)) or _NOTHING
    except ValueError:
        error = _NOTHING
    said = _message(error) or f"bad response from the model server: {_seen(headers, data)}"
    return _failure(status, error, said, headers, now)


def failure_inside(body: object, headers: Mapping[str, str], now: datetime) -> ModelError | ModelReply | None:
    """What a body means that holds an error although its status was a success; None if it holds none."""
    error = _error_in(body)
    if error is None:
        return None
    return _failure(_status(error), error, _message(error) or "it did not say why", headers, now)


def unreadable(status: int, headers: Mapping[str, str], data: bytes) -> ModelUnavailable:
    """The error that a success means which holds no reply: the work may have been done, and be billed."""
    said = f"bad response from the model server ({status}): {_seen(headers, data)}"
    return ModelUnavailable(said, status=status, billed=True)


def is_about_turns(error: ModelError) -> bool:
    """Whether a server refused a request for the shape of its history: roles, empty contents, ids of calls."""
    about_turns = error.status in _REFUSALS_OF_TURNS and not isinstance(error, ContextExceeded)
    return about_turns and _ABOUT_TURNS.search(str(error)) is not None


def _failure(
    status: int, error: Mapping[str, object], said: str, headers: Mapping[str, str], now: datetime
) -> ModelError | ModelReply:
    shown = bounded(redact(bounded(said, _LONGEST_READ)), _LONGEST_MESSAGE)
    code = f"{error.get('code')} {error.get('type')}"
    if "failed_generation" in error or _ABOUT_THE_CALL.search(f"{code} {shown}"):
        return ModelReply(finish_reason=f"malformed_function_call: {shown}")
    message = f"The model server answered {status}: {shown}"
    if _is_too_long(status, code, shown):
        return ContextExceeded(message, status=status)
    if status < 500 and status not in _TEMPORARY_REFUSALS:
        return ModelRefusedRequest(message, status=status)
    wait = retry_after(headers, now, error, limited=status == _RATE_LIMITED)
    return ModelUnavailable(message, status=status, billed=status in _BILLABLE, retry_after=wait)


def _is_too_long(status: int, code: str, said: str) -> bool:
    """Whether a request was refused for its length alone, so that a shorter one may be answered."""
    if status == _PAYLOAD_TOO_LARGE or _TOO_LONG_BY_CODE.search(code):
        return True
    if status == _RATE_LIMITED:  # no wait helps a request that has more tokens than a whole minute
        return _LARGER_THAN_THE_RATE in said.lower()
    if status not in _MAY_BE_TOO_LONG or not _TOO_LONG.search(said) or _PART_TOO_LONG.search(said):
        return False
    answer = _ANSWER_TOO_LONG.search(said)
    return answer is None or _leaves_room(answer["asked"], _CONTEXT.search(said))


def _leaves_room(asked: str | None, context: re.Match[str] | None) -> bool:
    """Whether an answer for which there was no room has it after a shorter request: half of the context, for there is always
    a request."""
    return asked is not None and context is not None and 2 * int(asked) <= int(context[1])


def _error_in(body: object) -> Mapping[str, object] | None:
    """The error that a body holds, as an object: `error` of the body or of its choice, the first of `errors`, or the body itself
    where it has no choices. A list of one stands for that one."""
    fields = mapping(next(iter(items(body)), body))
    choices = items(fields.get("choices"))
    for error in (fields.get("error"), *(mapping(choice).get("error") for choice in choices[:1])):
        if isinstance(error, str) and error:
            words = [error, text(fields.get("message"))]
            return {**fields, "message": ": ".join(word for word in words if word)}
        if any(mapping(error).values()):
            return mapping(error)
    if choices:
        return None
    first = mapping(next(iter(items(fields.get("errors"))), None))
    if first:
        return first
    says_why = _message(fields) or fields.get("code")
    return fields if says_why and fields.get("code") not in _CODES_OF_SUCCESS else None


def _message(error: Mapping[str, object]) -> str | None:
    """What an error says: servers write `message`, `msg` or `detail`, and routers in `raw` what the server behind them said."""
    said = next((found for name in ("message", "msg", "detail") if (found := text(error.get(name)))), None)
    behind = text(mapping(error.get("metadata")).get("raw"))
    return f"{said}: {behind}" if said and behind else said or behind


def _status(error: Mapping[str, object]) -> int:
    """The HTTP status that an error inside a success stands for, by its code or by the words it uses."""
    codes = [str(error.get(name) or "") for name in ("code", "status", "status_code")]
    for code in codes:
        if re.fullmatch(r"[45]\d\d", code):
            return int(code)
    words = re.sub(r"[\W_]", "", f"{codes} {error.get('type') or ''}").lower()
    return next((status for word, status in _STATUS_OF_WORD if word in words), _UNKNOWN_STATUS)


def _seen(headers: Mapping[str, str], data: bytes) -> str:
    """What kind of body it was and how it starts, escaped; secrets are taken out before it is cut."""
    kind = headers.get("content-type", "no content type")
    start = redact(data[:_LONGEST_READ].decode("utf-8", "replace"))
    return f"{bounded(kind, 100)}, {bounded(start, _LONGEST_PREVIEW)!r}" if data else f"{bounded(kind, 100)}, empty"
