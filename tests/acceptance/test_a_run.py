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
