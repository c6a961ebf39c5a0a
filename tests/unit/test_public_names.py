"""What `scheduler` exports is what can be imported, and the command line knows every limit of a budget."""

import subprocess
import sys

import pytest

import scheduler
from agent.budget import Budget
from scheduler.client.limits import Limits
from worker.cli.limits import LIMITS


@pytest.mark.parametrize("name", scheduler.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(scheduler, name).__name__ == name


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Redis'"):
        _ = scheduler.Redis  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_package_and_the_help_bring_nothing_heavy() -> None:
    """`pawl --help` has 0.4 seconds; Redis, RQ and pydantic alone take longer."""
    heavy = "{'redis', 'rq', 'pydantic', 'httpx', 'structlog', 'agent'}"
    code = f"import sys, scheduler, worker.cli.app; print(sorted({heavy} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_limit_can_be_set_and_added() -> None:
    assert set(LIMITS) == set(Budget.model_fields) == set(Limits.__annotations__)
