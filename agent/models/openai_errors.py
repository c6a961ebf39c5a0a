"""What an answer means that holds no reply: whether it is worth another attempt, and whether it may be billed. PURE."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.models.retry_after import retry_after
from agent.models.untrusted import items, mapping, parsed, text
from agent.redaction import redact
from agent.text import bounded

_LONGEST_MESSAGE: Final = 500
_LONGEST_PREVIEW: Final = 200
_LONGEST_READ: Final = 20_000

_TEMPORARY_REFUSALS: Final = frozenset({408, 409, 425, 429})

# A gateway gave up on an answer that may have been made behind it.
_BILLABLE: Final = frozenset({502, 504, 520, 524})

_STATUS_OF_WORD: Final = (
    ("rate_limit", 429),
    ("quota", 429),
    ("overloaded", 503),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid", 400),
)
_UNKNOWN_STATUS: Final = 500

# Servers whose chat template raises answer 500.
_REFUSALS_OF_TURNS: Final = frozenset({400, 422, 500})
_ABOUT_TURNS: Final = re.compile(
    r"alternat|consecutive|successive|\broles?\b|(system|first|last) message|function call turn"
    r"|tool[ _]?(call|use)s?\b.{0,40}\bids?\b|tool_(call|use|call_id|result)s?\b"
    r"|content.{0,60}\b(empty|null|blank)|(empty|either) content|(content|text) (parts?|blocks?) must",
    re.IGNORECASE | re.DOTALL,
)


def error_of_status(status: int, headers: Mapping[str, str], data: bytes, now: datetime) -> ModelError:
    """The error that an answer with this status means.

    Args:
        status: Of the response; anything but a success.
        headers: Of the response; the mapping must not mind the case of names.
        data: The body, of which only the message is shown, or the start.
        now: The time with its zone, for `Retry-After`.
    """
    if 300 <= status < 400:
        return _error(status, f"a redirect to {headers.get('location')}; set the base URL accordingly", headers, now)
    try:
        said = _message(parsed(data))
    except ValueError:
        said = None
    return _error(status, said or f"bad response from the model server: {_seen(headers, data)}", headers, now)


def error_inside(body: Mapping[str, object], headers: Mapping[str, str], now: datetime) -> ModelError | None:
    """The error that a body holds although its status was a success; None if it holds none."""
    error = body.get("error")
    if not error:
        return None
    return _error(_status(error), _message(body) or "it did not say why", headers, now)


def unreadable(status: int, headers: Mapping[str, str], data: bytes) -> ModelUnavailable:
    """The error that a success means which holds no reply: the work may have been done, and be billed."""
    said = f"bad response from the model server ({status}): {_seen(headers, data)}"
    return ModelUnavailable(said, status=status, billed=True)


def is_about_turns(error: ModelError) -> bool:
    """Whether a server refused a request for the shape of its history: roles, empty contents, ids of calls."""
    return error.status in _REFUSALS_OF_TURNS and _ABOUT_TURNS.search(str(error)) is not None


def _error(status: int, said: str, headers: Mapping[str, str], now: datetime) -> ModelError:
    message = f"The model server answered {status}: {bounded(redact(bounded(said, _LONGEST_READ)), _LONGEST_MESSAGE)}"
    if status < 500 and status not in _TEMPORARY_REFUSALS:
        return ModelRefusedRequest(message, status=status)
    wait = retry_after(headers, now)
    return ModelUnavailable(message, status=status, billed=status in _BILLABLE, retry_after=wait)


def _message(body: object) -> str | None:
    """Servers write `{"error": {"message": …}}`, `{"error": …}`, `{"message": …}`, `{"detail": …}` or a list of one."""
    body = next(iter(items(body)), body)
    error = mapping(body).get("error", body)
    fields = mapping(error)
    return text(error) or text(fields.get("message")) or text(fields.get("detail"))


def _status(error: object) -> int:
    """The HTTP status that an error inside a success stands for, by its code or by the words it uses."""
    fields = mapping(error)
    code = str(fields.get("code") or fields.get("status") or "")
    if re.fullmatch(r"[45]\d\d", code):
        return int(code)
    words = f"{code} {fields.get('type') or ''}".lower()
    return next((status for word, status in _STATUS_OF_WORD if word in words), _UNKNOWN_STATUS)


def _seen(headers: Mapping[str, str], data: bytes) -> str:
    """What kind of body it was and how it starts, escaped; secrets are taken out before it is cut."""
    kind = headers.get("content-type", "no content type")
    start = redact(data[:_LONGEST_READ].decode("utf-8", "replace"))
    return f"{bounded(kind, 100)}, {bounded(start, _LONGEST_PREVIEW)!r}" if data else f"{bounded(kind, 100)}, empty"
