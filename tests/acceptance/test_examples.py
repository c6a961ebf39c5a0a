"""Each example runs by one command, without a key."""

import ast
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PAWL_"))}


def run(example: str, task: str, **environment: str) -> dict[str, Any]:
    """What `pawl run` prints, in the folder of the examples."""
    pawl = Path(sys.executable).with_name("pawl")
    done = subprocess.run(
        [pawl, "run", example, task, "--json"],
        cwd=EXAMPLES,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_calculator_uses_its_tools() -> None:
    result = run("calculator", "Add 200 and 10, then double it.")

    assert result["output"] == "420"
    assert result["usage"]["tool_calls"] == 2


def test_a_ticket_that_does_not_fit_is_asked_for_again() -> None:
    result = run("extraction", "Where is my parcel?! Ada Miller")

    assert result["output"]["customer"] == {"name": "Ada Miller", "is_angry": True}
    assert result["output"]["topic"] == "delivery"
    assert result["steps"] == 2


def test_a_refund_is_written_once_under_the_key_of_its_call(tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"

    result = run("refunds", "Order 7 arrived broken.", SHOP_DATABASE=str(shop))

    with sqlite3.connect(shop) as database:
        assert database.execute("SELECT * FROM refunds").fetchall() == [(f"{result['run']}:2.0", 7, 4990)]


def test_numbers_of_a_file_are_added_by_a_model_that_only_writes() -> None:
    result = run("react_numbers", "请读取当前目录下的 test.txt 文件并计算出文件中数字的和。")

    assert result["output"] == "test.txt 中数字的和是 49.5。"
    assert (result["steps"], result["usage"]["tool_calls"]) == (3, 2)


def examples() -> Mapping[str, str]:
    return {path.name: ast.get_docstring(ast.parse(path.read_text())) or "" for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", examples())
def test_every_example_says_how_it_is_run_and_is_run_in_a_test(name: str) -> None:
    module = name.removesuffix(".py")
    tests = [Path(__file__), Path(__file__).parents[1] / "documents" / "test_examples.py"]

    assert f"pawl run examples.{module} " in examples()[name] or f"python examples/{module}.py" in examples()[name]
    assert any(f'run("{module}"' in path.read_text() for path in tests)
