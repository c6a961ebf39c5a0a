"""Waiting for what is to come, by looking again and again: no test sleeps for a guessed time."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(description: str, look: Callable[[], Found], seconds: float = 30.0) -> Found:
    """Looks until it sees something true, and returns that.

    Raises:
        AssertionError: Nothing came within `seconds`; says what was awaited and what was seen last.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {description} (seen: {seen!r})")
        time.sleep(0.02)


def is_gone(process: int) -> bool:
    """Whether there is no process of this id any more."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False
