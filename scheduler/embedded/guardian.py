"""The process that keeps the embedded server: starts it, starts it again when it dies, ends it after its last user.

It is run as a script, on the standard library alone, so that it is up in milliseconds and stays small. It has a session
of its own, so that no Ctrl-C reaches it, and no parent that matters: whoever started it may be killed.

Who is there is said by locks on files (flock), for the kernel frees them however a process ends:

    users.lock     shared by every user; the guardian gets it whole when the last one is gone, and leaves with it
    guardian.lock  held by the guardian, who inherits it from its starter: so there is one
    server.lock    held by the guardian and inherited by the server: no second server touches the same data
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

ANSWER_SECONDS = 10.0  # how long a server may give no sign of life while it starts, or take to end
LARGEST_LOG = 1_000_000  # bytes; a longer log is set aside at the next start
READY = b"ready"


@dataclass(frozen=True)
class Folder:
    """Where everything of one embedded server lies."""

    path: Path

    @property
    def users_lock(self) -> Path:
        return self.path / "users.lock"

    @property
    def guardian_lock(self) -> Path:
        return self.path / "guardian.lock"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    @property
    def log(self) -> Path:
        return self.path / "server.log"

    @property
    def writer(self) -> Path:
        """Names the newest software that wrote here, for an older one cannot read it."""
        return self.path / "writer"

    @property
    def processes(self) -> Path:
        return self.path / "processes.json"


@dataclass(frozen=True)
class Processes:
    """What the guardian writes down about itself and its server."""

    guardian: int
    server: int
    socket: str


class CannotServeError(Exception):
    """The server cannot be brought up. The text goes to whoever asked for it."""


def try_lock(path: Path, operation: int) -> int | None:
    """The descriptor that holds the lock, or None where another process holds it. Closing it gives the lock back."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock."""
    if not path.exists():
        return True
    descriptor = try_lock(path, fcntl.LOCK_SH)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def ask(socket_path: str, command: str) -> str:
    """The first line of the server's answer; empty where there is none within a second."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1.0)
            connection.connect(socket_path)
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(256).decode(errors="replace").partition("\r\n")[0]
    except OSError:
        return ""


def read_processes(folder: Folder) -> Processes | None:
    """What the guardian last wrote down; true only while `guardian.lock` or `server.lock` is held."""
    try:
        return Processes(**json.loads(folder.processes.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


class Guardian:
    def __init__(self, folder: Folder, socket_path: str, binary: str) -> None:
        self._folder = folder
        self._socket = socket_path
        self._binary = binary
        self._server: subprocess.Popen[bytes] | None = None
        self._leaving = False

    def serve(self, when_ready: Callable[[], None]) -> None:
        """Returns when the server is to be no more. Raises CannotServeError where it cannot be brought up."""
        signal.signal(signal.SIGTERM, self._leave)
        lock = self._take_the_data()
        try:
            server = self._start(lock)
            when_ready()
            threading.Thread(target=self._wait_for_the_last_user, daemon=True).start()
            while self._end_of(server) != 0 and not self._leaving:
                time.sleep(0.5)
                server = self._start(lock)
        finally:  # without its guardian it would never leave
            if self._server is not None and self._server.poll() is None:
                self._server.terminate()
            self._folder.processes.unlink(missing_ok=True)

    def _take_the_data(self) -> int:
        """Ends a server that lost its guardian: only one with a guardian can leave by itself."""
        deadline = time.monotonic() + ANSWER_SECONDS
        orphan = read_processes(self._folder)
        asked = False
        while (lock := try_lock(self._folder.server_lock, fcntl.LOCK_EX)) is None:
            if time.monotonic() > deadline:
                raise CannotServeError(f"another server holds {self._folder.server_lock} and does not end: {orphan}")
            if not asked:
                ask(orphan.socket if orphan else self._socket, "SHUTDOWN")
                asked = True
            time.sleep(0.01)
        self._folder.processes.unlink(missing_ok=True)
        return lock

    def _start(self, lock: int) -> subprocess.Popen[bytes]:
        Path(self._socket).unlink(missing_ok=True)
        server = self._server = subprocess.Popen(
            [
                *(self._binary, "--port", "0", "--unixsocket", self._socket, "--unixsocketperm", "700"),
                *("--dir", str(self._folder.path), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
                *("--maxmemory-policy", "noeviction", "--daemonize", "no"),
            ],
            stdin=subprocess.DEVNULL,
            pass_fds=[lock],
        )
        processes = Processes(os.getpid(), server.pid, self._socket)
        draft = self._folder.processes.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(processes)))
        draft.replace(self._folder.processes)
        self._wait_until_ready(server)
        return server

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not (answer := ask(self._socket, "PING")).startswith("+PONG"):
            if server.poll() is not None:
                raise CannotServeError(f"{self._binary} ended at once:\n{_tail(self._folder.log)}")
            if answer.startswith("-LOADING"):
                deadline = time.monotonic() + ANSWER_SECONDS
            if time.monotonic() > deadline:
                server.kill()
                raise CannotServeError(
                    f"{self._binary} did not answer within {ANSWER_SECONDS:g} s, see {self._folder.log}"
                )
            time.sleep(0.005)

    def _end_of(self, server: subprocess.Popen[bytes]) -> int:
        if self._leaving:  # the signal came while there was no server to tell
            server.terminate()
        return server.wait()

    def _wait_for_the_last_user(self) -> None:
        descriptor = os.open(self._folder.users_lock, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Held until this process has ended: a newcomer waits, and then finds no server rather than a dying one.
        os.kill(os.getpid(), signal.SIGTERM)

    def _leave(self, _signal: int, _frame: object) -> None:
        self._leaving = True
        if self._server is not None:
            self._server.terminate()
            last_resort = threading.Timer(ANSWER_SECONDS, self._server.kill)
            last_resort.daemon = True
            last_resort.start()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-5:])


def _detach(folder: Folder) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if folder.log.exists() and folder.log.stat().st_size > LARGEST_LOG:
        folder.log.replace(folder.log.with_suffix(".log.old"))
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(nothing)


def main(path: str, socket_path: str, binary: str) -> None:
    """Returns once the server is ready, or exits with the reason why not; the guardian itself lives on in a child."""
    folder = Folder(Path(path))
    reader, writer = os.pipe()
    if os.fork() != 0:
        os.close(writer)
        with os.fdopen(reader, "rb") as reports:
            report = reports.read()
        if report != READY:
            sys.exit(report.decode() or f"the guardian of the server ended early, see {folder.log}")
        return
    os.close(reader)
    _detach(folder)
    starter = os.fdopen(writer, "wb", buffering=0)

    def tell_starter(report: bytes) -> None:
        with contextlib.suppress(OSError), starter:  # which may be gone
            starter.write(report)

    try:
        Guardian(folder, socket_path, binary).serve(when_ready=lambda: tell_starter(READY))
    except CannotServeError as reason:
        sys.stderr.write(f"{reason}\n")
        if not starter.closed:
            tell_starter(str(reason).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
