"""How long a server asks to wait before the next attempt, in the several ways that servers say it. PURE."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from agent.models.untrusted import items, mapping, text

LONGEST_WAIT: Final = 3600.0
"""Seconds. A server that wants more is asked again after this; the answer costs nothing."""

_SECONDS: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = r"(\d+(?:\.\d+)?)\s*+((?>ms|milli|[smhd]))[a-z]*+\s*+"
_DURATION_PART: Final = re.compile(_PART, re.IGNORECASE | re.ASCII)
_DURATION: Final = re.compile(rf"(?:{_PART})+", re.IGNORECASE | re.ASCII)
_IN_WORDS: Final = re.compile(rf"\b(?:try again|retry)\s+(?:in|after)\s+((?:{_PART})+)", re.IGNORECASE | re.ASCII)
_LONGEST_READ: Final = 2_000

# From these on a number is no length of time: it is a moment, in seconds or in milliseconds since 1970.
_MOMENT: Final = 1e9
_MOMENT_MS: Final = 1e11


def retry_after(
    headers: Mapping[str, str], now: datetime, error: object = None, *, limited: bool = True
) -> float | None:
    """Seconds to wait, from 0 to `LONGEST_WAIT`; None where the server does not say or cannot be understood.

    Args:
        headers: Of the response; the mapping must not mind the case of names.
        now: The time with its zone, for a date in a response that does not say its own.
        error: The error object of the body, where some servers say it.
        limited: Whether the server refused for a limit (429). Only then does the reset of a limit say when to come back:
            servers send it with every answer, and what broke is mended long before a limit of a day starts anew.
    """
    said = _said(headers, _date(headers.get("date", "")) or now, error, limited)
    waits = [wait for wait in said if wait is not None]
    longest = next(
        (wait for wait in waits if wait > 0), 0.0
    )  # the more exact come first; a wait of nothing says little
    return min(longest, LONGEST_WAIT) if waits else None


def _said(headers: Mapping[str, str], now: datetime, error: object, limited: bool) -> Iterator[float | None]:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    yield None if milliseconds is None else milliseconds / 1000
    yield _longest(headers.get("retry-after", ""), now)
    fields = mapping(error)
    for detail in items(fields.get("details")):
        yield _wait(text(mapping(detail).get("retryDelay")) or "", now)
    if limited:
        yield _until_reset(headers, now)
        passed_on = mapping(mapping(fields.get("metadata")).get("headers"))
        yield _until_reset({name: str(value) for name, value in passed_on.items()}, now)
    words = _IN_WORDS.search((text(fields.get("message")) or "")[:_LONGEST_READ])
    yield _wait(words[1], now) if words else None


def _longest(value: str, now: datetime) -> float | None:
    """A wait, or the longest of several: a header that was sent twice is joined by a comma, which a date has as well."""
    waits = [_wait(part, now) for part in value.split(",")]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known and len(known) == len(waits) else _wait(value, now)


def _wait(value: str, now: datetime) -> float | None:
    """Seconds that a text says: a number, a duration such as `1m30s`, or a moment in any of the usual forms."""
    value = value.strip()
    number = _number(value)
    if number is not None:
        moment = number / 1000 if number >= _MOMENT_MS else number
        return moment - now.timestamp() if moment >= _MOMENT else number
    if _DURATION.fullmatch(value):
        return sum(float(count) * _SECONDS[unit.lower()] for count, unit in _DURATION_PART.findall(value))
    date = _date(value)
    return None if date is None else (date - now).total_seconds()


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(value)
        except (ValueError, OverflowError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None


def _until_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """When the limits that are used up start anew, as in `x-ratelimit-reset-requests: 6m0s`. Servers name these headers after
    one pattern: where one says what is left of a limit, that of its reset has the other word in its place. A limit that does
    not say what is left of it is taken for used up only where nothing is said to be left of any other."""
    limits = {name.lower(): value.strip() for name, value in headers.items() if "ratelimit" in name.lower()}
    left = {name: _number(value) for name, value in limits.items() if "remaining" in name}
    otherwise = None if any(left.values()) else 0.0
    waits = [
        _longest(value, now)
        for name, value in limits.items()
        if "reset" in name and left.get(name.replace("reset", "remaining"), otherwise) == 0
    ]
    return max((wait for wait in waits if wait is not None), default=None)
