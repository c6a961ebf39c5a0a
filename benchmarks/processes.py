"""What the kernel says of a process. Linux only: it is read from /proc."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process: int) -> float:
    """User and system time of all threads of a process so far, in steps of 10 ms."""
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS


def resident_kilobytes(process: int) -> int:
    """The memory that a process has now."""
    return _status(process, "VmRSS")


def peak_kilobytes(process: int) -> int:
    """The most memory that a process has ever had."""
    return _status(process, "VmHWM")


def _status(process: int, field: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0])
    raise LookupError(f"process {process} has no {field}")
