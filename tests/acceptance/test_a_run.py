"""A run from the door to its result, and what RQ's tools show of it on the way."""

from scheduler.lifecycle import Status
from tests.support.player import INPUT_TOKENS, OUTPUT_TOKENS
from tests.support.plays import hold, note, put, say, task, use
from tests.support.site import Site


def test_a_run_goes_from_submit_to_its_result(site: Site) -> None:
    """Submitted before there is a worker; its result, events, usage and log agree."""
    run = site.submit(task(use(note("a"), put("b")), use(note("c")), say("done")))
    worker = site.worker()

    result = run.result(timeout=15)

    assert result.output == "done"
    assert [event.event.type for event in result.events] == site.kinds(run.id)
    assert site.kinds(run.id) == [
        "run_created", "run_claimed", "model_replied", "tool_returned", "tool_returned", "model_replied", "tool_returned",
        "model_replied", "run_completed",
    ]  # fmt: skip
    assert sorted(trace.text for trace in site.traces.found() if trace.text) == ["a", "b", "c"]
    assert (result.usage.model_calls, result.usage.tool_calls) == (3, 3)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3 * INPUT_TOKENS, 3 * OUTPUT_TOKENS)
    assert [line["step"] for line in worker.lines("step", run=run.id)] == [1, 2, 3]


def test_rq_shows_the_truth_while_it_runs_and_after(site: Site) -> None:
    worker = site.worker()
    run = site.submit(task(use(hold("gate")), say("done")))
    site.leaves("hold")

    assert "queue default 0, 1 executing, 0 finished, 0 failed" in site.rq("info", "--raw")
    site.traces.open("gate")
    site.reaches(run.id, Status.COMPLETED)
    worker.terminate()
    assert "queue default 0, 0 executing, 1 finished, 0 failed" in site.rq("info", "--raw")


def test_runs_take_turns_where_there_is_one_place(site: Site) -> None:
    """One that has been there for long gives its place up to one that waits, and goes on later."""
    site.worker("--concurrency=1")
    long = site.submit(task(*(use(note(str(n)), seconds=0.25) for n in range(32)), say("long")))
    site.leaves("note", long.id)
    short = site.submit(task(say("short")))

    assert short.result(timeout=15).output == "short"
    assert site.record(long.id).status is not Status.COMPLETED
    assert long.result(timeout=20).output == "long"
    assert [trace.text for trace in site.traces.found("note", long.id)] == [str(n) for n in range(32)]
    assert site.kinds(long.id).count("run_claimed") == 2
    assert site.record(long.id).crashes_total == 0


def test_an_activation_may_be_one_step(site: Site) -> None:
    """Then every step is an execution of its own to RQ."""
    site.worker("--max-steps-per-activation=1")
    run = site.submit(task(use(note("a")), use(note("b")), say("done")))
    assert run.result(timeout=15).output == "done"
    assert site.kinds(run.id).count("run_claimed") == 3


def test_the_most_urgent_queue_comes_first(site: Site) -> None:
    site.worker("--concurrency=1")
    first = site.submit(task(say("first", gate="gate")))
    site.leaves("model")
    runs = {priority: site.submit(task(say(priority)), priority=priority) for priority in ("low", "default", "high")}
    site.traces.open("gate")

    for run in (first, *runs.values()):
        run.result(timeout=15)
    claims = {priority: site.claimed_at(run.id) for priority, run in runs.items()}
    assert claims["high"] <= claims["default"] <= claims["low"]
