"""The examples with a real language model, each by its one command: such a small model seldom solves the task, yet every run
ends in an orderly way."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_model import NotInstallable, serving

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PAWL_"))}
SECONDS = 300.0
"""For a machine that is busy with other things; alone it takes ten seconds."""

LIMITS = ("--max-steps", "3", "--max-output-tokens", "600")
ORDERLY = ("reached max_", "replies in a row could not be used", " asks: ")
"""What is said of a run without a result that ended at a limit, as it could not be understood, or as it asks a person."""


@pytest.fixture(scope="module")
def model_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the real model is."""
    try:
        with serving(tmp_path_factory.mktemp("model") / "model.log") as url:
            yield url
    except NotInstallable as reason:
        pytest.skip(f"the model server cannot be installed here: {reason}")


@pytest.mark.parametrize(
    ("example", "dialect", "task"),
    [
        *[
            ("game_calculator", dialect, "Add 200 and 10, then multiply the result by 2.")
            for dialect in ("json", "react")
        ],
        *[("assistant", dialect, "Multiply 6 and 7.") for dialect in ("json", "react")],
        *[("payments", dialect, "Pay invoices 17 and 18.") for dialect in ("json", "react")],
        ("react_numbers", "react", "Read the file test.txt and add the numbers in it."),
    ],
)
def test_an_example_runs_on_a_real_model(model_server: str, example: str, dialect: str, task: str) -> None:
    pawl = Path(sys.executable).with_name("pawl")
    done = subprocess.run(
        [pawl, "run", example, task, *LIMITS, "--json"],
        cwd=EXAMPLES,
        env={**ENVIRONMENT, "OPENAI_BASE_URL": model_server, f"{example.upper()}_DIALECT": dialect},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert "Traceback" not in done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    if done.returncode == 0:
        assert told["usage"]["estimated_tokens"] == 0, "the server reports what it used"
        assert 1 <= told["steps"] <= 3
    else:
        assert any(words in told["error"] for words in ORDERLY), told["error"]
    if dialect == "json":
        assert "could not be used" not in done.stdout, "a grammar keeps the model to the form"
