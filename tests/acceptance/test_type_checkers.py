"""What users' own type checkers say of the public face: `tests/typing` holds it, and each error that it must be."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", [["pyright", "tests/typing"], ["mypy"]], ids=lambda command: command[0])
def test_they_know_every_type(command: list[str]) -> None:
    checked = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
