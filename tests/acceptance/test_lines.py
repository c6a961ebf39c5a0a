"""The line of a session: one run after another, however the one before comes to its end."""

from collections.abc import Callable

import pytest

from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.plays import Step, say, task
from tests.support.site import Site, WorkerProcess

End = Callable[[Site, RunHandle[str], WorkerProcess], None]


def _open(site: Site, first: RunHandle[str], worker: WorkerProcess) -> None:
    site.traces.open("gate")


def _cancel(site: Site, first: RunHandle[str], worker: WorkerProcess) -> None:
    first.cancel()


def _reap(site: Site, first: RunHandle[str], worker: WorkerProcess) -> None:
    worker.kill()
    first.cancel()
    site.worker()


@pytest.mark.parametrize(
    ("end", "status", "step"),
    [
        (_open, Status.COMPLETED, say("first", gate="gate")),
        (_open, Status.FAILED, say("first", gate="gate", refuses_until="never")),
        (_cancel, Status.CANCELLED, say("first", gate="gate")),
        (_reap, Status.CANCELLED, say("first", gate="gate")),
    ],
    ids=["completes", "fails", "is cancelled", "is cancelled and its worker dies"],
)
def test_the_next_run_of_a_session_starts_when_the_first_ends(site: Site, end: End, status: Status, step: Step) -> None:
    worker = site.worker()
    first = site.submit(task(step), session="s1")
    site.leaves("model")
    second = site.submit(task(say("second")), session="s1")
    third = site.submit(task(say("third")), session="s1")
    other = site.submit(task(say("other")), session="s2")

    assert other.result(timeout=15).output == "other"
    assert [site.record(run.id).status for run in (second, third)] == [Status.QUEUED] * 2
    assert f"behind run {first.id}" in second.info().reason
    second.cancel()
    end(site, first, worker)

    site.reaches(first.id, status)
    assert third.result(timeout=15).output == "third"
    assert site.traces.found(run=second.id) == []
