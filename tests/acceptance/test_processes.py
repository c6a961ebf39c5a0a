"""The parent of worker processes: it restarts the dead, and their runs wait for no lease."""

import os
import signal
import time

from scheduler.lifecycle import Status
from tests.support.plays import hold_again, say, task, use
from tests.support.site import Site, WorkerProcess
from tests.support.waiting import is_gone, wait_until


def _child_of(parent: WorkerProcess, name: str) -> int:
    return parent.lines("process_started", child=name)[0]["process"]


def _processes(site: Site) -> WorkerProcess:
    parent = site.worker("--processes=2", "--grace=1", ready=False)
    wait_until("both processes work", lambda: len(parent.lines("worker_started")) == 2, 30)
    return parent


def test_the_runs_of_a_killed_process_are_taken_over_within_a_second(site: Site) -> None:
    """However long the lease: the parent sees the death. It also fills the place again."""
    site.lease_seconds = 60.0
    parent = _processes(site)
    run = site.submit(task(use(hold_again("gate")), say("done")))
    site.leaves("hold_again")
    victim = site.record(run.id).worker

    killed = time.time()
    os.kill(_child_of(parent, victim), signal.SIGKILL)
    wait_until("the run is claimed anew", lambda: site.kinds(run.id).count("run_claimed") == 2)
    assert site.claimed_at(run.id) - killed < 1.0
    site.traces.open("gate")

    assert run.result(timeout=15).output == "done"
    assert site.record(run.id).crashes_total == 1
    wait_until("the place is filled again", lambda: len(parent.lines("worker_started")) == 3)
    assert victim not in site.rq("info", "--raw")
    assert parent.terminate() == 0
    assert site.rq("info", "--raw").count("worker ") == 0


def test_children_end_when_their_parentis_gone(site: Site) -> None:
    """In good order: what they do not finish is handed over, and counts no crash."""
    parent = _processes(site)
    run = site.submit(task(use(hold_again("gate")), say("done")))
    site.leaves("hold_again")
    children = [line["process"] for line in parent.lines("process_started")]
    parent.kill()
    wait_until("both children are gone", lambda: all(is_gone(child) for child in children))
    assert site.record(run.id).status is Status.QUEUED
    assert site.record(run.id).crashes_total == 0

    site.traces.open("gate")
    site.worker()
    assert run.result(timeout=15).output == "done"


def test_a_worker_that_rq_shuts_down_ends_in_good_order(site: Site) -> None:
    """RQ's command; the parent does not fill that place again, and ends when nobody is left."""
    parent = _processes(site)
    for worker in site.client.workers():
        channel = f"rq:pubsub:{worker.name}"
        wait_until("the worker listens", lambda: site.redis.publish(channel, '{"command": "shutdown"}'))  # noqa: B023
    assert parent.ended() == 0
