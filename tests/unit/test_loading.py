"""What `pawl worker` is told to serve: found, or refused in one line that says what to change."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from worker.cli.app import app

HEAD = """
import socket, sys
from agent import ActionContext, Agent, Budget, tool

class Shop(ActionContext):
    stock: int = 3
"""

MODULES = {
    "ends": "sys.exit(0)",
    "broken": "1 / 0",
    "syntax": "def f(:",
    "needs": "import a_package_that_is_not_there",
    "twins": "a = Agent('x', name='twin')\nb = Agent('x', name='twin')",
    "nameless": "a = Agent('x')",
    "modelless": "a = Agent('x', name='modelless')",
    "exits": """
@tool(terminal=True)
def finish() -> str:
    "Ends."
    return "x"
a = Agent("x", name="a", tools=[finish], output_schema=int)
""",
    "signature": """
@tool
def fetch(connection: socket.socket) -> str:
    "Fetches."
    return "x"
""",
    "positions": """
@tool
def fetch(*urls: str) -> str:
    "Fetches."
    return "x"
""",
    "dependencies": """
@tool
def count(shop: Shop) -> int:
    "Counts."
    return shop.stock
a = Agent("x", name="a", tools=[count], model="gpt-4o-mini")
""",
    "output": """
class Lock: ...
a = Agent("x", name="a", output_schema=Lock)
""",
    "price": 'a = Agent("x", name="a", model="openai:my-own", budget=Budget(max_cost_usd="1"))',
    "provider": 'a = Agent("x", name="a", model="nobody:gpt")',
    "agent": "mine = 1",
    "uses": "from agent import mine",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder, which is left as it was found."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("scheduler.log.configure", leave_the_log_alone)
    monkeypatch.setenv("PAWL_REDIS_URL", "redis://127.0.0.1:1")
    yield tmp_path
    for name in set(MODULES) - {"agent"}:
        sys.modules.pop(name, None)


def leave_the_log_alone(**_: object) -> None:
    """The log of the test process stays as it is."""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere", "there is no module nowhere here"),
        ("twins.py", "twins.py is a file: write twins, the name of its module"),
        ("./twins.py", "./twins.py is a file: write twins, the name of its module"),
        (__file__, "is a file: write test_loading, the name of its module, and start in "),
        ("nowhere.py", "there is no module nowhere.py here"),
        ("twins:sales", "'sales' is not there"),
        ("twins:sys", "'sys' is a module, not an Agent"),
        ("json", "json holds no agent that can be served: declare one at module level"),
        ("ends", "ends the program when it is imported: put that under `if __name__ == '__main__':`"),
        ("broken", "broken cannot be imported: ZeroDivisionError: division by zero (broken.py, line "),
        ("syntax", "syntax cannot be imported: SyntaxError"),
        ("needs", "needs cannot be imported: No module named 'a_package_that_is_not_there' (needs.py, line "),
        ("twins", "twins:a and twins:b are two agents of the name 'twin'; rename one"),
        ("nameless", "nameless:a has no name; give it one"),
        ("modelless", "has no model: pass model='openai:gpt-4o', or a model client"),
        ("exits", "output_schema and terminal tools (finish) are two exits; keep one"),
        (
            "signature",
            "tool 'fetch', parameter 'connection': a model cannot fill it in (Unable to generate pydantic-core",
        ),
        ("signature", "schema for <class 'socket.socket'>); what the model must not see belongs in an ActionContext"),
        ("positions", "tool 'fetch': parameter 'urls' can only be passed by position"),
        ("dependencies", "tool 'count' asks for Shop, but action_context gives ActionContext; pass a Shop"),
        ("output", "output_schema=Lock: no JSON Schema can be made of it; use str, a BaseModel"),
        ("price", "no price is known for openai:my-own, the model of agent 'a'; give the model a price=Price(...)"),
        ("provider", "names the provider 'nobody'; known are: openai"),
        ("agent", "agent.py is hidden by the package of Pawl of the same name: rename it"),
        ("agent:mine", "agent.py is hidden by the package of Pawl of the same name: rename it"),
        ("uses", "agent.py is hidden by the package of Pawl of the same name: rename it"),
        ("worker.shop", "there is no module worker.shop here"),
    ],
)
def test_what_cannot_be_served_is_one_line(folder: Path, target: str, words: str) -> None:
    ended = CliRunner().invoke(app, ["worker", target])

    assert ended.exit_code == 2, ended.output
    assert ended.stderr.startswith("pawl: ")
    assert words in ended.stderr
    assert (ended.stderr.count("\n"), ended.stdout) == (1, "")
