"""The embedded server with real processes: PROTOCOL B15."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from agent.errors import ConfigurationError, StoreUnavailable
from scheduler import embedded
from scheduler.embedded.guardian import Folder, Processes, is_free, read_processes
from scheduler.settings import Settings

USER = """
import sys
from scheduler.embedded import acquire
from scheduler.settings import Settings
with acquire(Settings.from_environment()) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


class User:
    """A process that uses the embedded server until it is told to leave."""

    def __init__(self, settings: Settings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", USER],
            env={**os.environ, "PAWL_DATA_DIR": str(settings.data_dir), "PAWL_REDIS_URL": "", "PAWL_EMBEDDED": "auto"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def url(self) -> str:
        """Waits until the user has its server."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def leave(self) -> str:
        """Ends the user; what it wrote to stderr."""
        return self._process.communicate(timeout=30)[1]

    def signal(self, number: signal.Signals) -> None:
        """As a terminal does it: to the whole process group."""
        os.killpg(self._process.pid, number)
        self._process.communicate(timeout=30)

    def kill_if_alive(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)


Enter = Callable[[], User]


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Of a data folder of this test's own; a server that a failed test left there is ended."""
    own = Settings(data_dir=tmp_path / "data")
    yield own
    embedded.stop(own)


@pytest.fixture
def enter(settings: Settings) -> Iterator[Enter]:
    users: list[User] = []

    def enter_one() -> User:
        users.append(User(settings))
        return users[-1]

    yield enter_one
    for user in users:
        user.kill_if_alive()
    wait_until_gone(settings)


def wait_until_gone(settings: Settings) -> None:
    wait_for("the server to leave", lambda: embedded.status(settings) is None)


def kill_guardian(settings: Settings) -> None:
    folder = Folder(settings.data_dir / "redis")
    os.kill(processes(settings).guardian, signal.SIGKILL)
    wait_for("the end of the guardian", lambda: is_free(folder.guardian_lock))


def wait_until_dead(process_id: int) -> None:
    wait_for(f"process {process_id} to end", lambda: not is_alive(process_id))


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def command(url: str, *words: str) -> object:
    with redis.Redis.from_url(url, decode_responses=True, socket_timeout=5) as client:  # pyright: ignore[reportUnknownMemberType]
        return client.execute_command(*words)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def processes(settings: Settings) -> Processes:
    found = read_processes(Folder(settings.data_dir / "redis"))
    assert found is not None
    return found


def is_alive(process_id: int) -> bool:
    """Zombies count as gone: an orphan's is reaped by whatever adopted it."""
    try:
        os.kill(process_id, 0)
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it has just ended, or this system has no /proc
        return not Path("/proc/self").exists()
    return state != "Z"


def test_processes_that_start_at_once_share_one_server(enter: Enter, settings: Settings) -> None:
    users = [enter() for _ in range(6)]
    urls = [user.url() for user in users]

    assert set(urls) == {f"unix://{settings.data_dir}/redis/redis.sock"}
    assert command(urls[0], "PING")
    assert is_alive(processes(settings).server)
    assert sum(user.leave().count("a private Valkey") for user in users) == 1


def test_it_keeps_what_is_written_and_evicts_nothing(settings: Settings) -> None:
    with embedded.acquire(settings) as server:
        for name, value in (("appendonly", "yes"), ("appendfsync", "everysec"), ("maxmemory-policy", "noeviction")):
            assert command(server.url, "CONFIG", "GET", name) == {name: value}
        assert command(server.url, "CONFIG", "GET", "port") == {"port": "0"}
        command(server.url, "SET", "run", "17")
    wait_until_gone(settings)

    with embedded.acquire(settings) as server:
        assert command(server.url, "GET", "run") == "17"
    wait_until_gone(settings)


def test_a_second_user_waits_for_no_start(settings: Settings) -> None:
    """Whoever comes second uses what is there: a fraction of the time that the first start took."""
    started = time.monotonic()
    with embedded.acquire(settings):
        first = time.monotonic() - started
        started = time.monotonic()
        with embedded.acquire(settings):
            second = time.monotonic() - started
    wait_until_gone(settings)

    assert second < first


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_its_starter_takes_it_from_nobody(enter: Enter, settings: Settings, number: signal.Signals) -> None:
    starter, other = enter(), None
    url = starter.url()
    other = enter()
    other.url()
    server = processes(settings).server

    starter.signal(number)

    assert command(url, "PING")
    assert processes(settings).server == server
    assert is_alive(server)
    other.leave()


def test_it_leaves_with_its_last_user_even_if_that_is_killed(enter: Enter, settings: Settings) -> None:
    first, last = enter(), enter()
    first.url()
    last.url()
    before = processes(settings)
    first.leave()
    assert embedded.status(settings) is not None

    last.signal(signal.SIGKILL)

    wait_until_gone(settings)
    wait_until_dead(before.server)
    wait_until_dead(before.guardian)


def test_a_newcomer_while_it_leaves_gets_a_fresh_one(enter: Enter, settings: Settings) -> None:
    for number in range(5):
        user = enter()
        assert command(user.url(), "INCR", "visits") == number + 1
        user.leave()


def test_a_server_that_dies_is_started_again_for_its_users(settings: Settings) -> None:
    with embedded.acquire(settings) as server:
        command(server.url, "SET", "run", "17")
        dead = processes(settings).server
        os.kill(dead, signal.SIGKILL)

        wait_for(
            "another server", lambda: (found := embedded.status(settings)) is not None and found.process_id != dead
        )
        with embedded.acquire(settings) as again:
            assert again.url == server.url
            assert command(again.url, "GET", "run") == "17"
    wait_until_gone(settings)


def test_a_server_without_its_guardian_gets_a_new_one_and_still_leaves(settings: Settings) -> None:
    with embedded.acquire(settings) as server:
        command(server.url, "SET", "run", "17")
        before = processes(settings)
        kill_guardian(settings)
    assert is_alive(before.server)

    with embedded.acquire(settings) as server:
        assert command(server.url, "GET", "run") == "17"
        assert processes(settings).server != before.server
        wait_until_dead(before.server)
    wait_until_gone(settings)


def test_stop_ends_it_though_it_is_in_use_and_the_next_user_starts_it_again(settings: Settings) -> None:
    assert embedded.stop(settings) is False
    with embedded.acquire(settings) as server:
        command(server.url, "SET", "run", "17")
        running = embedded.status(settings)
        assert running is not None
        assert running.software.startswith("Valkey ")

        assert embedded.stop(settings) is True
        assert embedded.status(settings) is None
        wait_until_dead(running.process_id)

        with embedded.acquire(settings) as again:
            assert command(again.url, "GET", "run") == "17"
    wait_until_gone(settings)


def test_stop_ends_a_server_that_lost_its_guardian(settings: Settings) -> None:
    with embedded.acquire(settings):
        before = processes(settings)
        kill_guardian(settings)

    assert embedded.stop(settings) is True
    wait_until_dead(before.server)


def test_never_forbids_it_and_a_url_makes_it_needless(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="PAWL_EMBEDDED=never"):
        embedded.acquire(Settings(data_dir=tmp_path, embedded="never"))
    with embedded.acquire(Settings(data_dir=tmp_path, embedded="never", redis_url="redis://host:1")) as server:
        assert server.url == "redis://host:1"
    assert list(tmp_path.iterdir()) == []


def test_data_of_a_newer_server_is_refused_and_left_alone(settings: Settings) -> None:
    folder = settings.data_dir / "redis"
    folder.mkdir(parents=True)
    (folder / "writer").write_text("Valkey 99.0.0\n")

    with pytest.raises(ConfigurationError, match=r"written by Valkey 99\.0\.0"):
        embedded.acquire(settings)

    assert (folder / "writer").read_text() == "Valkey 99.0.0\n"
    assert embedded.status(settings) is None


def test_data_that_the_server_cannot_read_is_said_with_the_end_of_its_log(settings: Settings) -> None:
    data = settings.data_dir / "redis" / "appendonlydir"
    data.mkdir(parents=True)
    (data / "appendonly.aof.manifest").write_text("file appendonly.aof.1.base.rdb seq 1 type b\n")
    (data / "appendonly.aof.1.base.rdb").write_text("not an append-only file")

    with pytest.raises(StoreUnavailable, match=r"(?i)bad file format|wrong signature"):
        embedded.acquire(settings)

    assert embedded.status(settings) is None


def test_a_folder_too_deep_for_a_socket_gets_a_private_one_elsewhere(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / ("deep" * 30))
    with embedded.acquire(settings) as server:
        assert command(server.url, "PING")
        socket = Path(processes(settings).socket)
        assert len(os.fsencode(socket)) < 104
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    wait_until_gone(settings)


def test_a_folder_with_a_space_and_an_umlaut_works(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "Käthe's data")
    with embedded.acquire(settings) as server:
        assert command(server.url, "PING")
    wait_until_gone(settings)


def test_nobody_else_can_enter_its_folder(settings: Settings) -> None:
    (settings.data_dir / "redis").mkdir(parents=True, mode=0o755)
    with embedded.acquire(settings):
        assert (settings.data_dir / "redis").stat().st_mode & 0o777 == 0o700
    wait_until_gone(settings)


def test_a_folder_that_cannot_be_made_is_named_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"PAWL_DATA_DIR: .*/file/redis"):
        embedded.acquire(Settings(data_dir=tmp_path / "file"))
