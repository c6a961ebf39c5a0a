"""Workers that die: whatever they were at, the run ends as if nothing had happened, and nothing is paid or done twice."""

import time
from collections import Counter
from datetime import UTC, datetime

import pytest

from agent.budget import Usage
from agent.events import ModelFailed, ModelReplied, Recorded, ToolReturned
from agent.state import Checkpoint, RunState
from scheduler.lifecycle import Status
from tests.support.plays import hold, hold_again, note, put, say, task, use
from tests.support.site import Site
from tests.support.waiting import wait_until

WAY_SECONDS = 2.5
"""From the end of a lease to the next claim: a sweep (every second where nothing runs), and what a busy machine takes."""

PLAY = task(use(note("a"), put("b", seconds=0.05)), use(note("c")), say("done"))
COMMITS = 7
"""Of that play: the opening, the reply, the two results, the reply, its result, the last reply."""

PLACES = [(where, number) for where in ("before_commit", "after_commit") for number in range(1, COMMITS + 1)]


def test_a_run_survives_a_crash_before_and_after_each_of_its_commits(site: Site) -> None:
    """case-077, case-095, case-140 c: the outcome is that of the undisturbed run, whichever commit its worker died at."""
    site.lease_seconds = 3.0  # fifteen processes start at once: none is to be late with its lease
    runs = {f"{where}-{number}": site.submit(PLAY, queue=f"{where}-{number}").id for where, number in PLACES}
    victims = [
        site.worker(f"--queues={where}-{number}", ready=False, PAWL_FAILPOINTS=f"{where}:{number}=kill")
        for where, number in PLACES
    ]
    for victim in victims:
        assert victim.ended(30) == -9
    site.worker(f"--queues={','.join(runs)}")

    for place, run in runs.items():
        site.reaches(run, Status.COMPLETED)
        _looks_undisturbed(site, run, place)
    _ledgers_agree(site, list(runs.values()))


def _looks_undisturbed(site: Site, run: str, place: str) -> None:
    record, events = site.record(run), site.events(run)
    survived = place == f"after_commit-{COMMITS}"
    assert record.crashes_total == (0 if survived else 1), place
    assert len([event for event in events if isinstance(event, ModelReplied)]) == 3, place
    assert len([event for event in events if isinstance(event, ModelFailed)]) == (
        1 if place in _IN_A_MODEL_CALL else 0
    ), place

    done = Counter(trace.key for trace in site.traces.found(run=run) if trace.what in ("note", "put"))
    told = {event.call: event.outcome for event in events if isinstance(event, ToolReturned)}
    assert set(told) == {"1.0", "1.1", "2.0"}, place
    for call in ("1.0", "2.0"):
        assert done[f"{run}:{call}"] <= 1, f"{place}: {call} was executed twice"
        assert told[call] == "unknown" or (told[call], done[f"{run}:{call}"]) == ("ok", 1), place
    assert told["1.1"] == "ok", place
    assert 1 <= done[f"{run}:1.1"] <= 2, place

    assert Checkpoint.of(record.state).usage == _usage_of_events(site, run), place


_IN_A_MODEL_CALL = {
    f"{where}-{number}" for opening in (1, 4, 6) for where, number in (("after_commit", opening), ("before_commit", opening + 1))
}  # fmt: skip


def _usage_of_events(site: Site, run: str) -> Usage:
    recorded = [Recorded(seq=seq, at=0, event=event) for seq, event in enumerate(site.events(run), 1)]
    return RunState.restore(Checkpoint(), recorded).head.usage


def _ledgers_agree(site: Site, runs: list[str]) -> None:
    ledger = site.redis.hgetall(site.keys.usage(datetime.now(UTC).date()).key)
    usages = [Checkpoint.of(site.record(run).state).usage for run in runs]
    for metric in ("model_calls", "input_tokens", "output_tokens", "cost_nanousd"):
        booked = sum(int(value) for field, value in ledger.items() if field.endswith(f'"{metric}"]'.encode()))
        assert booked == sum(getattr(usage, metric) for usage in usages), metric


@pytest.mark.parametrize(
    ("play", "at"),
    [
        (task(use(note("a")), say("done", gate="gate")), "model"),
        (task(use(note("a"), hold_again("gate")), say("done")), "hold_again"),
    ],
    ids=["model call", "tool"],
)
def test_another_worker_takes_over_within_lease_and_sweep(site: Site, play: str, at: str) -> None:
    """case-077, case-142: killed in the middle of a call; no time limit has a part in it."""
    site.lease_seconds = 2.0
    victim = site.worker()
    run = site.submit(play)
    site.leaves(at, times=2 if at == "model" else 1)
    other = site.worker()

    killed = time.time()
    victim.kill()
    wait_until("the run is claimed anew", lambda: site.kinds(run.id).count("run_claimed") == 2)
    site.traces.open("gate")

    assert run.result(timeout=15).output == "done"
    assert site.claimed_at(run.id) - killed < site.lease_seconds + WAY_SECONDS
    assert "run_requeued" in site.kinds(run.id)
    assert site.record(run.id).crashes_total == 1
    assert [line["outcome"] for line in other.lines("step", run=run.id)][-1] == "completed"
    assert len(site.traces.found("note", run.id)) == 1


def test_a_result_that_was_committed_is_kept_and_a_call_in_doubt_is_told(site: Site) -> None:
    """case-095: one call done, one cut off, one idempotent call cut off."""
    victim = site.worker()
    run = site.submit(task(use(note("mail"), hold("gate"), hold_again("gate")), say("done")))
    site.leaves("hold_again")
    wait_until("the first result is committed", lambda: "tool_returned" in site.kinds(run.id))
    victim.kill()
    site.traces.open("gate")
    site.worker()

    events = [recorded.event for recorded in run.result(timeout=15).events]
    assert {event.call: event.outcome for event in events if isinstance(event, ToolReturned)} == {
        "1.0": "ok",
        "1.1": "unknown",
        "1.2": "ok",
    }
    assert [len(site.traces.found(what, run.id)) for what in ("note", "hold", "hold_again")] == [1, 1, 2]
    assert len({trace.key for trace in site.traces.found("hold_again", run.id)}) == 1
