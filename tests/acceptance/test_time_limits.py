"""Time limits and retention: what counts, when it begins, and what it never touches."""

import subprocess
import sys
import threading
import time

import pytest

from agent.budget import Budget
from agent.errors import RunNotFound
from scheduler.client import Client
from scheduler.lifecycle import Status
from scheduler.settings import Settings
from tests.support.plays import block, note, say, task, use
from tests.support.site import ROOT, Site
from tests.support.waiting import wait_until

DAY = 24 * 60 * 60


def test_retention_begins_at_the_end_and_ends_for_all_at_once(spoilt_site: Site) -> None:
    """case-094: who waits or asks after it is told at once that the run is gone; a delayed run outlives it while it waits."""
    site = spoilt_site  # what expires while it is looked at looks spoilt
    days = str(1.0 / DAY)
    site.worker(PAWL_RUN_RETENTION_DAYS=days)
    with Client(settings=Settings(redis_url=site.url, run_retention_days=float(days))) as client:
        delayed = client.submit("player", task(say("late")), delay=3.0)
        run = client.submit("player", task(say("done")))
        site.reaches(run.id, Status.COMPLETED)
        wait_until("its keys are gone", lambda: not site.redis.keys(f"*{run.id}*"))
        started = time.monotonic()
        for ask in (run.info, lambda: run.wait(timeout=60), lambda: run.result(timeout=60), lambda: client.get(run.id)):
            with pytest.raises(RunNotFound):
                ask()
        assert time.monotonic() - started < 5
        assert delayed.result(timeout=15).output == "late"


def test_whoever_waits_when_a_run_expires_is_not_left_waiting(spoilt_site: Site) -> None:
    """case-094: the record goes without a word; the waiter hears of it."""
    site = spoilt_site
    run = site.submit(task(say("never")))
    heard: list[BaseException] = []

    def wait() -> None:
        try:
            run.wait(timeout=60)
        except RunNotFound as error:
            heard.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    site.redis.delete(*site.keys.family(run.id))
    waiter.join(10)
    assert heard


def test_active_time_counts_neither_the_queue_nor_an_earlier_failure(site: Site) -> None:
    """case-102: a second of active time; longer in the queue, longer failed; requeued, it is not over before it starts."""
    budget = Budget(max_active_seconds=1.5)
    run = site.submit(task(use(note("a")), say("done", refuses_until="willing")), budget=budget)
    site.passes_time(2.0)
    site.worker()
    site.reaches(run.id, Status.FAILED)
    wait_until("RQ lists it as failed", lambda: " 1 failed" in site.rq("info", "--raw"))
    site.traces.open("willing")
    site.passes_time(2.0)
    site.rq("requeue", run.id, "--queue", "default")

    assert run.result(timeout=15).output == "done"
    assert site.record(run.id).crashes_total == 0


def test_an_active_second_too_many_ends_a_run_until_it_is_given_more(site: Site) -> None:
    """case-102: the limit's name is said, and a larger budget goes on from there."""
    site.worker()
    run = site.submit(task(use(block(1.0)), say("done")), budget=Budget(max_active_seconds=0.8))
    record = site.reaches(run.id, Status.BUDGET_EXCEEDED)
    assert "max_active_seconds" in record.reason or "max_active_seconds" in run.info().error
    run.resume(budget=Budget(max_active_seconds=30))
    assert run.result(timeout=15).output == "done"
    assert len(site.traces.found("block")) == 1


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PAWL_LEASE_SECONDS": "1", "PAWL_RENEW_SECONDS": "0.9"}, "PAWL_RENEW_SECONDS"),
        ({"PAWL_LEASE_SECONDS": "90", "PAWL_RENEW_SECONDS": "1"}, "PAWL_STALL_LIMIT_SECONDS"),
        ({"PAWL_REDIS_URL": "redis://127.0.0.1:1/0?socket_timeout=0.5"}, "socket_timeout"),
        ({"PAWL_SOCKET_TIMEOUT_SECONDS": "0.5"}, "PAWL_SOCKET_TIMEOUT_SECONDS must be 2 to 60 seconds"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_at_the_start(
    site: Site, variables: dict[str, str], words: str
) -> None:
    """case-100, case-102: one line that names the setting."""
    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "worker", "tests.support.player"],
        cwd=ROOT, env={**site.environment, **variables}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
