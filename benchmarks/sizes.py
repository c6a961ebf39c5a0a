"""How much is measured: all of it, or so little that everything together takes less than a minute."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """The amounts of work of one run of the benchmarks.

    Attributes:
        rounds: How often a measurement is made; its median counts.
        commits: Of the floor.
        repeats: How often in a round what takes milliseconds is measured.
        waiting_runs: Runs that wait for their models at once.
        kills: Workers that are killed, with a parent and without one each.
        submits: Runs whose first model call is timed.
        idle_seconds: How long an idle worker is watched.
    """

    name: str
    rounds: int
    commits: int
    repeats: int
    waiting_runs: int
    kills: int
    submits: int
    idle_seconds: float


FULL = Size("full", rounds=3, commits=30_000, repeats=5, waiting_runs=2_000, kills=20, submits=500, idle_seconds=60.0)
QUICK = Size("quick", rounds=1, commits=10_000, repeats=1, waiting_runs=300, kills=1, submits=50, idle_seconds=10.0)
