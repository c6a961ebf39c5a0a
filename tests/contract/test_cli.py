"""The verbs of `pawl` against a real server, each in this process; the test's own hand works on the runs."""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agent.budget import Budget
from agent.events import RunBudgetExceeded, RunCompleted, RunFailed
from agent.messages import ToolCall
from scheduler.cards import AgentCard, ToolCard
from tests.support.hand import Hand
from worker.cli.app import app

EVIL = "\x1b[2J [bold]x[/bold] \u202e"
"""A text that would clear the screen, be set in bold and run backwards."""

Pawl = Callable[..., Result]


@pytest.fixture
def hand(redis_url: str) -> Hand:
    made = Hand.at(redis_url)
    made.publish(AgentCard(name="support", model="m", budget=Budget(max_steps=7), tools=(ToolCard(name="refund"),)))
    return made


@pytest.fixture
def pawl(redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pawl:
    """Runs a command line, and expects the exit code that is named."""
    monkeypatch.setattr("scheduler.log.configure", leave_the_log_alone)
    monkeypatch.setenv("PAWL_REDIS_URL", redis_url)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
        result = runner.invoke(app, list(arguments), input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", result.output), result.output
        return result

    return run


def leave_the_log_alone(**_: object) -> None:
    """The log of the test process stays as it is."""


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def submitted(pawl: Pawl, *arguments: str) -> str:
    return pawl("submit", "support", "Refund order 7", *arguments).stdout.strip()


# ---- submit ---------------------------------------------------------------------------------------------------------


def test_submit_prints_the_id(pawl: Pawl, hand: Hand) -> None:
    run = submitted(pawl, "--session", "s", "--tenant", "t", "--metadata", "mail=42", "--metadata", "by=me=you")

    record = hand.redis.hgetall(hand.keys.run(run))
    assert (record[b"session"], record[b"tenant"], record[b"queue"]) == (b"t:s", b"t", b"default")
    assert json.loads(record[b"metadata"]) == {"mail": "42", "by": "me=you"}
    assert lines(pawl("submit", "support", "x", "--json", "--key", "k")) == lines(
        pawl("submit", "support", "x", "--json", "--key", "k")
    )


def test_a_task_may_come_from_stdin(pawl: Pawl, hand: Hand) -> None:
    for arguments in (("submit", "support", "-"), ("submit", "support")):
        run = pawl(*arguments, stdin="Refund\norder 7\n").stdout.strip()
        assert json.loads(hand.redis.xrange(hand.keys.events(run))[0][1][b"b"])["task"] == "Refund\norder 7"
    assert "stdin is empty" in pawl("submit", "support", "-", stdin=" \n", code=2).stderr


def test_limits_stand_in_place_of_the_agents_own(pawl: Pawl, hand: Hand) -> None:
    run = submitted(pawl, "--max-tool-calls", "3", "--max-wall-seconds", "60")

    limits = Budget.model_validate_json(hand.redis.hget(hand.keys.run(run), "limits"))
    assert limits == Budget(max_steps=7, max_tool_calls=3, max_wall_seconds=60)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-steps", "-1"), "must not be negative"),
        (("--max-cost-usd", "cheap"), "'cheap' is not a number"),
        (("--max-cost-usd", "inf"), "'--max-cost-usd': must be a finite number"),
        (("--max-cost-usd", "nan"), "'nan' is not a number"),
        (("--max-cost-usd", "1e400000"), "'--max-cost-usd': must be less than or equal to 1000000000"),
        (("--max-active-seconds", "inf"), "'--max-active-seconds': must be less than or equal to 1000000000"),
        (("--max-wall-seconds", "1e12"), "'--max-wall-seconds': must be less than or equal to 1000000000"),
        (("--delay", "1e12"), "must be a number of seconds, 0 to 1e9"),
        (("--metadata", "x"), "'x' is not KEY=VALUE"),
        (("--priority", "urgent"), "'--priority': 'urgent' is not one of 'high', 'default', 'low'"),
        (("--max-cost-usd", "0.05"), "no price is known for m"),
        (("--tenant", "a:b"), "tenant 'a:b' must not contain ':'"),
    ],
)
def test_wrong_arguments_are_named(pawl: Pawl, hand: Hand, arguments: tuple[str, ...], words: str) -> None:
    assert words in pawl("submit", "support", "x", *arguments, code=2).stderr


@pytest.mark.parametrize("verb", [("resume", "0-1"), ("add-budget", "0-1"), ("run", "nowhere:nothing", "x")])
def test_limits_without_an_end_are_refused_by_every_verb(pawl: Pawl, verb: tuple[str, ...]) -> None:
    assert "'--max-cost-usd': must be a finite number" in pawl(*verb, "--max-cost-usd", "inf", code=2).stderr
    assert "'--max-active-seconds': must be" in pawl(*verb, "--max-active-seconds", "inf", code=2).stderr


def test_an_unknown_agent_is_warned_of(pawl: Pawl, hand: Hand) -> None:
    result = pawl("submit", "nobody", "x")

    assert result.stderr.startswith("pawl: no worker has the agent 'nobody'")
    assert "no worker has the agent 'nobody'" in pawl("runs").stdout


@pytest.mark.parametrize("agent", ["suport", "Support", "supporter"])
def test_a_misspelt_agent_is_pointed_out(pawl: Pawl, hand: Hand, agent: str) -> None:
    hand.publish(AgentCard(name="support"))

    assert f"no worker has the agent {agent!r}, but one has 'support'" in pawl("submit", agent, "x").stderr


@pytest.mark.parametrize("task", ["", "  ", "\n"])
def test_an_empty_task_is_refused(pawl: Pawl, hand: Hand, task: str) -> None:
    assert "it is empty" in pawl("submit", "support", task, code=2).stderr
    assert not hand.redis.exists(hand.keys.by_time)


def when_submitted(hand: Hand, act: Callable[[str], None]) -> threading.Thread:
    """Acts as soon as a run is there."""

    def look() -> None:
        while not (found := hand.redis.zrange(hand.keys.by_time, 0, -1)):
            pass
        act(found[0].decode())

    thread = threading.Thread(target=look)
    thread.start()
    return thread


def test_wait_shows_progress_on_stderr_and_the_result_on_stdout(pawl: Pawl, hand: Hand) -> None:
    def act(run: str) -> None:
        held = hand.take(run)
        held.step(f"thinking {EVIL}")
        held.end(RunCompleted(output={"total": 7}))

    worker = when_submitted(hand, act)
    result = pawl("submit", "support", "x", "--wait", "--timeout", "10")
    worker.join()

    assert json.loads(result.stdout) == {"total": 7}
    assert "taken by hand" in result.stderr
    assert "step 1: thinking \\x1b[2J [bold]x[/bold] \\u202e" in result.stderr


def test_wait_as_json_is_one_object(pawl: Pawl, hand: Hand) -> None:
    worker = when_submitted(hand, lambda run: hand.finish(run, "done"))
    (result,) = lines(pawl("submit", "support", "x", "--wait", "--json"))
    worker.join()

    assert (result["status"], result["output"], result["steps"]) == ("completed", "done", 0)
    assert result["usage"]["cost_usd"] == "0"


def test_a_failed_run_is_exit_code_1_and_a_waiting_one_4_and_a_late_one_5(pawl: Pawl, hand: Hand) -> None:
    def fail(run: str) -> None:
        hand.take(run).end(RunFailed(reason="refused", error=f"no {EVIL}", partial="Well"))

    worker = when_submitted(hand, fail)
    result = pawl("submit", "support", "x", "--wait", "--json", code=1)
    worker.join()
    assert (json.loads(result.stdout)["status"], json.loads(result.stdout)["partial"]) == ("failed", "Well")
    assert "failed (refused): no \\x1b[2J" in result.stderr

    hand.redis.flushall()
    worker = when_submitted(hand, lambda run: hand.take(run).ask("q1", "reply"))
    assert (
        "waits for a person (reply q1): answer with `pawl reply "
        in pawl("submit", "support", "x", "--wait", code=4).stderr
    )
    worker.join()

    assert "it goes on" in pawl("submit", "support", "x", "--wait", "--timeout", "0.2", code=5).stderr


# ---- looking --------------------------------------------------------------------------------------------------------


def test_runs_are_listed_for_people_and_for_programs(pawl: Pawl, hand: Hand) -> None:
    done, queued = submitted(pawl, "--tenant", "acme"), submitted(pawl)
    hand.finish(done)

    table = pawl("runs").stdout
    assert table.splitlines()[0].split() == [
        "RUN",
        "STATUS",
        "AGENT",
        "SESSION",
        "TENANT",
        "STEPS",
        "COST",
        "AGE",
        "WHY",
    ]
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [[queued, "queued"], [done, "completed"]]
    found = lines(pawl("runs", "--json", "--status", "completed", "--since", "1h"))
    assert [(run["id"], run["status"], run["tenant"], run["cost_usd"]) for run in found] == [
        (done, "completed", "acme", "0")
    ]
    assert lines(pawl("runs", "--json", "--until", "1h")) == []
    page = pawl("runs", "--json", "--limit", "1")
    place = re.search("--page '(.+)'", page.stderr)
    assert place is not None
    assert [run["id"] for run in lines(page) + lines(pawl("runs", "--json", "--page", place[1]))] == [queued, done]


@pytest.mark.parametrize(
    "moment",
    ["yesterday", "", "99999999d", "9" * 400 + "w", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"],
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_what_is_no_moment_is_refused_with_examples(pawl: Pawl, option: str, moment: str) -> None:
    words = pawl("runs", option, moment, code=2).stderr
    assert f"Invalid value for {option}: {moment!r} is neither an age such as 2h nor a date such as 2026-03-01" in words


def test_what_is_no_place_is_refused(pawl: Pawl, hand: Hand) -> None:
    digits = "9" * 5000
    assert "no place in a list of sessions" in pawl("sessions", "--page", f"{digits} x", code=2).stderr
    assert "no place in a list of runs" in pawl("runs", "--page", f"{digits} x time", code=2).stderr
    assert "neither the number of an event" in pawl("events", submitted(pawl), "--after", "9" * 32, code=2).stderr


def test_a_broken_record_is_named_beside_the_others(pawl: Pawl, hand: Hand) -> None:
    broken, well = submitted(pawl), submitted(pawl)
    hand.redis.hset(hand.keys.run(broken), "rev", "x")

    result = pawl("runs", "--json")
    assert [run["id"] for run in lines(result)] == [well]
    assert f"the record of run {broken} cannot be read" in result.stderr
    assert "rev" in pawl("show", broken, code=1).stderr


def told_run(pawl: Pawl, hand: Hand) -> str:
    """A run with everything that a model and a tool can write."""
    run = pawl("submit", "support", f"Refund {EVIL}", "--metadata", f"note={EVIL}").stdout.strip()
    held = hand.take(run)
    held.step(EVIL, calls=(ToolCall(id="c", name="refund", arguments='{"order": "7 [/] \\u001b[2J"}'),))
    held.answer("1.0", "refund", EVIL)
    held.step("Done.")
    held.end(RunCompleted(output=EVIL))
    return run


def test_show_tells_the_whole_run(pawl: Pawl, hand: Hand) -> None:
    """case-134: what was written by others is shown as text."""
    run = told_run(pawl, hand)
    shown = pawl("show", run).stdout

    for part in (
        f"run        {run}",
        "status     completed",
        "agent      support on queue default",
        "steps      2, 2 model calls, 1 tool calls",
        "tokens     20 in, 10 out",
        "left       max_steps 5",
        "task       Refund \\x1b[2J [bold]x[/bold] \\u202e",
        'refund({"order": "7 [/] \\u001b[2J"}) -> ok: \\x1b[2J [bold]x[/bold]',
        "held by",
        'completed: "\\u001b[2J [bold]x[/bold] \\u202e"',
        "\nresult\n\\x1b[2J [bold]x[/bold] \\u202e",
    ):
        assert part in shown, (part, shown)


def test_show_as_json_holds_all_of_it(pawl: Pawl, hand: Hand) -> None:
    run = told_run(pawl, hand)
    (told,) = lines(pawl("show", run, "--json"))

    assert (told["run"]["id"], told["run"]["output"], told["task"]) == (run, EVIL, f"Refund {EVIL}")
    assert [step["step"] for step in told["steps"]] == [1, 2]
    assert told["steps"][0]["calls"][0]["content"] == EVIL
    assert [holder["worker"] for holder in told["holders"]] == ["hand"]
    assert [event["type"] for event in told["events"]] == [
        event["type"] for event in lines(pawl("events", run, "--json"))
    ]


def test_events_are_printed_and_followed(pawl: Pawl, hand: Hand) -> None:
    run = told_run(pawl, hand)

    assert [line.split()[0] for line in pawl("events", run).stdout.splitlines()] == ["1", "2", "3", "4", "5", "6"]
    assert pawl("events", "-f", run).stdout == pawl("events", run).stdout
    assert [event["seq"] for event in lines(pawl("events", run, "--after", "4", "--json"))] == [5, 6]
    assert "is neither the number of an event" in pawl("events", run, "--after", "x", code=2).stderr


def test_agents_workers_and_usage_are_listed(pawl: Pawl, hand: Hand) -> None:
    assert pawl("agents").stdout.splitlines()[1].split() == ["support", "m", "default", "no", "refund"]
    assert lines(pawl("agents", "--json"))[0]["budget"]["max_steps"] == 7
    assert "there is no worker" in pawl("workers").stderr
    assert lines(pawl("workers", "--json")) == []
    assert "nothing was used" in pawl("usage").stderr
    assert "moon: use agent, model, tenant or day" in pawl("usage", "--by", "moon", code=2).stderr


# ---- telling --------------------------------------------------------------------------------------------------------


def test_cancel_says_what_came_of_it(pawl: Pawl, hand: Hand) -> None:
    run, running = submitted(pawl), submitted(pawl)
    hand.take(running)

    assert pawl("cancel", run).stdout == f"{run} cancelled\n"
    assert pawl("cancel", run).stdout == f"{run} had ended before\n"
    assert lines(pawl("cancel", running, "--json")) == [{"run": running, "outcome": "asked"}]


def test_resume_keeps_the_limits_that_are_not_named(pawl: Pawl, hand: Hand) -> None:
    run = submitted(pawl, "--max-tool-calls", "3")
    assert "is queued; only failed and budget_exceeded runs go on" in pawl("resume", run, code=1).stderr
    hand.take(run).end(RunBudgetExceeded(limit="max_steps", used="7", allowed="7"))

    assert "ended at max_steps: used 7 of 7" in pawl("resume", run, code=2).stderr
    assert "ended at max_steps: used 7 of 7" in pawl("resume", run, "--max-tool-calls", "9", code=2).stderr
    assert pawl("resume", run, "--max-steps", "20").stdout == f"{run} goes on\n"
    limits = Budget.model_validate_json(hand.redis.hget(hand.keys.run(run), "limits"))
    assert limits == Budget(max_steps=20, max_tool_calls=3)


def test_add_budget_adds(pawl: Pawl, hand: Hand) -> None:
    run = submitted(pawl)

    assert pawl("add-budget", run, "--max-steps", "3").stdout == f"{run} added\n"
    assert b"top_up" in hand.redis.lrange(hand.keys.inbox(run), 0, -1)[0]
    assert "say what to add" in pawl("add-budget", run, code=2).stderr


def test_requests_are_answered(pawl: Pawl, hand: Hand) -> None:
    asking, asking_too = submitted(pawl), submitted(pawl)
    hand.take(asking).ask("q1", "reply")
    hand.take(asking_too).ask("a1", "approval")

    shown = pawl("show", asking).stdout
    assert "waits for a reply: `pawl reply" in shown
    assert "asks       reply q1: Which one?" in shown
    assert "reply q1: Which one?" in pawl("runs").stdout
    assert pawl("reply", asking, "the second one").stdout == f"{asking} answered\n"
    assert "has been answered" in pawl("reply", asking, "x", "--request", "q1", code=1).stderr
    assert pawl("approve", asking_too, "--arguments", '{"amount": 5}').stdout == f"{asking_too} approved\n"
    assert "must be a JSON object" in pawl("approve", asking_too, "--arguments", "[5]", code=2).stderr
    assert "no open request" in pawl("reject", asking_too, "--reason", "no", code=1).stderr


def test_a_name_is_for_one_process(pawl: Pawl) -> None:
    result = pawl("worker", "nowhere", "--name", "w1", "--processes", "2", code=2)

    assert "Invalid value for --name: a name belongs to one process" in result.stderr


def test_delete_removes_an_ended_run(pawl: Pawl, hand: Hand) -> None:
    run = submitted(pawl)

    assert "cancel it first" in pawl("delete", run, code=1).stderr
    hand.finish(run)
    assert pawl("delete", run).stdout == f"{run} deleted\n"
    for verb in (("show", run), ("events", "-f", run), ("cancel", run), ("resume", run), ("delete", run)):
        assert f"pawl: There is no run '{run}'" in pawl(*verb, code=1).stderr


# ---- checking and errors --------------------------------------------------------------------------------------------


def test_doctor_says_what_is_wrong_and_what_to_do(pawl: Pawl, hand: Hand, tmp_path: Path) -> None:
    pawl("submit", "nobody", "x")
    (tmp_path / "agent.py").touch()
    found = {finding["check"]: finding for finding in lines(pawl("doctor", "--json", code=1))}

    assert found["redis"]["level"] == "ok"
    assert found["agents"]["what"] == "no worker has 'nobody', and 1 run waits for it"
    assert found["names"]["advice"] == "rename agent.py"
    assert found["workers"]["level"] == "problem"
    assert found["persistence"]["advice"] == "set appendonly yes"
    assert "PROBLEM" in pawl("doctor", code=1).stdout


def test_doctor_says_when_redis_cannot_be_reached(pawl: Pawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_REDIS_URL", "redis://:hidden-password@127.0.0.1:1")
    result = pawl("doctor", "--json", code=3)

    assert lines(result)[-1]["check"] == "redis"
    assert "hidden-password" not in result.output


@pytest.mark.parametrize("verb", [("runs",), ("submit", "a", "x"), ("show", "0-1"), ("agents",), ("cancel", "0-1")])
def test_every_verb_says_in_one_line_that_redis_cannot_be_reached(
    pawl: Pawl, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PAWL_REDIS_URL", "redis://:hidden-password@127.0.0.1:1")
    result = pawl(*verb, code=3)

    assert re.fullmatch(r"pawl: Redis cannot be reached: is it running.*\n", result.output)
    assert "hidden-password" not in result.output


def test_a_wrong_setting_is_named(pawl: Pawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAWL_LEASE_SECONDS", "soon")

    assert pawl("runs", code=2).stderr.startswith("pawl: PAWL_LEASE_SECONDS ")


@pytest.mark.parametrize(
    "command", sorted(command.callback.__name__ for command in app.registered_commands if command.callback)
)
def test_every_verb_has_help_with_an_example(pawl: Pawl, command: str) -> None:
    name = command.replace("_", "-")

    assert re.search(rf"Examples?:\n +pawl {name}\b", pawl(name, "--help").stdout)


def test_the_help_names_the_exit_codes(pawl: Pawl) -> None:
    assert "3 Redis cannot be reached" in " ".join(pawl("--help").stdout.split())
    assert re.fullmatch(r"pawl \d+\.\d+\.\d+\S*\n", pawl("--version").stdout)
    assert "No such command 'launch'" in pawl("launch", code=2).stderr
