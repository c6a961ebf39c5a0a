"""Runs the benchmarks: `python -m benchmarks [--quick] [NAME ...]`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from benchmarks import floor, idle, long, session, steps, submit, takeover, waiting
from benchmarks.report import Outcome
from benchmarks.sizes import FULL, QUICK, Size
from benchmarks.stage import Stage

BENCHMARKS = {
    "floor": floor.measure,
    "steps": steps.measure,
    "waiting": waiting.measure,
    "long": long.measure,
    "session": session.measure,
    "takeover": takeover.measure,
    "submit": submit.measure,
    "idle": idle.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures what Pawl promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="so little of each that all take less than a minute")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    asyncio.run(_run(asked.names or list(BENCHMARKS), QUICK if asked.quick else FULL))
    return 0


async def _run(names: Sequence[str], size: Size) -> None:
    async with Stage() as stage:
        server = await stage.software()
    for name in names:
        outcome = await BENCHMARKS[name](size)
        print(outcome.as_json(size=size.name, server=server), flush=True)
        _tell(outcome)


def _tell(outcome: Outcome) -> None:
    for bar in outcome.bars:
        print(bar.as_text(), file=sys.stderr)
    if not outcome.bars:
        print(f"       {outcome.benchmark}: {dict(outcome.figures)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
