"""What the demo shows: a live picture in a terminal, plain lines elsewhere, nothing where only JSON is wanted."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from scheduler.client import RunInfo
from scheduler.lifecycle import Status

STYLES: Final = {
    Status.QUEUED: "dim",
    Status.RUNNING: "cyan",
    Status.WAITING: "yellow",
    Status.COMPLETED: "green",
    Status.FAILED: "red",
    Status.CANCELLED: "magenta",
    Status.BUDGET_EXCEEDED: "red",
}


class Screen(Protocol):
    """Hears of the course of the demo."""

    def say(self, line: str) -> None:
        """Something happened."""
        ...

    def show(self, infos: Sequence[RunInfo], *, steps: int) -> None:
        """This is where the runs stand; so many `steps` are expected in all."""
        ...


class SilentScreen:
    """For programs that want the summary only."""

    def say(self, line: str) -> None:
        """Says nothing."""

    def show(self, infos: Sequence[RunInfo], *, steps: int) -> None:
        """Shows nothing."""


class PlainScreen:
    """Lines, one whenever something has changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def say(self, line: str) -> None:
        """Prints the line."""
        self._console.print(line, markup=False, highlight=False)

    def show(self, infos: Sequence[RunInfo], *, steps: int) -> None:
        """Prints where the runs stand, if it is news."""
        line = f"  {_counts(infos)} · {sum(info.step for info in infos)} of {steps} steps"
        if line != self._last:
            self._last = line
            self.say(line)


class LiveScreen:
    """A picture that is drawn anew; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=8)
        self._said: list[str] = []

    def __enter__(self) -> "LiveScreen":
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def say(self, line: str) -> None:
        """Adds the line above the picture."""
        self._live.console.print(line, markup=False, highlight=False)

    def show(self, infos: Sequence[RunInfo], *, steps: int) -> None:
        """Draws where the runs stand."""
        made = sum(info.step for info in infos)
        table = Table.grid(padding=(0, 2))
        for worker, count in sorted(Counter(info.worker for info in infos if info.worker).items()):
            table.add_row(Text(worker), Text(f"{count} runs", style="cyan"))
        dots = Text()
        for info in infos:
            dots.append("● ", style=STYLES[info.status])
        bar = ProgressBar(total=steps, completed=min(made, steps), width=60)
        self._live.update(Group(dots, Text(f"{_counts(infos)} · {made} of {steps} steps"), bar, table))


def _counts(infos: Sequence[RunInfo]) -> str:
    counts = Counter(info.status for info in infos)
    return " · ".join(f"{counts[status]} {status.value}" for status in Status if counts[status])
