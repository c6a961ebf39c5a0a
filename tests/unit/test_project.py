"""What a fresh clone rests on: one set of versions, one script, two commands."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def plain(name: str) -> str:
    """A package's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_dependency_has_its_version_written_down() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {plain(re.split(r"[\[<>=~! ]", line, maxsplit=1)[0]) for line in wanted}

    assert names - {plain(name) for name in constraints()} == set()


def test_the_versions_are_names_and_versions_and_no_more() -> None:
    assert all(re.fullmatch(r"[\w.-]+", f"{name}{version}") for name, version in constraints().items())


@pytest.mark.parametrize("command", ["./dev demo", "./dev test"])
def test_the_readme_opens_with_the_two_commands(command: str) -> None:
    opening = "\n".join((ROOT / "README.md").read_text().splitlines()[:15])

    assert f"    {command} " in opening


def test_the_script_knows_the_commands_that_it_explains() -> None:
    explained = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^\./dev (\w+)", explained, re.MULTILINE))
    script = (ROOT / "dev").read_text()

    assert commands >= {"demo", "test", "check"}
    assert [name for name in commands if not re.search(rf"^    {name}\)", script, re.MULTILINE)] == []


def test_the_script_is_refused_no_posix_shell() -> None:
    subprocess.run(["sh", "-n", ROOT / "dev"], check=True)
    assert (ROOT / "dev").read_text().startswith("#!/bin/sh\n")
    assert not re.search(r"\[\[|\bfunction \w|\blocal \b|<<<", (ROOT / "dev").read_text())


def test_continuous_integration_calls_the_command_of_the_readme() -> None:
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("exec ./dev test")
