"""Workers whose interpreter does not answer: a warden keeps their leases, as long as they have a right to them."""

import os
import signal
import time

from agent.events import ToolReturned
from scheduler.lifecycle import Status
from tests.support.player import LEASE_SECONDS
from tests.support.plays import hold, hold_again, note, say, seize, task, use
from tests.support.site import Site, WorkerProcess
from tests.support.waiting import is_gone, wait_until

HELD_SECONDS = 4  # more than three leases


def _warden_of(worker: WorkerProcess) -> int:
    return worker.said("warden_started")["warden"]


def test_a_tool_that_holds_the_interpreter_does_not_lose_the_lease(site: Site) -> None:
    """case-079: held for more than three leases, beside another worker; the other runs go on afterwards, the log names it."""
    held = site.worker()
    neighbour = site.submit(task(use(hold("gate")), use(note("a")), say("done")))
    site.leaves("hold", neighbour.id)
    run = site.submit(task(use(seize(HELD_SECONDS)), say("done")))
    site.leaves("seize")
    site.worker()

    said = held.said("interpreter_held")
    assert said["leases"] == 2
    assert said["tools"] == [f"hold of run {neighbour.id}", f"seize of run {run.id}"]
    assert run.result(timeout=20).output == "done"
    site.traces.open("gate")
    assert neighbour.result(timeout=15).output == "done"
    for one, tool in ((run, "seize"), (neighbour, "hold")):
        assert len(site.traces.found(tool, one.id)) == 1
        assert site.kinds(one.id).count("run_claimed") == 1
        assert site.record(one.id).crashes_total == 0
    assert held.said("interpreter_answers_again")["seconds"] > 3 * LEASE_SECONDS
    assert not held.lines("run_lost")


def test_a_tool_that_holds_the_interpreter_for_too_long_does(site: Site) -> None:
    """Longer than the stall limit: another takes the run, and is told of the doubt; nothing is done twice."""
    held = site.worker(PAWL_STALL_LIMIT_SECONDS="1.5")
    run = site.submit(task(use(seize(HELD_SECONDS + 2)), say("done")))
    site.leaves("seize")
    site.worker()

    assert run.result(timeout=20).output == "done"
    assert len(site.traces.found("seize", run.id)) == 1
    assert [event.outcome for event in site.events(run.id) if isinstance(event, ToolReturned)] == ["unknown"]
    assert held.said("leases_let_go")["tools"] == [f"seize of run {run.id}"]
    held.said("run_lost", run=run.id)
    assert site.submit(task(say("next"))).result(timeout=15).output == "next"


def test_a_worker_that_dies_while_it_is_held_is_not_outlived_by_its_warden(site: Site) -> None:
    """Killed while the warden renews: the run waits for one lease and a sweep, as that of any dead worker."""
    held = site.worker()
    run = site.submit(task(use(seize(60)), say("done")))
    site.leaves("seize")
    site.worker()
    held.said("interpreter_held")

    killed = time.time()
    held.kill()
    wait_until("the warden is gone", lambda: is_gone(_warden_of(held)), 10)
    assert run.result(timeout=15).output == "done"
    assert site.claimed_at(run.id) - killed < LEASE_SECONDS + 1.5
    assert site.record(run.id).crashes_total == 1


def test_a_worker_that_is_stopped_while_it_is_held_loses_its_runs(site: Site) -> None:
    """A stopped worker is none, whatever it did before."""
    stopped = site.worker()
    run = site.submit(task(use(seize(HELD_SECONDS)), say("done")))
    site.leaves("seize")
    site.worker()
    stopped.said("interpreter_held")
    stopped.signal(signal.SIGSTOP)

    assert run.result(timeout=15).output == "done"
    assert site.kinds(run.id).count("run_claimed") == 2
    stopped.signal(signal.SIGCONT)
    stopped.said("run_lost", run=run.id)


def test_a_warden_that_dies_is_started_again_and_knows_all_leases(site: Site) -> None:
    """The worker goes on meanwhile. The end of the worker is the end of its warden."""
    worker = site.worker()
    neighbour = site.submit(task(use(hold_again("gate")), say("done")))
    site.leaves("hold_again", neighbour.id)
    first = _warden_of(worker)
    os.kill(first, signal.SIGTERM)  # as the rest of a group that is told to end: it stays
    os.kill(first, signal.SIGKILL)

    assert worker.said("warden_died", warden=first)["code"] == -signal.SIGKILL
    assert site.submit(task(say("next"))).result(timeout=15).output == "next"
    wait_until("a warden is started again", lambda: len(worker.lines("warden_started")) == 2)
    second = _warden_of(worker)
    run = site.submit(task(use(seize(HELD_SECONDS)), say("done")))
    site.leaves("seize")
    site.worker()
    assert worker.said("interpreter_held")["leases"] == 2
    assert run.result(timeout=20).output == "done"
    assert site.record(neighbour.id).status is Status.RUNNING
    assert site.kinds(neighbour.id).count("run_claimed") == 1
    site.traces.open("gate")
    assert neighbour.result(timeout=15).output == "done"

    assert worker.terminate() == 0
    wait_until("the warden is gone", lambda: is_gone(second), 2)
