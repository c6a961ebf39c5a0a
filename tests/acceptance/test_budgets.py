"""The rules of budgets, over real workers: what is reserved, what costs nothing, what a run is told, and how it goes on."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.budget import NO_USAGE, Budget, Usage
from agent.errors import BudgetExceeded, RunFailed
from agent.events import ModelFailed, ModelReplied, Recorded, ReplyRejected, ToolReturned
from agent.state import Checkpoint, RunState
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.frugal_agents import erring, frugal, remote, requests_file
from tests.support.model_server import ModelServer, chat_reply, http_answer
from tests.support.plays import Step, note, say, task, use
from tests.support.site import Site
from tests.support.waiting import wait_until

AGENTS = "tests.support.frugal_agents"


def asked(site: Site) -> list[dict[str, Any]]:
    """The requests that the model read."""
    path = requests_file(site.traces.folder)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def submit(site: Site, *steps: Step, **limits: Any) -> RunHandle[str]:
    return site.client.submit(frugal, task(*steps), budget=Budget(**limits))


def limit_of(run: RunHandle[Any]) -> BudgetExceeded:
    with pytest.raises(BudgetExceeded) as caught:
        run.result(timeout=15)
    return caught.value


# ---- reserve and settle ------------------------------------------------------------------------------------------------


def test_a_call_that_does_not_fit_is_not_made_and_one_that_was_paid_is_kept(site: Site) -> None:
    """case-107"""
    site.worker(targets=AGENTS)
    too_long = site.client.submit(
        frugal, task(say("x" * 200)) + " words" * 3_000, budget=Budget(max_total_tokens=1_000)
    )
    assert limit_of(too_long).limit == "max_total_tokens"
    assert asked(site) == []

    # Each reply has ten tokens: the second goes over, and completes the run all the same.
    tight = submit(site, use(note("a")), say("done"), max_output_tokens=15)
    result = tight.result(timeout=15)
    assert (result.output, result.usage.output_tokens) == ("done", 20)
    assert [request["max_tokens"] for request in asked(site)] == [15, 5]


def test_what_is_reserved_is_what_the_model_may_write(site: Site) -> None:
    site.worker(targets=AGENTS)
    assert submit(site, say("done")).result(timeout=15).output == "done"
    assert submit(site, say("done"), max_output_tokens=2_000).result(timeout=15).output == "done"
    assert [request["max_tokens"] for request in asked(site)] == [4_096, 1_800], "200 are kept for the last answer"


FREE = [(429, "1"), (503, "0")]


def test_refusals_cost_nothing_and_what_may_have_been_billed_costs_what_was_reserved(site: Site) -> None:
    """Turned away twice, cut off by a gateway, too slow, answered."""
    message = {"error": {"message": "not now"}}
    answers = [http_answer(message, status=status, retry_after=after) for status, after in FREE]
    answers += [http_answer("<html>", status=504, content_type="text/html", retry_after="0"), b""]
    answer = http_answer(chat_reply({"content": "done"}, usage={"prompt_tokens": 40, "completion_tokens": 5}))
    with ModelServer(*answers, answer) as server:
        site.worker(targets=AGENTS, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
        run = site.client.submit(remote, "go", tenant="acme")
        usage = run.result(timeout=30).usage
    failed = [event for event in site.events(run.id) if isinstance(event, ModelFailed)]
    assert [event.usage.model_calls for event in failed] == [0, 0, 1, 1]
    assert [event.usage.output_tokens for event in failed] == [0, 0, 100, 100]
    assert usage.model_calls == 3
    assert usage.output_tokens == 205
    assert usage.total_tokens == site.client.tenant("acme")["max_total_tokens"].used


def test_a_request_that_is_refused_for_good_is_free_and_ends_the_run(site: Site) -> None:
    with ModelServer(http_answer({"error": {"message": "no such model"}}, status=404)) as server:
        site.worker(targets=AGENTS, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="none")
        run = site.client.submit(remote, "go")
        with pytest.raises(RunFailed, match="no such model"):
            run.result(timeout=15)
        assert len(server.received) == 1
    assert replace(run.info().usage, active_ms=0) == NO_USAGE


def test_mistakes_count_and_all_figures_agree_also_after_a_crash(site: Site) -> None:
    """case-109: a wrong result, wrong arguments, a refusal that is free, an answer; killed in the third call."""
    victim = site.worker(targets=AGENTS)
    run = site.client.submit(erring, "go", tenant="acme")
    wait_until("the third call is under way", lambda: [t.key for t in site.traces.found("model")][-1:] == ["3/2"])
    assert run.info().usage.total_tokens == 100 + 50 + 160 + 20, "what is under way is not yet used"
    victim.kill()
    site.traces.open("answer")
    site.worker(targets=AGENTS)
    result = run.result(timeout=15)
    assert result.output == 7

    events = site.events(run.id)
    answered = [event.usage for event in events if isinstance(event, ModelReplied)]
    assert [(usage.input_tokens, usage.output_tokens) for usage in answered] == [(100, 50), (160, 20), (180, 30)]
    free, lost = [event.usage for event in events if isinstance(event, ModelFailed)]
    assert (free.model_calls, lost.model_calls, lost.output_tokens) == (0, 1, 100)
    assert [event.reason for event in events if isinstance(event, ReplyRejected)] == ["invalid_output"]
    assert [event.outcome for event in events if isinstance(event, ToolReturned)] == ["invalid", "ok"]

    assert result.usage.total_tokens == 540 + lost.total_tokens
    assert run.info().usage == result.usage == usage_of(site, run.id)
    (day,) = site.client.usage()
    tenant = site.client.tenant("acme")
    assert (day.model_calls, day.input_tokens + day.output_tokens) == (4, result.usage.total_tokens)
    assert (tenant["max_model_calls"].used, tenant["max_total_tokens"].used) == (4, result.usage.total_tokens)
    assert day.cost_usd == tenant["max_cost_usd"].used == result.usage.cost_usd


def usage_of(site: Site, run: str) -> Usage:
    """What all events of a run add up to."""
    recorded = [Recorded(seq=seq, at=0, event=event) for seq, event in enumerate(site.events(run), 1)]
    return RunState.restore(Checkpoint(), recorded).head.usage


# ---- the end of a budget -----------------------------------------------------------------------------------------------


def test_the_last_answer_offers_only_the_exit_and_a_low_budget_is_said(site: Site) -> None:
    site.worker(targets=AGENTS)
    steps = [use(note(str(number))) for number in range(9)]
    assert submit(site, *steps, say("done"), max_steps=10).result(timeout=15).output == "done"
    requests = asked(site)
    assert [request["tools"] == ["terminate"] for request in requests] == [False] * 9 + [True]
    assert requests[-1]["choice"] == "terminate"
    assert [request["step"] for request in requests if "[Budget left" in request["last_words"]] == [10]
    assert "This is your last reply" in requests[-1]["last_words"]


def test_a_run_ends_with_its_limit_and_what_it_has_and_goes_on_with_more(site: Site) -> None:
    site.worker(targets=AGENTS)
    run = submit(site, Step("the first half", (note("a"),)), use(note("b")), use(note("c")), say("done"), max_steps=2)
    error = limit_of(run)
    assert (error.limit, error.partial) == ("max_steps", "the first half")
    info = run.info()
    assert (info.status, info.error, info.partial) == ("budget_exceeded", "max_steps: used 2 of 2", "the first half")
    assert info.reason == "max_steps: used 2 of 2", "lists say so too"
    assert info.budget_left["max_steps"] == 0

    assert run.resume(budget=Budget(max_steps=4)) == "resumed"
    result = run.result(timeout=15)
    assert (result.output, result.steps, result.usage.model_calls) == ("done", 4, 4)
    assert [len(site.traces.found("note", run.id)), len(asked(site))] == [3, 4], "nothing is done twice"


def test_more_budget_reaches_a_running_run_in_time(site: Site) -> None:
    """It comes in the middle of what would have been the last call."""
    site.worker(targets=AGENTS)
    run = submit(
        site,
        use(note("a")),
        use(
            note("b"),
        ),
        say("done", gate="never"),
        say("done"),
        max_steps=2,
    )
    waits = submit(
        site, use(note("a")), Step(uses=(note("b"),), gate="second"), use(note("c")), say("done"), max_steps=2
    )
    assert limit_of(run).limit == "max_steps"
    wait_until("the last call is under way", lambda: [r for r in asked(site) if (r["run"], r["step"]) == (waits.id, 2)])
    waits.add_budget(max_steps=2)
    site.traces.open("second")
    assert waits.result(timeout=15).steps == 4
    assert "run_budget_exceeded" not in site.kinds(waits.id)
    assert waits.info().budget.max_steps == 4


# ---- time --------------------------------------------------------------------------------------------------------------


def ends_out_of_time(site: Site, run: RunHandle[Any], within: float) -> None:
    started = time.monotonic()
    site.reaches(run.id, Status.BUDGET_EXCEEDED, seconds=within)
    assert time.monotonic() - started < within
    assert limit_of(run).limit == "max_wall_seconds"


def test_a_run_that_waits_ends_when_its_wall_time_is_over(site: Site) -> None:
    """Here for a person, who then has nothing to answer any more."""
    site.worker(targets="tests.support.session_agents")
    person = site.client.submit("talker", "ask", budget=Budget(max_wall_seconds=2))
    site.reaches(person.id, Status.WAITING)
    ends_out_of_time(site, person, 6)
    assert person.info().requests == ()


def test_a_run_that_waits_for_a_server_ends_when_its_wall_time_is_over(site: Site) -> None:
    site.worker(targets=AGENTS)
    run = submit(site, say("done", retry_after=(60.0,)), max_wall_seconds=2)
    assert site.reaches(run.id, Status.WAITING).wait == "rate_limit"
    ends_out_of_time(site, run, 6)
    assert len(asked(site)) == 1


def test_a_run_whose_wall_time_is_over_in_the_queue_is_ended_without_a_call(site: Site) -> None:
    """Nobody is there to end it before a worker comes; it then costs nothing."""
    first = submit(site, say("first"), max_wall_seconds=1)
    behind = [
        site.client.submit(frugal, task(say("a", seconds=1.5)), session="s"),
        site.client.submit(frugal, task(say("b")), session="s", budget=Budget(max_wall_seconds=1)),
    ]
    site.passes_time(1.1)
    assert site.record(first.id).status is Status.QUEUED
    site.worker(targets=AGENTS)
    assert behind[0].result(timeout=15).output == "a"
    for run in (first, behind[1]):
        assert limit_of(run).limit == "max_wall_seconds"
        assert run.info().usage.model_calls == 0
    assert {request["run"] for request in asked(site)} == {behind[0].id}


def test_wall_time_ends_a_model_call_and_a_resumed_run_has_what_it_is_given(site: Site) -> None:
    site.worker(targets=AGENTS)
    run = submit(site, say("done", gate="late"), max_wall_seconds=1.5)
    assert limit_of(run).limit == "max_wall_seconds"
    (cut,) = [event for event in site.events(run.id) if isinstance(event, ModelFailed)]
    assert cut.usage.model_calls == 1
    site.traces.open("late")
    age = (datetime.now(UTC) - run.info().created_at).total_seconds()
    run.resume(budget=Budget(max_wall_seconds=age + 30))
    assert run.result(timeout=15).output == "done"
