"""The benchmarks run from end to end. How fast is not judged here: that is what they are for."""

import asyncio
import json
import math

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.sizes import Size

TINY = Size("tiny", rounds=1, commits=500, repeats=1, waiting_runs=20, kills=1, submits=5, idle_seconds=1.0)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_measures_all_that_it_promises(name: str) -> None:
    outcome = asyncio.run(BENCHMARKS[name](TINY))

    told = json.loads(outcome.as_json(size=TINY.name, server="any"))
    assert told["benchmark"] == name
    assert told["figures"]
    for bar in outcome.bars:
        assert math.isfinite(bar.value) and bar.value >= 0, bar.name
    assert bool(outcome.bars) == (name != "floor"), "the floor is what others are measured by"
