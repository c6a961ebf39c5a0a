"""The checklist of the three documents: every item has a test here, or a line that says why not."""

import ast
import re
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent

ITEMS = range(1, 76)

WITHOUT_A_TEST_HERE = {
    74: "item 74: the HTTP service, its health check, CORS and the chat page belong to scheduler/http, which comes later",
}


def named_in_tests() -> dict[int, list[str]]:
    """The tests that name each item in their docstring."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for number in re.findall(r"\bitem (\d+)\b", ast.get_docstring(node) or ""):
                    found[int(number)].append(f"{path.name}::{node.name}")
    return found


def test_every_item_is_named() -> None:
    named = set(named_in_tests()) | set(WITHOUT_A_TEST_HERE)

    assert sorted(set(ITEMS) - named) == []
    assert sorted(named - set(ITEMS)) == []


def test_what_has_a_test_needs_no_excuse() -> None:
    assert set(WITHOUT_A_TEST_HERE) & set(named_in_tests()) == set()
    assert all(line.startswith(f"item {number}: ") for number, line in WITHOUT_A_TEST_HERE.items())
