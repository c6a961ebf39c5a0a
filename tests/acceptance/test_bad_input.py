"""Bad input: one line that names what to do, an exit code, and nothing lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from agent.budget import Budget
from scheduler.client import Client
from tests.support.servers import Server
from tests.support.shell import Shell

HEAD = """
import socket, sys
from agent import ActionContext, Agent, Budget, tool
from agent.models.scripted import ScriptedModel, call, say

class Shop(ActionContext):
    stock: int = 3
"""

BAD = {
    "signature": """
@tool
def fetch(connection: socket.socket) -> str:
    "Fetches."
    return "x"
""",
    "agent": "mine = 1",
    "ends": "sys.exit(0)",
}

SERVED = """
from pathlib import Path

def ring() -> list[object]:
    inner: list[object] = []
    inner.append(inner)
    return inner

@tool(terminal=True)
def hand_in() -> object:
    "Hands the result in."
    with Path("handed-in").open("a") as file:
        file.write("x")
    return ring()

calculator = Agent("x", name="calculator", model=ScriptedModel([say("210")]))
rings = Agent("x", name="rings", tools=[hand_in], model=ScriptedModel([call("hand_in"), call("hand_in")]))
"""

PASSWORD = "right-password-1234"
WRONG = "wrong-password-5678"


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Iterator[Shell]:
    for name, text in {**BAD, "served": SERVED}.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    opened = Shell(tmp_path, server.url)
    yield opened
    opened.close()


def the_line(stderr: str) -> str:
    """What was said, which is one line."""
    assert stderr.startswith("pawl: "), stderr
    assert stderr.count("\n") == 1, stderr
    return stderr


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere", "there is no module nowhere here"),
        ("ends", "ends the program when it is imported"),
        ("signature", "what the model must not see belongs in an ActionContext"),
        ("agent", "agent.py is hidden by the package of Pawl of the same name: rename it"),
    ],
)
def test_a_worker_without_agents_to_serve_does_not_start(shell: Shell, target: str, words: str) -> None:
    ended = shell.run("worker", target, code=2)

    assert words in the_line(ended.stderr)
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("PAWL_LEASE_SECONDS", "soon", "PAWL_LEASE_SECONDS should be a valid number"),
        ("PAWL_RENEW_SECONDS", "5", "PAWL_RENEW_SECONDS (5) must be at most half of PAWL_LEASE_SECONDS (6)"),
        ("PAWL_LOG_LEVEL", "loud", "PAWL_LOG_LEVEL should be 'debug', 'info', 'warning' or 'error'"),
        ("PAWL_REDIS_URL", "localhost:6379", "PAWL_REDIS_URL must be redis://host:port/db"),
        ("PAWL_REDIS_URL", f"redis://:{PASSWORD}@h/0?retries=3", "has the option 'retries'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(shell: Shell, variable: str, value: str, words: str) -> None:
    line = the_line(shell.run("worker", "served", code=2, environment={variable: value}).stderr)

    assert words in line
    assert PASSWORD not in line


def test_a_redis_that_wants_a_password_says_so_and_keeps_the_runs(shell: Shell, server: Server) -> None:
    def with_password(password: str) -> dict[str, str]:
        return {"PAWL_REDIS_URL": f"unix://:{password}@{server.socket}"}

    run = shell.run("submit", "calculator", "x", environment={}).stdout.strip()
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        cast(Any, client).config_set("requirepass", PASSWORD)

    for command in (("submit", "calculator", "x"), ("worker", "served", "--burst")):
        for environment in ({}, with_password(WRONG)):
            line = the_line(shell.run(*command, code=3, environment=environment).stderr)
            assert "password" in line
            assert "URL" in line
            assert WRONG not in line

    right = with_password(PASSWORD)
    worked = shell.run("worker", "served", "--burst", environment=right)
    (found,) = shell.run("runs", "--json", environment=right).stdout.splitlines()
    assert (json.loads(found)["id"], json.loads(found)["status"]) == (run, "completed")
    assert PASSWORD not in worked.stdout + worked.stderr


def test_a_task_beyond_its_limit_is_refused_before_it_is_sent(shell: Shell) -> None:
    ended = shell.run("submit", "calculator", "-", stdin="x" * 300_000, code=1)

    assert "max_task_bytes = 262,144" in the_line(ended.stderr.splitlines(keepends=True)[-1])
    assert shell.run("runs", "--json").stdout == ""


def test_a_result_that_json_cannot_carry_ends_the_run_and_its_tool_works_once(shell: Shell) -> None:
    run = shell.run("submit", "rings", "x").stdout.strip()
    shell.run("worker", "served", "--burst")

    told: dict[str, Any] = json.loads(shell.run("show", run, "--json").stdout)["run"]
    assert told["status"] == "failed"
    assert told["error"].startswith("result_not_json: ")
    assert "its result, of type list, cannot be shown as text: ValueError: Circular reference" in told["error"]
    assert told["error"].endswith("return what JSON can carry")
    assert (shell.folder / "handed-in").read_text() == "x"


def test_a_limit_of_cost_without_a_price_is_refused_or_ends_a_run_that_can_go_on(shell: Shell) -> None:
    early = shell.run("submit", "calculator", "x", "--max-cost-usd", "1").stdout.strip()
    shell.run("worker", "served", "--burst")

    late = shell.run("submit", "calculator", "x", "--max-cost-usd", "1", code=2).stderr
    assert "no price is known for scripted, the model of agent 'calculator'; give the model a price" in the_line(late)
    told = json.loads(shell.run("show", early, "--json").stdout)["run"]
    assert (told["status"], told["usage"]["model_calls"]) == ("failed", 0)
    assert told["error"].startswith("unknown_price: ")

    with Client(shell.environment["PAWL_REDIS_URL"]) as client:
        client.get(early).resume(budget=Budget())
        shell.run("worker", "served", "--burst")
        assert client.get(early).result(timeout=10).output == "210"
