"""`pawl limit`: what all runs of a tenant may use together."""

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
import redis
from typer.testing import CliRunner, Result

from scheduler.inputs import Entry
from tests.support.runs import Desk
from worker.cli.app import app

Pawl = Callable[..., Result]


@pytest.fixture
def pawl(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    """Runs `pawl limit`, and expects the exit code that is named."""
    monkeypatch.setattr("scheduler.log.configure", leave_the_log_alone)
    monkeypatch.setenv("PAWL_REDIS_URL", redis_url)

    def run(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["limit", *arguments])
        assert result.exit_code == code, result.output
        return result

    return run


def leave_the_log_alone(**_: object) -> None:
    """The log of the test process stays as it is."""


def lines(result: Result) -> dict[str, Any]:
    return {line["of"]: line for line in map(json.loads, result.stdout.splitlines())}


def test_limits_are_set_shown_and_taken_away(pawl: Pawl, redis_url: str) -> None:
    desk = Desk(cast(Any, redis.Redis).from_url(redis_url, protocol=2))
    tenant = desk.keys.tenant("acme")
    owner = desk.running("0-a", tenant="acme")
    owner.commit(settled=[Entry(tenant, "total_tokens", 70)], open=b"{}", hold=[Entry(tenant, "total_tokens", 30)])

    shown = lines(pawl("acme", "--max-total-tokens", "1000", "--max-cost-usd", "0.50", "--json"))
    assert shown["max_total_tokens"] == {
        "tenant": "acme", "of": "max_total_tokens", "used": 70, "held": 30, "limit": 1000,
    }  # fmt: skip
    assert shown["max_cost_usd"] == {"tenant": "acme", "of": "max_cost_usd", "used": "0", "held": "0", "limit": "0.5"}

    row = next(line for line in pawl("acme", "--max-cost-usd", "none").stdout.splitlines() if "total tokens" in line)
    assert row.split() == ["total", "tokens", "70", "30", "1000"]
    assert lines(pawl("acme", "--json"))["max_cost_usd"] == {
        "tenant": "acme", "of": "max_cost_usd", "used": "0", "held": "0", "limit": None,
    }  # fmt: skip
    assert "no limit" in pawl("acme").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("acme", "--max-total-tokens", "-1"), "must not be negative"),
        (("acme", "--max-total-tokens", "many"), "'many' is neither a number nor `none`"),
        (("acme", "--max-total-tokens", "1.5"), "max_total_tokens"),
        (("acme", "--max-cost-usd", "inf"), "max_cost_usd: Input should be a finite number"),
        (("acme", "--max-cost-usd", "1e400000"), "max_cost_usd: Input should be less than or equal to 1000000000"),
        (("a:b",), "tenant 'a:b' must not contain ':'"),
    ],
)
def test_wrong_arguments_are_named(pawl: Pawl, arguments: tuple[str, ...], words: str) -> None:
    result = pawl(*arguments, code=2)
    assert words in " ".join(result.stderr.split())
