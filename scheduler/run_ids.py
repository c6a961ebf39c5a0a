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
    """48 bits of milliseconds, then 74 random bits. The kernel gives them anew each time, also in a forked child."""
    milliseconds = time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF
    random = int.from_bytes(os.urandom(10), "big")
    version_and_variant = 7 << 76 | 0b10 << 62
    value = milliseconds << 80 | (random >> 62 & 0xFFF) << 64 | random & (1 << 62) - 1
    return UUID(int=value | version_and_variant)
