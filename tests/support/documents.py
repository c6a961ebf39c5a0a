"""The documents, taken apart and tried out: their blocks of code, what these print, and their links.

How a document says what becomes of a block:

- `console`: lines behind `$ ` are commands (`> ` continues one), the others what they print. `# exit code N` at the end of
  a command says that it fails. `…` stands for any text, and figures that differ from time to time are not compared.
- `sh`: commands alone. `python`: a program; one that begins with `# name.py` is that file, the others are run.
- `json`, `yaml`, `toml` are parsed; `text` is for the eye.
- `<!-- not run: why -->` above a block says that its commands are not run here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

RUN = frozenset({"console", "sh", "python"})
PARSED = frozenset({"json", "yaml", "toml"})
SHOWN = frozenset({"text"})

_FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXCUSE = re.compile(r"<!-- not run: (.+?) -->\n+\Z", re.DOTALL)
_FILE = re.compile(r"# (\S+\.py)\n")
_EXIT_CODE = re.compile(r"\s+# exit code (\d+)$")

# What differs from one time to another, and what stands for it.
_VOLATILE = (
    (r"\b(0|local)-[0-9a-f]{32}\b", "RUN"),
    (r"\b[\w.-]+:\d+:[0-9a-f]{8}\b", "WORKER"),
    (r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?", "MOMENT"),
    (r"^ *\d+  \d\d:\d\d:\d\d  ", "EVENT "),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+(\.\d+)? ?(ms|s|min|h|d)\b", "DURATION"),
    (r"\b\d+ \+ \d+\b", "TOKENS"),
    (r"\bstep \d+", "step N"),
    (r"\$\d+\.\d+", "MONEY"),
    (r"\b\d+\.\d+ MiB", "SIZE"),
    (r"\b(Valkey|Redis) \d[\d.]*", "SERVER"),
    (r"\b\d+\.\d+\.\d+\b", "VERSION"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `line`: of its fence; `excuse`: why it is not run, else empty."""

    line: int
    language: str
    body: str
    excuse: str

    @property
    def file(self) -> str:
        """The name of the file that it is, else empty."""
        named = _FILE.match(self.body) if self.language == "python" else None
        return named[1] if named else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what a document says that it prints, and the exit code."""

    line: int
    words: str
    prints: str
    code: int


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a document."""
    found: list[Block] = []
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        excuse = _EXCUSE.search(before)
        found.append(
            Block(before.count("\n") + 1, fence["language"], fence["body"], excuse[1].strip() if excuse else "")
        )
    return found


def commands_of(block: Block) -> list[Command]:
    """The commands of a block of `console` or `sh`."""
    if block.language == "sh":
        return [Command(block.line + 1, block.body, "", 0)]
    parts = re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]
    commands: list[Command] = []
    for part in parts:
        lines = part.splitlines()
        more = 1
        while more < len(lines) and lines[more].startswith("> "):
            more += 1
        words = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:more])])
        code = _EXIT_CODE.search(words)
        line = block.line + 1 + block.body[: block.body.index(part)].count("\n")
        commands.append(
            Command(
                line, words[: code.start()] if code else words, "\n".join(lines[more:]), int(code[1]) if code else 0
            )
        )
    return commands


def without_blocks(text: str) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", text)


def links_of(text: str) -> list[str]:
    """The targets of a document's links."""
    return re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", without_blocks(text))


def anchors_of(text: str) -> set[str]:
    """What a link may name behind `#`: the headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head; cells without backquotes."""
    section = text.partition(f" {heading}\n")[2]
    table = re.search(r"^\|.*\n\|[ :|-]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert table, f"there is no table below {heading!r}"
    return [
        [cell.strip().replace("`", "") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table[1].splitlines()
    ]


class Trial:
    """Runs all that a document shows, in an empty folder, as one shell session.

    Args:
        environment: Of the session; nothing of this process' own is in it but the path.
    """

    def __init__(self, document: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._blocks = [block for block in blocks_of(document.read_text()) if not block.excuse]
        self._folder = folder
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "COLUMNS": "200",
            **environment,
        }
        self.transcript = ""

    def run(self, seconds: float) -> list[str]:
        """Runs the session. Returns what went otherwise than the document says.

        Raises:
            TimeoutError: It took longer than so many seconds.
        """
        for block in self._blocks:
            if block.file:
                (self._folder / block.file).write_text(block.body)
        commands = list(self._commands())
        if not commands:
            return []
        self._session(commands, seconds)
        parts = re.split(r"^@@ (\d+)\n", self.transcript, flags=re.MULTILINE)
        printed, codes = parts[::2], [int(code) for code in parts[1::2]]
        return [
            problem
            for command, output, code in zip(commands, printed, [*codes, None], strict=False)
            for problem in _problems(command, output, code)
        ]

    def _commands(self) -> Iterator[Command]:
        for block in self._blocks:
            if block.language in ("console", "sh"):
                yield from commands_of(block)
            elif block.language == "python" and not block.file:
                program = self._folder / f"line_{block.line}.py"
                program.write_text(block.body)
                yield Command(block.line, f"python {program.name}", "", 0)

    def _session(self, commands: Sequence[Command], seconds: float) -> None:
        lines = ["exec 2>&1", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
        lines += [f"{command.words}\necho @@ $?" for command in commands]
        output = self._folder / "transcript"
        with output.open("wb") as file:
            session = subprocess.Popen(
                ["bash", "-c", "\n".join(lines)],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                start_new_session=True,
            )
        try:
            session.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"not done in {seconds:g} seconds:\n{output.read_text(errors='replace')}") from None
        finally:
            _end(session)
            self.transcript = output.read_text(errors="replace")


def _end(session: subprocess.Popen[bytes]) -> None:
    """Ends what the session left: it is told first, and killed if it does not hear."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(session.pid, number)
        except ProcessLookupError:
            return
        time.sleep(0.5)


def _problems(command: Command, output: str, code: int | None) -> Iterator[str]:
    where = f"line {command.line}: $ {command.words.strip()}"
    if code != command.code:
        yield f"{where}\n  ended with {code}, not {command.code}:\n{output}"
        return
    left = [_plain(line) for line in output.splitlines()]
    for expected in map(_plain, command.prints.splitlines()):
        if expected in ("", "…"):
            continue
        pattern = re.compile(".*".join(map(re.escape, expected.split("…"))))
        place = next((index for index, line in enumerate(left) if pattern.fullmatch(line)), None)
        if place is None:
            yield f"{where}\n  did not print (there, or in this order): {expected}\n{output}"
            return
        left = left[place + 1 :]


def _plain(line: str) -> str:
    """A line without what differs from one time to another."""
    for pattern, word in _VOLATILE:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())
