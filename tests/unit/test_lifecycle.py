"""The table of transitions, and the scripts that make them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler.lifecycle import ENDED, LIVE, RESUMABLE, TRANSITIONS, Status, Transition, is_allowed
from scheduler.scripting import LUA
from scheduler.sessions import OVERTAKES, OnBusy

INCLUDED = {"prelude", "records", "sessions"}
SCRIPTS = sorted(path for path in LUA.glob("*.lua") if path.stem not in INCLUDED)
PRELUDE = "".join((LUA / f"{name}.lua").read_text() for name in sorted(INCLUDED))


def moves(text: str) -> set[Transition]:
    """The transitions that a script says at its head that it makes."""
    header = re.search(r"^-- Moves: ((?:.+\n)(?:--   .+\n)*)", text, re.MULTILINE)
    if header is None or header[1].startswith("none"):
        return set()
    words = re.sub(r"\(.*?\)", "", header[1].replace("\n--  ", " "))
    pairs = [pair.split("->") for pair in re.split(r"[,;]", words)]
    return {(Status(source.strip()) if source.strip() else None, Status(target.strip())) for source, target in pairs}


def table(name: str, text: str) -> set[str]:
    """The words of a table of Lua such as `local ENDED = { completed = true, ... }`."""
    found = re.search(rf"^local {name} = {{(.*?)}}", text, re.MULTILINE | re.DOTALL)
    assert found, f"the prelude has no table {name}"
    return set(re.findall(r"(\w+) = true", found[1]))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_a_script_makes_the_transitions_of_the_table(path: Path) -> None:
    expected = {transition for transition, scripts in TRANSITIONS.items() if path.stem in scripts}

    assert moves(path.read_text()) == expected


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_a_script_says_what_it_takes_and_answers(path: Path) -> None:
    header = path.read_text().partition("\n\n")[0]

    assert header.startswith(f"-- {path.stem}: ")
    assert "-- Replies: " in header
    assert "-- Moves: " in header


def test_every_script_of_the_table_exists() -> None:
    named = {script for scripts in TRANSITIONS.values() for script in scripts}

    assert named <= {path.stem for path in SCRIPTS}


def test_the_prelude_knows_the_same_words() -> None:
    assert table("UNENDED", PRELUDE) == LIVE
    assert table("ENDED", PRELUDE) == ENDED
    assert table("RESUMABLE", PRELUDE) == RESUMABLE
    assert table("OVERTAKES", PRELUDE) == OVERTAKES


def test_no_script_knows_a_status_that_does_not_exist() -> None:
    known = {str(status) for status in Status}
    for path in SCRIPTS:
        compared = re.findall(r"(?:status|to|outcome) [~=]= '(\w+)'", path.read_text())
        moved = re.findall(r"(?:move|close)\(\w+, '(\w+)'", path.read_text())
        assert {*compared, *moved} - {"woken", "cancelled"} <= known, path.stem


def test_a_run_can_always_come_to_an_end() -> None:
    for status in LIVE:
        reached, edge = {status}, {status}
        while edge:
            edge = {target for source, target in TRANSITIONS if source in edge} - reached
            reached |= edge
        assert reached >= ENDED, f"{status} does not lead to every end"


def test_only_what_can_be_resumed_leaves_an_end() -> None:
    left = {source for source, _ in TRANSITIONS if source in ENDED}

    assert left == RESUMABLE


def test_a_completed_run_stays_completed() -> None:
    assert not is_allowed(Status.COMPLETED, Status.QUEUED)
    assert is_allowed(None, Status.QUEUED)


def test_who_overtakes() -> None:
    assert OnBusy.ENQUEUE not in OVERTAKES
    assert OnBusy.REJECT not in OVERTAKES
