"""The container files, read and run as plain processes: no Docker engine is needed."""

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import redis
import yaml

from tests.support.model_server import ModelServer, chat_reply, http_answer
from tests.support.servers import programs
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]

Service = Mapping[str, Any]


@pytest.fixture(scope="module")
def services() -> Mapping[str, Service]:
    return cast("Mapping[str, Service]", yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"])


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text()


def test_there_is_a_redis_a_scheduler_and_workers(services: Mapping[str, Service]) -> None:
    assert set(services) == {"redis", "scheduler", "worker"}


def test_workers_can_be_scaled(services: Mapping[str, Service]) -> None:
    """`--scale worker=N` is refused where a name or a port of the host is fixed."""
    assert not {"container_name", "hostname", "ports"} & set(services["worker"])


@pytest.mark.parametrize("name", ["worker", "scheduler"])
def test_ours_use_the_redis_of_this_file_once_it_is_healthy(services: Mapping[str, Service], name: str) -> None:
    service = services[name]

    assert service["environment"]["PAWL_REDIS_URL"] == "redis://redis:6379/0"
    assert service["depends_on"] == {"redis": {"condition": "service_healthy"}}


@pytest.mark.parametrize("name", ["redis", "worker", "scheduler"])
def test_every_service_says_how_it_is_found_healthy_and_comes_back(services: Mapping[str, Service], name: str) -> None:
    assert services[name]["healthcheck"]["test"][0] == "CMD"
    assert services[name]["restart"] == "unless-stopped"


def test_a_worker_gets_more_time_to_stop_than_its_drain_takes(services: Mapping[str, Service]) -> None:
    command = services["worker"]["command"]
    grace = float(command[command.index("--grace") + 1])

    assert float(services["worker"]["stop_grace_period"].removesuffix("s")) > grace


def test_the_module_that_workers_serve_is_in_the_folder_they_get(services: Mapping[str, Service]) -> None:
    source, target, _ = services["worker"]["volumes"][0].split(":")
    module = services["worker"]["command"][1]
    names = [node.value.func for node in ast.walk(ast.parse((ROOT / source / f"{module}.py").read_text()))
             if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]  # fmt: skip

    assert target == "/app"
    assert "Agent" in {name.id for name in names if isinstance(name, ast.Name)}


@pytest.fixture
def redis_of_compose(services: Mapping[str, Service], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its command as a plain process, on a socket instead of its port."""
    folder = tmp_path_factory.mktemp("redis")
    known = programs()
    program = known.get("redis", known["valkey"])
    assert services["redis"]["command"][0] == "redis-server"
    options = [*services["redis"]["command"][1:], "--port", "0", "--unixsocket", "redis.sock"]
    with subprocess.Popen([program, *options], cwd=folder, stdout=subprocess.DEVNULL) as process:
        wait_until("its socket", (folder / "redis.sock").exists)
        yield f"unix://{folder}/redis.sock"
        process.terminate()


class Containers:
    """The services of ours as plain processes: the image's entry point and environment, the service's command."""

    def __init__(self, services: Mapping[str, Service], dockerfile: str, environment: Mapping[str, str]) -> None:
        self._services = services
        self._entry = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', dockerfile, re.MULTILINE)
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self._program(), *self._services[name]["command"]],
            cwd=ROOT / "examples",
            env=self._environment_of(name),
            stdout=subprocess.DEVNULL,
        )
        self._running.append(process)
        return process

    def is_healthy(self, name: str) -> bool:
        test = self._services[name]["healthcheck"]["test"]
        assert test[1:2] == self._entry
        checked = subprocess.run(
            [*self._program(), *test[2:]], env=self._environment_of(name), capture_output=True, check=False
        )
        return checked.returncode == 0

    def pawl(self, *words: str) -> str:
        answer = subprocess.run(
            [*self._program(), *words], env=self._environment_of("worker"), capture_output=True, text=True, check=True
        )
        return answer.stdout

    def kill_all(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def _program(self) -> list[str]:
        return [str(Path(sys.executable).with_name(word)) for word in self._entry]

    def _environment_of(self, name: str) -> dict[str, str]:
        own = {key: value for key, value in self._services[name]["environment"].items() if value is not None}
        return {**os.environ, "PAWL_EMBEDDED": "never", **own, **self._environment}


@pytest.fixture
def containers(services: Mapping[str, Service], dockerfile: str, redis_of_compose: str) -> Iterator[Containers]:
    answer = http_answer(chat_reply({"content": "210"}, usage={"prompt_tokens": 20, "completion_tokens": 2}))
    with ModelServer(answer) as model_server:
        environment = {
            "PAWL_REDIS_URL": redis_of_compose,
            "OPENAI_BASE_URL": model_server.url,
            "OPENAI_API_KEY": "a key for the test",
        }
        opened = Containers(services, dockerfile, environment)
        yield opened
        opened.kill_all()


def test_two_workers_and_a_scheduler_do_a_run_and_drain_when_they_are_stopped(containers: Containers) -> None:
    processes = [containers.start(name) for name in ("worker", "worker", "scheduler")]
    wait_until("both workers", lambda: len(containers.pawl("workers", "--json").splitlines()) == 2, seconds=30)

    assert containers.pawl("submit", "calculator", "What is 200 and 10?", "--wait").strip() == "210"
    assert containers.is_healthy("worker")
    assert containers.is_healthy("scheduler")

    for process in processes:
        process.send_signal(signal.SIGTERM)
    assert [process.wait(timeout=30) for process in processes] == [0, 0, 0]


def test_its_redis_keeps_what_is_written_and_evicts_nothing(redis_of_compose: str) -> None:
    with redis.Redis.from_url(redis_of_compose, decode_responses=True) as client:  # pyright: ignore[reportUnknownMemberType]
        for name, value in (("appendonly", "yes"), ("appendfsync", "everysec"), ("maxmemory-policy", "noeviction")):
            assert client.execute_command("CONFIG", "GET", name) == {name: value}  # pyright: ignore[reportUnknownMemberType]


def test_the_image_never_starts_a_server_of_its_own_and_is_not_run_by_root(dockerfile: str) -> None:
    assert "PAWL_EMBEDDED=never" in dockerfile
    assert re.search(r"^USER (?!root|0$)\w+$", dockerfile, re.MULTILINE)


def test_signals_reach_pawl(dockerfile: str) -> None:
    """A form with a shell would keep SIGTERM for itself, and no worker would drain."""
    assert re.search(r'^ENTRYPOINT \["pawl"\]$', dockerfile, re.MULTILINE)


def test_all_that_the_image_copies_is_there_and_sent_to_the_engine(dockerfile: str) -> None:
    copies = re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE)
    sources = {source for line in copies for source in line.split()}
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}

    assert sources == sent
    assert all((ROOT / source).exists() for source in sources)
