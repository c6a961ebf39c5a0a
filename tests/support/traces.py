"""Traces: what models and tools really did, written to a file from every worker process and counted from outside.

The folder, named by `TEST_TRACES`, also holds the gates: an open gate is an empty file.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "TEST_TRACES"


@dataclass(frozen=True, slots=True)
class Trace:
    """One line: what happened (`model`, or the name of a tool), to which run, and the call it was part of."""

    what: str
    run: str
    key: str
    text: str = ""
    process: int = 0


class Traces:
    """A folder of traces and gates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "traces"

    @classmethod
    def of_this_process(cls) -> "Traces":
        """Those of the test that started this process."""
        return cls(Path(os.environ[VARIABLE]))

    def leave(self, what: str, run: str, key: str, text: str = "") -> None:
        """Appends a line in one write, so that lines of several processes do not mix."""
        line = json.dumps([what, run, key, text, os.getpid()]) + "\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def found(self, what: str = "", run: str = "") -> list[Trace]:
        """The traces so far, of one kind or one run where that is asked for."""
        if not self._file.exists():
            return []
        traces = [Trace(*json.loads(line)) for line in self._file.read_text().splitlines()]
        return [trace for trace in traces if what in ("", trace.what) and run in ("", trace.run)]

    def open(self, gate: str) -> None:
        """Lets those go on that wait at the gate."""
        (self.folder / f"{gate}.gate").touch()

    def is_open(self, gate: str) -> bool:
        """Whether the gate is open."""
        return (self.folder / f"{gate}.gate").exists()
