"""PURE. Values as people read them. Texts of runs are somebody else's: nothing in them may steer a terminal."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from scheduler.printable import printable

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")


def one_line(text: str, limit: int = 80) -> str:
    """The beginning of a text, on one line."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def ago(then: datetime | None, now: datetime) -> str:
    """How long ago, in its largest unit: "5 s", "3 min", "2 h", "4 d"."""
    return "" if then is None else lasting((now - then).total_seconds())


def lasting(seconds: float) -> str:
    """A duration, in its largest unit."""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def money(dollars: Decimal | None) -> str:
    """US dollars; "?" where a price is not known."""
    return "?" if dollars is None else f"${dollars:.6f}".rstrip("0").rstrip(".")


def clock(moment: datetime | None) -> str:
    """A moment, in UTC."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def moment_of(text: str, now: datetime) -> datetime:
    """What `2h` (ago), `3d` or an ISO date and time mean; a time without a zone is that of this machine.

    Raises:
        ValueError: It is none of these, or beyond what a date can say.
    """
    try:
        if age := _AGE.fullmatch(text.strip()):
            return now - timedelta(**{_UNITS[age[2]]: float(age[1])})
        return datetime.fromisoformat(text).astimezone()
    except OverflowError:
        raise ValueError(f"{text!r} is beyond the years 1 to 9999") from None
