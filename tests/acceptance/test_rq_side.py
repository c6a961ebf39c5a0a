"""What people do through RQ's own tools, with a real worker at work."""

import subprocess
import sys
from typing import Any

import pytest
from rq import command
from rq.job import Job

from scheduler.lifecycle import Status
from tests.support.plays import hold, note, say, task, use
from tests.support.site import ROOT, Site
from tests.support.waiting import wait_until

JOB: Any = Job
SEND: Any = command


def _rq_status(site: Site, run: str) -> str:
    return JOB.fetch(run, connection=site.redis).get_status().value


def test_suspend_and_resume_stop_and_start_the_taking_of_runs(site: Site) -> None:
    """A run that is under way goes on."""
    site.worker()
    before = site.submit(task(use(note("a"), gate="gate"), say("before")))
    site.leaves("model")
    site.rq("suspend")
    after = site.submit(task(say("after")))
    site.traces.open("gate")

    assert before.result(timeout=15).output == "before"
    wait_until("RQ shows a suspended worker", lambda: " suspended " in site.rq("info", "--raw"))
    assert site.record(after.id).status is Status.QUEUED
    assert "suspended" in after.info().reason
    site.rq("resume")
    assert after.result(timeout=15).output == "after"


@pytest.mark.parametrize("is_told", [False, True], ids=["cancel", "stop command"])
def test_a_cancel_through_rq_cancels_the_run(site: Site, is_told: bool) -> None:
    site.worker()
    run = site.submit(task(use(hold("never")), say("done")))
    site.leaves("hold")
    wait_until("RQ shows it", lambda: _rq_status(site, run.id) == "started")

    if is_told:
        SEND.send_stop_job_command(site.redis, run.id)
    else:
        JOB.fetch(run.id, connection=site.redis).cancel()

    site.reaches(run.id, Status.CANCELLED)
    wait_until("RQ says so too", lambda: _rq_status(site, run.id) == "canceled")


def test_a_cancel_through_rq_of_a_queued_run(site: Site) -> None:
    """It is not rung back to life: whoever sweeps hears of it."""
    run = site.submit(task(say("never")))
    JOB.fetch(run.id, connection=site.redis).cancel()
    site.worker()

    site.reaches(run.id, Status.CANCELLED)
    assert site.traces.found() == []


def test_rq_requeue_resumes_a_failed_run_from_where_it_stood(site: Site) -> None:
    worker = site.worker()
    run = site.submit(task(use(note("a")), say("done", refuses_until="willing")))
    site.reaches(run.id, Status.FAILED)
    wait_until("RQ lists it as failed, with the reason", lambda: "not yet" in _failure(site, run.id))

    site.traces.open("willing")
    site.rq("requeue", run.id, "--queue", "default")

    assert run.result(timeout=15).output == "done"
    assert worker.said("resumed_through_rq", run=run.id)["outcome"] == "resumed"
    assert len(site.traces.found("note", run.id)) == 1
    assert site.kinds(run.id).count("run_resumed") == 1
    wait_until("RQ shows the end", lambda: "0 executing, 1 finished, 0 failed" in site.rq("info", "--raw"))


def _failure(site: Site, run: str) -> str:
    job = JOB.fetch(run, connection=site.redis)
    result = job.latest_result()
    return f"{job.get_status().value} {result.exc_string if result else ''}"


def test_rq_requeue_of_a_running_run_does_nothing_to_it(site: Site) -> None:
    """Through the command, which refuses, and through a second entry in the queue."""
    site.worker()
    run = site.submit(task(use(hold("gate")), say("done")))
    site.leaves("hold")
    site.rq("requeue", run.id, "--queue", "default", code=1)
    for _ in range(3):
        site.redis.rpush("rq:queue:default", run.id)
    wait_until("the entries are taken", lambda: site.redis.llen("rq:queue:default") == 0)
    site.traces.open("gate")

    assert run.result(timeout=15).output == "done"
    assert site.kinds(run.id).count("run_claimed") == 1
    assert len(site.traces.found("hold", run.id)) == 1
    assert site.redis.llen("rq:queue:default:intermediate") == 0


def test_a_stock_worker_leaves_the_record_alone_and_says_so(site: Site) -> None:
    """The next worker of ours does the run, and RQ forgets the failure."""
    run = site.submit(task(say("done")))
    stock = subprocess.run(
        [sys.executable, "-m", "rq.cli", "worker", "default", "--burst", "--url", site.server.url, "-S",
         "rq.serializers.JSONSerializer"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "taken by a stock worker of RQ" in stock.stderr
    assert site.record(run.id).status is Status.QUEUED
    site.worker()

    assert run.result(timeout=15).output == "done"
    wait_until("RQ shows the end", lambda: "0 executing, 1 finished, 0 failed" in site.rq("info", "--raw"))
