"""How long a server asks to wait before the next attempt, in the several ways that servers say it. PURE."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_WAIT: Final = 3600.0
"""Seconds. A server that wants more is asked again after this; the answer costs nothing."""

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+")
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from 0 to `LONGEST_WAIT`; None where the server does not say or cannot be understood.

    Args:
        headers: Of the response; the mapping must not mind the case of names.
        now: The time with its zone, for a date in a response that does not say its own.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    waits = (
        None if milliseconds is None else milliseconds / 1000,
        _seconds(headers.get("retry-after", ""), _date(headers.get("date", "")) or now),
        _until_reset(headers),
    )
    wait = next((wait for wait in waits if wait is not None), None)
    return None if wait is None else min(max(wait, 0.0), LONGEST_WAIT)


def _seconds(value: str, now: datetime) -> float | None:
    """A number, the longest of several (a header sent twice is joined by a comma), or a date."""
    numbers = [_number(part) for part in value.split(",")]
    known = [number for number in numbers if number is not None]
    if known and len(known) == len(numbers):
        return max(known)
    date = _date(value)
    return None if date is None else (date - now).total_seconds()


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """When the limits that are used up start anew, as in `x-ratelimit-reset-requests: 6m0s`."""
    waits: list[float] = []
    for limit in ("requests", "tokens"):
        reset = headers.get(f"x-ratelimit-reset-{limit}", "").strip()
        used_up = headers.get(f"x-ratelimit-remaining-{limit}", "0").strip() == "0"
        if used_up and _DURATION.fullmatch(reset):
            waits.append(sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(reset)))
    return max(waits, default=None)
