"""Ids of runs: the partition and a UUIDv7 in hex, so that ids sort by the time at which they were made."""

import os
import time
from typing import Final
from uuid import UUID

PARTITION: Final = "0"


def new_run_id() -> str:
    """An id that no other run has. Made of letters, digits and `-` only, as RQ asks of its jobs."""
    return f"{PARTITION}-{uuid7().hex}"


def uuid7() -> UUID:
    """48 bits of milliseconds, 12 bits of their fraction, 62 random bits (RFC 9562, method 3).

    Nothing is remembered between two calls, and the kernel makes the random bits: also a forked child makes ids of its own.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = (nanoseconds << 12) // 1_000_000
    random = int.from_bytes(os.urandom(8), "big") >> 2
    version_and_variant = 7 << 76 | 0b10 << 62
    return UUID(int=milliseconds << 80 | fraction << 64 | random | version_and_variant)
