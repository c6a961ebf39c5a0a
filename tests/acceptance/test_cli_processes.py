"""`pawl` as users start it: processes of their own, in a folder whose files have the names of our packages."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers import Server
from tests.support.shell import PAWL, Shell

AGENTS = """
from agent import Agent, tool
from agent.models.scripted import ScriptedModel, call, say

@tool
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b

calculator = Agent("Add.", name="calculator", tools=[add], model=ScriptedModel([call("add", a=200, b=10), say("210")]))
slow = Agent("Wait.", name="slow", model=ScriptedModel([say("At last.")], latency=60.0))
"""

HIDING = {"agent.py": "raise SystemExit('the wrong agent')", "worker.py": "raise SystemExit('the wrong worker')"}


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "shop.py").write_text(AGENTS)
    for name, text in HIDING.items():
        (tmp_path / name).write_text(text)
    opened = Shell(tmp_path, server.url)
    yield opened
    opened.close()


def test_a_worker_serves_the_agents_of_the_folder_and_leaves_in_good_order(shell: Shell) -> None:
    worker = shell.start("worker", "shop", "--concurrency", "10", "--grace", "1", "--json")
    shell.until('"worker_started"')
    assert [card["name"] for card in json.loads(shell.run("agents", "--json").stdout.replace("}\n{", "},{").join("[]"))]

    waited = shell.run("submit", "calculator", "Add 200 and 10", "--wait")
    assert (waited.stdout, "add: ok" in waited.stderr) == ("210\n", True)
    (listed,) = map(json.loads, shell.run("workers", "--json").stdout.splitlines())
    assert (listed["process_id"], listed["queues"]) == (worker.pid, ["high", "default", "low"])

    slow = shell.run("submit", "slow", "x").stdout.strip()
    time.sleep(0.5)
    worker.send_signal(signal.SIGTERM)
    printed, _ = worker.communicate(timeout=15)
    assert worker.returncode == 0
    assert [json.loads(line)["name"] for line in printed.splitlines()] == ["calculator", "slow"]
    told = json.loads(shell.run("show", slow, "--json").stdout)
    assert (told["run"]["status"], told["run"]["crashes"]) == ("queued", 0)


def test_a_named_worker_comes_back_after_a_kill_and_has_no_twin(shell: Shell) -> None:
    first = shell.start("worker", "shop", "--name", "w1")
    shell.until('"worker_started"')
    refused = shell.run("worker", "shop", "--name", "w1", code=2)
    assert "pawl: There is a worker named 'w1'" in refused.stderr
    assert "Traceback" not in refused.stderr
    first.kill()
    first.wait(10)

    heir = shell.start("worker", "shop", "--name", "w1")
    deadline = time.monotonic() + 20
    while [json.loads(line)["process_id"] for line in shell.run("workers", "--json").stdout.splitlines()] != [heir.pid]:
        assert time.monotonic() < deadline
    assert shell.run("submit", "calculator", "Add 200 and 10", "--wait").stdout == "210\n"


def test_a_parent_keeps_several_processes_with_the_same_options(shell: Shell) -> None:
    parent = shell.start("worker", "shop", "--processes", "2", "--queues", "default", "--grace", "1")
    deadline = time.monotonic() + 20
    workers: list[dict[str, object]] = []
    while len(workers) < 2 and time.monotonic() < deadline:
        workers = [json.loads(line) for line in shell.run("workers", "--json").stdout.splitlines()]
    assert [worker["queues"] for worker in workers] == [["default"], ["default"]]
    assert parent.pid not in {worker["process_id"] for worker in workers}

    assert shell.run("submit", "calculator", "Add 200 and 10", "--wait").stdout == "210\n"
    parent.terminate()
    assert parent.wait(15) == 0
    assert shell.run("workers", "--json").stdout == ""


def test_a_burst_ends_when_nothing_is_left(shell: Shell) -> None:
    run = shell.run("submit", "calculator", "x").stdout.strip()

    worker = shell.start("worker", "shop:calculator", "--burst")
    assert worker.wait(30) == 0
    assert json.loads(shell.run("show", run, "--json").stdout)["run"]["output"] == "210"


def test_a_scheduler_sweeps_where_there_is_no_worker(shell: Shell) -> None:
    scheduler = shell.start("scheduler")
    shell.until('"scheduler_started"')
    scheduler.terminate()

    assert scheduler.wait(10) == 0
    shell.until('"scheduler_stopped"')


def test_run_needs_no_redis(shell: Shell) -> None:
    ended = shell.run("run", "shop:calculator", "Add 200 and 10", environment={"PAWL_REDIS_URL": "redis://127.0.0.1:1"})

    assert ended.stdout == "210\n"
    assert [line.split()[:2] for line in ended.stderr.splitlines()] == [["step", "1"], ["step", "2"]]
    exceeded = shell.run("run", "shop:calculator", "x", "--max-steps", "0", code=1)
    assert re.fullmatch(r"pawl: run \S+ reached max_steps.*\n", exceeded.stderr)
    assert "several agents: name one, such as shop:calculator" in shell.run("run", "shop", "x", code=2).stderr


def test_an_unreachable_redis_ends_a_worker_with_one_line(shell: Shell) -> None:
    ended = shell.run("worker", "shop", code=3, environment={"PAWL_REDIS_URL": "redis://:hidden-password@127.0.0.1:1"})

    assert "Redis cannot be reached" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hidden-password" not in ended.stderr


def test_interrupted_waiting_leaves_the_run(shell: Shell) -> None:
    waiting = shell.start("submit", "slow", "x", "--wait")
    shell.until("submitted to slow")
    waiting.send_signal(signal.SIGINT)

    assert waiting.wait(10) == 130
    assert "goes on: pawl events -f" in (shell.folder / "log").read_text()
    assert json.loads(shell.run("runs", "--json").stdout)["status"] == "queued"


def test_a_closed_pipe_is_no_error(shell: Shell) -> None:
    for _ in range(3):
        shell.run("submit", "calculator", "x")
    command = f"{PAWL} runs --json | head -n 1"

    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_help_needs_nothing_that_is_slow_to_import() -> None:
    look = "import sys, worker.cli.app; print(*sorted({'httpx', 'redis', 'rq', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert done.stdout.strip() == ""


def test_the_private_server_is_shown_and_ended(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    private = {"PAWL_REDIS_URL": "", "PAWL_DATA_DIR": str(tmp_path_factory.mktemp("data"))}
    assert json.loads(shell.run("redis", "status", "--json", environment=private).stdout) == {
        "running": False,
        "server": None,
    }
    holder = subprocess.Popen(
        [PAWL, "worker", "shop"], cwd=shell.folder, env=shell.environment | private, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while not (status := json.loads(shell.run("redis", "status", "--json", environment=private).stdout))["running"]:
            assert time.monotonic() < deadline
        assert status["server"]["url"].startswith("unix://")
        assert "process" in shell.run("redis", "status", environment=private).stdout
        assert shell.run("redis", "stop", environment=private).stdout == "stopped; the runs stay on disk\n"
        assert json.loads(shell.run("redis", "stop", "--json", environment=private).stdout) == {"stopped": False}
    finally:
        holder.kill()
        holder.wait()


def test_a_worker_says_which_agents_cannot_ask_their_model(shell: Shell) -> None:
    (shell.folder / "remote.py").write_text(
        "from agent import Agent, OpenAIModel\n"
        "far = Agent('Help.', name='far', model='openai:gpt-4o-mini')\n"
        "near = Agent('Help.', name='near', model=OpenAIModel('m', base_url='http://127.0.0.1:9/v1'))\n"
    )
    unset = {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    (warning,) = [
        line
        for line in shell.run("worker", "remote", "--burst", environment=unset).stderr.splitlines()
        if line.startswith("pawl:")
    ]
    assert "agent 'far' cannot ask its model openai:gpt-4o-mini" in warning
    assert "Set OPENAI_API_KEY" in warning

    given = {**unset, "OPENAI_API_KEY": "sk-of-a-test"}
    assert "pawl:" not in shell.run("worker", "remote", "--burst", environment=given).stderr
