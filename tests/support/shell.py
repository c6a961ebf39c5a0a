"""`pawl` in a folder with a user's files, as processes of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

PAWL = Path(sys.executable).with_name("pawl")


class Shell:
    """Runs `pawl` in a folder with a user's files."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PAWL_REDIS_URL": url, "PAWL_LOG_FORMAT": "json", "COLUMNS": "200"}
        self._started: list[subprocess.Popen[str]] = []

    def run(
        self,
        *arguments: str,
        code: int = 0,
        environment: Mapping[str, str] = MappingProxyType({}),
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        ended = subprocess.run(
            [PAWL, *arguments], cwd=self.folder, env={**self.environment, **environment}, capture_output=True, text=True,
            input=stdin, timeout=60, check=False,
        )  # fmt: skip
        assert ended.returncode == code, (ended.stdout, ended.stderr)
        return ended

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command."""
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(
                [PAWL, *arguments], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self._started.append(process)
        return process

    def until(self, text: str) -> None:
        """Waits until the log says so."""
        deadline = time.monotonic() + 20
        while text not in (self.folder / "log").read_text():
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()
