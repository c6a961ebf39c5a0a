"""SIGTERM: what can finish its step does, the rest is handed over at once, and no deploy counts against a run."""

import signal
import time

import pytest

from scheduler.lifecycle import Status
from tests.support.player import LEASE_SECONDS, careful
from tests.support.plays import block, hold_again, note, say, task, use
from tests.support.site import Site, WorkerProcess
from tests.support.waiting import wait_until


def test_under_load_nothing_is_lost_and_nothing_done_twice(site: Site) -> None:
    """case-081: three workers one after another over sixty runs; the last one ends them."""
    runs = [site.submit(task(*(use(note(str(n)), seconds=0.1) for n in range(10)), say("done"))) for _ in range(60)]
    for _ in range(2):
        worker = site.worker()
        site.leaves("note", times=len(site.traces.found("note")) + 60)
        assert worker.terminate() == 0
        assert not worker.lines("handing_over"), "every step ends within the grace"
        assert {site.record(run.id).status for run in runs} <= {Status.QUEUED, Status.COMPLETED}
    site.worker()

    for run in runs:
        assert run.result(timeout=20).output == "done"
        assert [trace.text for trace in site.traces.found("note", run.id)] == [str(n) for n in range(10)]
        assert site.record(run.id).crashes_total == 0
    assert len(site.traces.found("model")) == 60 * 11


def test_what_does_not_finish_is_handed_over_at_once(site: Site) -> None:
    """case-081: the grace is shorter than the tool; another worker has the run without waiting for a lease."""
    worker = site.worker("--grace=0.5")
    run = site.submit(task(use(hold_again("gate")), say("done")))
    site.leaves("hold_again")
    site.worker()

    told = time.time()
    assert worker.terminate() == 0
    wait_until("the run is claimed anew", lambda: site.kinds(run.id).count("run_claimed") == 2)
    site.traces.open("gate")
    assert run.result(timeout=15).output == "done"
    assert site.claimed_at(run.id) - told < 0.5 + LEASE_SECONDS
    assert site.record(run.id).crashes_total == 0
    assert "run_requeued" not in site.kinds(run.id)


def test_a_second_signal_ends_at_once(site: Site) -> None:
    """case-081: twice SIGTERM within a long grace; the run is claimable right away."""
    worker = site.worker("--grace=60")
    run = site.submit(task(use(hold_again("gate")), say("done")))
    site.leaves("hold_again")
    worker.signal(signal.SIGTERM)
    worker.said("draining")
    worker.signal(signal.SIGTERM)

    assert worker.ended(5) == 0
    assert site.record(run.id).status is Status.QUEUED
    site.traces.open("gate")
    site.worker()
    assert run.result(timeout=15).output == "done"
    assert site.record(run.id).crashes_total == 0


def test_a_tool_in_a_thread_does_not_hold_up_the_end(site: Site) -> None:
    """case-081: a thread cannot be stopped; its call is in doubt, and the process ends all the same."""
    worker = site.worker("--grace=0.2")
    run = site.submit(task(use(block(60)), say("done")))
    site.leaves("block")

    assert worker.terminate(seconds=8) == 0
    site.worker()
    assert run.result(timeout=15).output == "done"
    assert len(site.traces.found("block")) == 1


def test_a_run_that_is_still_being_made_ready_is_handed_over_too(site: Site) -> None:
    """Its dependencies take longer than the grace. Nothing of it has begun, and nothing is counted."""
    worker = site.worker("--grace=0.2")
    run = site.client.submit(careful, task(say("done")))
    site.leaves("gather")

    assert worker.terminate(seconds=8) == 0
    assert not worker.lines("left_behind")
    assert site.record(run.id).status is Status.QUEUED
    assert site.kinds(run.id) == ["run_created", "run_claimed", "run_released"]
    site.traces.open("kit")
    site.worker()
    assert run.result(timeout=15).output == "done"
    assert site.record(run.id).crashes_total == 0


def test_a_full_worker_hears_the_signal(site: Site) -> None:
    """It has one place, which is taken, and others wait for it."""
    worker = site.worker("--grace=0.2", "--concurrency=1")
    runs = [site.submit(task(use(hold_again("gate")), say("done"))) for _ in range(3)]
    site.leaves("hold_again")
    site.passes_time(1.5)  # it looks for room meanwhile
    assert worker.terminate(seconds=8) == 0
    assert len(site.traces.found("hold_again")) == 1

    site.traces.open("gate")
    site.worker()
    for run in runs:
        assert run.result(timeout=15).output == "done"


@pytest.mark.parametrize(
    ("deploys", "last"), [(4, signal.SIGTERM), (2, signal.SIGKILL)], ids=["four in good order", "two killed in the end"]
)
def test_deploys_do_not_count_against_a_run(site: Site, deploys: int, last: signal.Signals) -> None:
    """case-081: a call that outlasts its workers; crashes are for crashes."""
    run = site.submit(task(use(hold_again("gate")), say("done")))
    for number in range(1, deploys + 1):
        worker = site.worker("--grace=0.1")
        site.leaves("hold_again", times=number)
        _deploy(worker, last)
        site.reaches(run.id, Status.QUEUED, Status.RUNNING)
    site.traces.open("gate")
    site.worker()

    assert run.result(timeout=15).output == "done"
    assert site.record(run.id).crashes_total == 0
    assert site.kinds(run.id).count("run_claimed") == deploys + 1
    assert len({trace.key for trace in site.traces.found("hold_again")}) == 1


def _deploy(worker: WorkerProcess, last: signal.Signals) -> None:
    worker.signal(signal.SIGTERM)
    if last is signal.SIGKILL:
        worker.said("drained")
        worker.kill()
    assert worker.ended() in (0, -9)
