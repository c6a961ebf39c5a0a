"""The default Redis: a private, real server for the user's data folder, shared by its users, gone with the last.

`acquire` gives the Redis of a deployment: the one that `PAWL_REDIS_URL` names, else this one. How the server lives and
ends is told in `guardian.py`; which program it is, in `software.py`.
"""

import contextlib
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agent.errors import ConfigurationError, StoreUnavailable
from scheduler.embedded import guardian
from scheduler.embedded.guardian import ANSWER_SECONDS, Folder, ask, is_free, read_processes, try_lock
from scheduler.embedded.software import Software, choose_program
from scheduler.settings import Settings

LONGEST_SOCKET_PATH = 103  # bytes that fit into a socket's address on every system, beside the closing zero

FORBIDDEN = (
    "PAWL_REDIS_URL is not set, and PAWL_EMBEDDED=never forbids to start a private server: "
    "set PAWL_REDIS_URL to the Redis that holds the runs."
)


class Server:
    """A Redis that may be used until `close`; also a context manager.

    Attributes:
        url: Where it is, for redis-py and for RQ's tools.
    """

    def __init__(self, url: str, users_lock: int | None = None) -> None:
        self.url = url
        self._users_lock = users_lock

    def close(self) -> None:
        """Gives it up; an embedded server leaves with its last user. The end of the process does the same."""
        if self._users_lock is not None:
            os.close(self._users_lock)
            self._users_lock = None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class EmbeddedServer:
    """An embedded server that runs; `software` is such as "Valkey 9.1.2"."""

    url: str
    process_id: int
    software: str
    folder: Path


def acquire(settings: Settings) -> Server:
    """The Redis of this deployment. Where none is named, a private one is used, and started if need be; this may block.

    Raises:
        ConfigurationError: There is no program for it, it is forbidden, or its folder cannot be used.
        StoreUnavailable: The private server does not start; the message holds the end of its log.
    """
    if settings.redis_url is not None:
        return Server(settings.redis_url)
    if settings.embedded == "never":
        raise ConfigurationError(FORBIDDEN)
    folder = _folder(settings)
    try:
        _make_private(folder.path)
    except OSError as error:
        raise ConfigurationError(
            f"PAWL_DATA_DIR: {folder.path} cannot be used for the private server: {error}"
        ) from error
    users_lock = _join_the_users(folder)
    try:
        return Server(_url(_running_socket(folder)), users_lock)
    except BaseException:
        os.close(users_lock)
        raise


def status(settings: Settings) -> EmbeddedServer | None:
    """The embedded server of the data folder; None where none runs."""
    folder = _folder(settings)
    if is_free(folder.server_lock) or (processes := read_processes(folder)) is None:
        return None
    return EmbeddedServer(_url(processes.socket), processes.server, str(_writer(folder)), folder.path)


def stop(settings: Settings) -> bool:
    """Ends the embedded server of the data folder, whoever uses it; the runs stay on disk. False where none runs.

    Raises:
        StoreUnavailable: It does not end in time.
    """
    folder = _folder(settings)
    if is_free(folder.server_lock) or (processes := read_processes(folder)) is None:
        return False
    if is_free(folder.guardian_lock):
        ask(processes.socket, "SHUTDOWN")
    else:
        with contextlib.suppress(ProcessLookupError):
            os.kill(processes.guardian, signal.SIGTERM)
    deadline = time.monotonic() + 2 * ANSWER_SECONDS
    while not (is_free(folder.server_lock) and is_free(folder.guardian_lock)):
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"The server in {folder.path} (process {processes.server}) does not end.")
        time.sleep(0.01)
    return True


def _folder(settings: Settings) -> Folder:
    return Folder(settings.data_dir / "redis")


def _make_private(path: Path) -> None:
    """Makes the folder if need be. Raises OSError unless it is a folder that only this user can enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to somebody else")
    if found.st_mode & 0o077:
        path.chmod(0o700)


def _join_the_users(folder: Folder) -> int:
    """A share in the users' lock, for which a server that is leaving makes us wait."""
    deadline = time.monotonic() + 2 * ANSWER_SECONDS
    while (users_lock := try_lock(folder.users_lock, fcntl.LOCK_SH)) is None:
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"The server in {folder.path} is leaving and does not end, see {folder.log}")
        time.sleep(0.01)
    return users_lock


def _running_socket(folder: Folder) -> str:
    """The socket of the server, once it answers. Whoever gets the guardian's lock starts it, all others wait."""
    deadline = time.monotonic() + 2 * ANSWER_SECONDS
    while True:
        guardian_lock = try_lock(folder.guardian_lock, fcntl.LOCK_EX)
        if guardian_lock is not None:
            try:
                _start(folder, guardian_lock)
            finally:
                os.close(guardian_lock)
        processes = read_processes(folder)
        answer = ask(processes.socket, "PING") if processes is not None else ""
        if processes is not None and answer.startswith("+PONG"):
            return processes.socket
        if answer.startswith("-LOADING"):
            deadline = time.monotonic() + 2 * ANSWER_SECONDS
        if time.monotonic() > deadline:
            raise StoreUnavailable(f"The server in {folder.path} does not answer, see {folder.log}")
        time.sleep(0.01)


def _start(folder: Folder, guardian_lock: int) -> None:
    """Starts the guardian with its server and returns when that is ready. The guardian inherits its lock."""
    program = choose_program(_writer(folder), folder.path)
    # Written before the server can write: if all ends here, the data is older than the note says, never newer.
    folder.writer.write_text(f"{program.software}\n")
    socket_path = _socket_path(folder)
    command = (sys.executable, "-I", "-S", guardian.__file__, str(folder.path), socket_path, program.path)
    started = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        pass_fds=[guardian_lock],
        start_new_session=True,
    )
    if started.returncode != 0:
        raise StoreUnavailable(f"The private server in {folder.path} did not start: {started.stderr.strip()}")
    sys.stderr.write(
        f"pawl: no Redis was named (PAWL_REDIS_URL), so a private {program.software} was started for {folder.path}; "
        "it leaves with its last user, and the runs stay on disk.\n"
    )


def _writer(folder: Folder) -> Software | None:
    """The newest software that wrote into the folder."""
    try:
        return Software.parse(folder.writer.read_text())
    except FileNotFoundError:
        return None


def _socket_path(folder: Folder) -> str:
    """In the folder, or where that is too deep for a socket's address, in a private folder among the temporary ones."""
    path = folder.path / "redis.sock"
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        name = hashlib.sha256(os.fsencode(folder.path)).hexdigest()[:16]
        parent = Path(tempfile.gettempdir()) / f"pawl-{os.getuid()}-{name}"
        _make_private(parent)
        path = parent / "redis.sock"
    return str(path)


def _url(socket_path: str) -> str:
    return f"unix://{quote(socket_path)}"
