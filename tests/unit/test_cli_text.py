"""How the command line writes values, and that no text of a run steers a terminal."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from scheduler.printable import printable, printable_json
from worker.cli.output import table
from worker.cli.text import ago, lasting, moment_of, money, one_line

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
STEERING = "\x1b[31m \x07 \r \x00 \x9b \x7f \u202e \u2066 \u2028 \ud83d"


def test_what_could_steer_a_terminal_is_written_out() -> None:
    """case-134"""
    shown = printable(STEERING)

    assert shown == r"\x1b[31m \x07 \r \x00 \x9b \x7f \u202e \u2066 \u2028 \ud83d"
    assert printable("two\nlines\tand ünïcode 🚀") == "two\nlines\tand ünïcode 🚀"


def test_json_stays_the_same_json() -> None:
    value = {"text": STEERING.replace("\ud83d", "")}
    line = printable_json(json.dumps(value, ensure_ascii=False))

    assert json.loads(line) == value
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e\u2066]", line)


def test_a_cell_of_a_table_is_never_markup() -> None:
    """case-134"""
    from rich.console import Console

    console = Console(width=200, markup=True)
    with console.capture() as captured:
        console.print(table(("A", "B"), [("[bold]x[/bold]", "[/] \x1b[2J [link=http://x]y")]))

    assert "[bold]x[/bold]" in captured.get()
    assert r"[/] \x1b[2J [link=http://x]y" in captured.get()


def test_a_long_text_is_cut_to_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0421, "42 ms"), (-1, "0 ms"), (5.25, "5.2 s"), (90, "1.5 min"), (7200, "2.0 h"), (86400 * 3, "3.0 d")],
)
def test_a_duration_is_in_its_largest_unit(seconds: float, words: str) -> None:
    assert lasting(seconds) == words
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


def test_money_that_is_not_known_is_not_zero() -> None:
    assert [money(None), money(Decimal(0)), money(Decimal("0.0123")), money(Decimal("2.50"))] == [
        "?",
        "$0",
        "$0.0123",
        "$2.5",
    ]


def test_an_age_or_a_date_is_a_moment() -> None:
    assert moment_of("2h", NOW) == NOW - timedelta(hours=2)
    assert moment_of("1.5d", NOW) == NOW - timedelta(days=1.5)
    assert moment_of("2029-12-31T00:00:00+00:00", NOW) == NOW - timedelta(days=1, hours=12)
    assert moment_of("2029-12-31", NOW).tzinfo is not None
    with pytest.raises(ValueError, match="yesterday"):
        moment_of("yesterday", NOW)
    for beyond in ("99999999d", f"{'9' * 400}w", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        with pytest.raises(ValueError, match="beyond the years"):
            moment_of(beyond, NOW)
