"""What the documents say in tables is what the code says, and nothing is left out."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import cast, get_args

import click
import pytest
import structlog
import typer

from agent import errors
from agent.budget import Budget
from agent.dialects import DIALECTS
from agent.errors import PawlError
from agent.events import TYPES, FailureReason
from agent.report import StepReport
from agent.tools import OnUnknown, ToolOptions
from scheduler.keys import DERIVED, FAMILY, OTHERS, SHARED, Life
from scheduler.lifecycle import TRANSITIONS, Status
from scheduler.policy import Policy
from scheduler.scripting import LUA
from scheduler.sessions import OnBusy
from scheduler.settings import Settings
from tests.support.documents import DOCUMENTS, ROOT, blocks_of, rows_of
from worker.claims import Claim
from worker.cli.app import app
from worker.steplog import StepLog

DOCS = ROOT / "docs"
CONCEPTS, OPERATIONS, EXTENDING, ARCHITECTURE, GUARANTEES = (
    (DOCS / f"{name}.md").read_text() for name in ("concepts", "operations", "extending", "architecture", "guarantees")
)
EVERYTHING = "\n".join(path.read_text() for path in DOCUMENTS)


def words(rows: list[list[str]], column: int = 0) -> list[str]:
    """The words of a column; a cell may hold several with commas."""
    return [word for row in rows for word in row[column].split(", ")]


# ---- the command line -----------------------------------------------------------------------------------------------


def verbs(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield from verbs(command, f"{name} ") if isinstance(command, click.Group) else [(before + name, command)]


PAWL = cast("click.Group", typer.main.get_command(app))
VERBS = dict(verbs(PAWL))
SPANS = [
    *re.findall(r"(?<!`)`((?:\./dev )?pawl [^`]+)`", EVERYTHING),
    *(
        line
        for path in DOCUMENTS
        for block in blocks_of(path.read_text())
        if block.language in ("console", "sh")
        for line in re.findall(r"\bpawl [a-z][^|;&)<>\n]*", block.body)
        if not line.startswith("pawl: ")
    ),
]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_explained(verb: str) -> None:
    assert re.search(rf"`pawl {verb}\b", OPERATIONS)


def test_every_command_that_is_named_is_there() -> None:
    wrong: list[str] = []
    for span in SPANS:
        given = shlex.split(span.removeprefix("./dev "), comments=True)[1:]
        verb = next((name for name in (" ".join(given[:2]), given[0]) if name in VERBS), None)
        if verb is None:
            wrong.append(span)
            continue
        known = {option for parameter in VERBS[verb].params for option in parameter.opts} | {"--help", "-h"}
        wrong += [span for word in given if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]

    assert [span for span in wrong if span != "pawl --version"] == []


def test_docker_compose_is_asked_for_services_that_are_there() -> None:
    services = set(re.findall(r"^  (\w+):$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE))
    named = re.findall(r"docker compose (?:exec|stop|logs)(?: --\w+)* (\w+)|--scale (\w+)=", EVERYTHING)

    assert {one or other for one, other in named} <= services


def test_every_command_of_the_script_is_there() -> None:
    script = (ROOT / "dev").read_text()

    for command in set(re.findall(r"\./dev (\w+)", EVERYTHING)):
        assert re.search(rf"^    (\w+ \| )*{command}( \||\))", script, re.MULTILINE), command


def test_what_is_installed_is_named_as_in_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"pip install (?:-e )?'([\w.-]+)\[(\w+)\]'", EVERYTHING)

    assert {name for name, _ in named} <= {project["name"], "."}
    assert {extra for _, extra in named} == {"embedded"} <= set(project["optional-dependencies"])


# ---- settings and log -----------------------------------------------------------------------------------------------


def test_every_setting_is_in_the_table_with_its_default() -> None:
    told = {row[0]: row[1] for row in rows_of(OPERATIONS, "Settings")}
    defaults = Settings()

    assert set(told) == {f"PAWL_{field.name.upper()}" for field in fields(Settings)}
    for field in fields(Settings):
        if field.name in ("redis_url", "data_dir"):
            continue  # none, and a folder of the user's
        value: object = getattr(defaults, field.name)
        text = f"{value:g}" if isinstance(value, float) else str(value).lower()
        assert told[f"PAWL_{field.name.upper()}"] == text


def test_every_variable_that_is_named_is_there() -> None:
    known = {f"PAWL_{field.name.upper()}" for field in fields(Settings)}

    assert set(re.findall(r"\bPAWL_[A-Z_]+\b", EVERYTHING)) - known == set()


def test_the_line_of_a_step_has_the_fields_of_the_table() -> None:
    claimed = SimpleNamespace(session="", tenant="", agent="", token="")
    claim = cast(Claim, SimpleNamespace(run="", claimed=claimed))
    with structlog.testing.capture_logs() as lines:
        StepLog(claim, "worker").step(StepReport(step=1))

    assert set(words(rows_of(OPERATIONS, "The log"))) == set(lines[0]) - {"event", "log_level"}


def test_the_events_of_the_log_that_are_named_are_logged() -> None:
    code = "\n".join(path.read_text() for package in ("scheduler", "worker") for path in (ROOT / package).rglob("*.py"))
    section = OPERATIONS.partition("Lines that ask for attention:")[2]

    for event in words(rows_of(" X\n" + section, "X")):
        assert re.search(rf'\.(debug|info|warning|error|exception)\(\s*"{event}"', code), event


# ---- words ----------------------------------------------------------------------------------------------------------


def test_every_public_error_is_explained() -> None:
    known = {
        name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, PawlError)
    } - {"PawlError"}

    assert set(words(rows_of(CONCEPTS, "Errors"))) == known


def test_every_reason_of_a_failure_is_explained() -> None:
    section = CONCEPTS.partition("Reasons of a failure:")[2]

    assert set(words(rows_of(" X\n" + section, "X"))) == set(get_args(FailureReason))


def test_every_event_is_explained() -> None:
    assert set(words(rows_of(CONCEPTS, "Events and the checkpoint"))) == set(TYPES)


def test_every_limit_of_a_budget_is_explained() -> None:
    assert set(words(rows_of(CONCEPTS, "Budget"))) == set(Budget.model_fields)


def test_every_dialect_is_explained() -> None:
    assert words(rows_of(CONCEPTS, "Dialect and environment")) == list(DIALECTS)


def test_every_word_for_a_busy_session_is_explained() -> None:
    assert words(rows_of(CONCEPTS, "Session, tenant, queue")) == list(OnBusy)


def test_every_status_is_in_the_diagram() -> None:
    diagram = CONCEPTS.partition("## Status")[2].partition("\n## ")[0]

    assert [status for status in Status if status not in diagram] == []


def test_every_option_of_a_tool_is_explained() -> None:
    told = set(words(rows_of(EXTENDING, "Tools")))

    assert told == {*ToolOptions.__annotations__, "name", "description", "tags", "parameters_override"}
    assert all(f"`{choice}`" in EXTENDING for choice in get_args(OnUnknown))


def test_the_limits_are_those_of_the_policy() -> None:
    told = {row[0]: row[1] for row in rows_of(GUARANTEES, "Limits")}
    policy = Policy()

    assert told["task"] == f"{policy.max_task_bytes // 1024} KiB"
    assert told["checkpoint"] == f"{policy.max_state_bytes // 1024} KiB"
    assert policy.max_event_bytes == 1024 * 1024
    assert told["things sent to a run that its worker has not yet read"] == f"{policy.max_inbox:,}"
    assert told["things sent to a run in all"] == f"{policy.max_signals:,}"
    assert told["tool calls in one step"] == f"{policy.max_calls:,}"
    assert told["runs that stand behind the active one of a session"] == f"{policy.max_behind:,}"


# ---- the record -----------------------------------------------------------------------------------------------------


def test_every_key_is_in_the_table_with_its_life() -> None:
    known = dict.fromkeys(FAMILY, Life.RUN) | {
        key: life for keys in (SHARED, DERIVED, OTHERS) for key, (life, _) in keys.items()
    }

    assert {key: row[1] for row in rows_of(ARCHITECTURE, "Keys") for key in row[0].split(", ")} == known


def test_every_script_is_in_the_table_with_its_transitions() -> None:
    told = {row[0]: row[1] for row in rows_of(ARCHITECTURE, "Scripts")}

    assert set(told) == {path.stem for path in LUA.glob("*.lua")} - {"prelude", "records", "sessions"}
    for script, transitions in told.items():
        made = {
            " → ".join(filter(None, (source, target))) if source else f"→ {target}"
            for (source, target), scripts in TRANSITIONS.items()
            if script in scripts
        }
        assert set(transitions.split("; ")) - {"none"} == made, script


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:agent|scheduler|worker|tests|examples|docs|benchmarks)/[\w./]*)`", EVERYTHING)

    assert [name for name in named if not (ROOT / name).exists()] == []


def paths_of_links(text: str) -> list[Path]:
    return [Path(target) for target in re.findall(r"\]\(([^)#:]+)\)", text)]


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {(ROOT / path).resolve() for path in paths_of_links((ROOT / "README.md").read_text())}

    assert [path.name for path in DOCUMENTS[1:] if path not in linked] == []
