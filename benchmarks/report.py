"""What a benchmark found, and whether it meets its bars."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

Figure = float | str | Sequence["Figure"] | Mapping[str, "Figure"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise: the measured value shall be `at_least` or `at_most` the limit."""

    name: str
    value: float
    sense: Literal["at_least", "at_most"]
    limit: float

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.sense == "at_least" else self.value <= self.limit

    def as_text(self) -> str:
        """For people."""
        sign = ">=" if self.sense == "at_least" else "<="
        return f"{'met   ' if self.met else 'MISSED'} {self.name:<58} {self.value:>11,.4g} {sign} {self.limit:,.4g}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A benchmark's bars, and all that was measured for them."""

    benchmark: str
    bars: Sequence[Bar]
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])

    def as_json(self, *, size: str, server: str) -> str:
        """One line, with what is to be known of the machine."""
        return json.dumps(
            {
                "benchmark": self.benchmark,
                "met": all(bar.met for bar in self.bars),
                "bars": [
                    {"name": bar.name, "value": bar.value, bar.sense: bar.limit, "met": bar.met} for bar in self.bars
                ],
                "figures": self.figures,
                "size": size,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": machine(server),
            }
        )


def machine(server: str) -> dict[str, Figure]:
    """Where it was measured, and how fast that was just now: seconds of processor time are to be read beside it."""
    return {
        "processors": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "python_loop_ms": milliseconds(min(_loop() for _ in range(3))),
        "redis_py": version("redis"),
        "hiredis": version("hiredis"),
        "server": server,
    }


def _loop() -> float:
    """Seconds of processor time for a million rounds of plain Python."""
    started, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number * number
    return time.process_time() - started


def milliseconds(seconds: float) -> float:
    """Seconds as milliseconds, to the microsecond."""
    return round(seconds * 1000, 3)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that is not exceeded by this share of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
