"""Cancels: within two seconds, whatever the run is at, with hints and without."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.player import careful
from tests.support.plays import block, hold, note, say, task, use
from tests.support.site import Site

BAR_SECONDS = 2.0


def _seconds_to_cancel(site: Site, run: RunHandle[str]) -> float:
    started = time.monotonic()
    run.cancel()
    site.reaches(run.id, Status.CANCELLED)
    return time.monotonic() - started


@pytest.mark.parametrize(
    ("play", "at", "kinds"),
    [
        (task(use(note("a"), gate="never"), say("done")), "model", ["model_failed"]),
        (task(use(hold("never")), say("done")), "hold", ["model_replied", "tool_returned"]),
        (task(use(block(5)), say("done")), "block", ["model_replied", "tool_returned"]),
    ],
    ids=["model call", "tool", "tool in a thread"],
)
def test_a_cancel_reaches_a_run_in_the_middle_of_a_call(site: Site, play: str, at: str, kinds: list[str]) -> None:
    worker = site.worker()
    run = site.submit(play)
    site.leaves(at)

    assert _seconds_to_cancel(site, run) < BAR_SECONDS
    assert site.kinds(run.id) == ["run_created", "run_claimed", *kinds, "run_cancelled"]
    assert worker.alive
    assert site.submit(task(say("next"))).result(timeout=15).output == "next"


def test_a_cancel_reaches_a_run_that_is_still_being_made_ready(site: Site) -> None:
    site.worker()
    run = site.client.submit(careful, task(say("never")))
    site.leaves("gather")
    assert _seconds_to_cancel(site, run) < BAR_SECONDS
    assert site.kinds(run.id) == ["run_created", "run_claimed", "run_cancelled"]


@contextmanager
def _listeners_killed(site: Site, seconds: float) -> Generator[None]:
    """Subscribers lose their connection again and again."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(seconds):
            site.redis.client_kill_filter(_type="pubsub")

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    over.set()
    thread.join()


def test_a_cancel_needs_no_hint(site: Site) -> None:
    """case-085: whoever listens is cut off all the time; the cancel comes with the renewal of the lease."""
    worker = site.worker()
    run = site.submit(task(say("done", gate="never")))
    site.leaves("model")
    with _listeners_killed(site, 0.05):
        assert _seconds_to_cancel(site, run) < BAR_SECONDS
    assert worker.alive


def test_a_listener_that_was_cut_off_listens_again(site: Site) -> None:
    """case-085: and the followers of a run miss nothing."""
    worker = site.worker("--queues=default", PAWL_RENEW_SECONDS="0.5", PAWL_LEASE_SECONDS="20")
    run = site.submit(task(use(note("a"), gate="first"), say("done", gate="never")))
    followed = run.events(follow=True)
    assert next(followed).seq == 1
    site.leaves("model")
    site.redis.client_kill_filter(_type="pubsub")
    site.redis.client_kill_filter(_type="normal", skipme=True)
    site.traces.open("first")
    site.leaves("model", times=2)

    assert _seconds_to_cancel(site, run) < BAR_SECONDS
    seqs = [event.seq for event in followed]
    assert seqs == list(range(2, 2 + len(seqs)))
    assert worker.alive


def test_queued_and_waiting_runs_end_at_once(site: Site) -> None:
    queued = site.submit(task(say("never")))
    assert _seconds_to_cancel(site, queued) < 1
    site.worker()
    waiting = site.submit(task(say("late", retry_after=(60.0,))))
    site.reaches(waiting.id, Status.WAITING)
    assert _seconds_to_cancel(site, waiting) < 1
    assert site.traces.found(run=queued.id) == []
    assert site.redis.zcard(site.keys.due) == 0


def test_a_cancelled_run_whose_worker_dies_is_cancelled(site: Site) -> None:
    """The cancel wins over the takeover."""
    worker = site.worker()
    run = site.submit(task(say("done", gate="never")))
    site.leaves("model")
    worker.kill()
    assert run.cancel() == "asked"
    site.worker()
    site.reaches(run.id, Status.CANCELLED)
    assert len(site.traces.found("model", run.id)) == 1
