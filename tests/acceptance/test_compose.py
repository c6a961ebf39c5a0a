"""The container files, read and run as plain processes: no Docker engine is needed."""

import ast
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import redis
import yaml

from tests.support.servers import programs

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
        deadline = time.monotonic() + 10
        while not (folder / "redis.sock").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"unix://{folder}/redis.sock"
        process.terminate()


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
