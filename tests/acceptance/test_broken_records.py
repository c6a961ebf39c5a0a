"""Broken records: a clear error, kept for inspection, and nobody else is harmed."""

from collections.abc import Callable
from typing import Any

import pytest

from agent.errors import BrokenRecord
from agent.events import RunFailed, ToolReturned
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.plays import grumble, hold, hold_again, note, say, task, use
from tests.support.site import Site

Spoil = Callable[[Any, str, str], object]


def _garbage_in_place_of_the_record(redis: Any, record: str, _: str) -> object:
    return redis.set(record, b"\x80\x04not json")


def _garbage_status(redis: Any, record: str, _: str) -> object:
    return redis.hset(record, "status", "asleep")


def _garbage_number(redis: Any, record: str, _: str) -> object:
    return redis.hset(record, "seq", "many")


def _no_events(redis: Any, _: str, events: str) -> object:
    return redis.delete(events)


def _works(site: Site) -> None:
    assert site.submit(task(use(note("a")), say("healthy"))).result(timeout=15).output == "healthy"


@pytest.mark.parametrize("spoil", [_garbage_in_place_of_the_record, _garbage_status, _garbage_number])
def test_a_record_that_cannot_be_read_is_named_and_passed_over(spoilt_site: Site, spoil: Spoil) -> None:
    """case-092: while it is queued; lists flag it, and the worker goes on."""
    site = spoilt_site
    run = site.submit(task(say("never")))
    spoil(site.redis, site.keys.run(run.id), site.keys.events(run.id))
    worker = site.worker()
    assert worker.said("record_broken", run=run.id)["level"] == "error"
    _works(site)

    page = site.client.runs()
    assert page.broken == (run.id,)
    assert [info.status for info in page.runs] == [Status.COMPLETED]
    with pytest.raises(BrokenRecord):
        run.info()
    assert worker.alive


@pytest.mark.parametrize("spoil", [_garbage_in_place_of_the_record, _garbage_status, _no_events])
def test_a_record_that_breaks_under_its_owner_harms_no_other(spoilt_site: Site, spoil: Spoil) -> None:
    """Its worker keeps the leases of the others, and a second one does not stumble over it."""
    site = spoilt_site
    workers = [site.worker(), site.worker()]
    broken = site.submit(task(use(hold("gate")), say("never")))
    healthy = [site.submit(task(use(hold("gate")), say("healthy"))) for _ in range(10)]
    site.leaves("hold", times=11)
    spoil(site.redis, site.keys.run(broken.id), site.keys.events(broken.id))
    before = site.redis.get(site.keys.swept_at)
    site.passes_time(3 * site.lease_seconds)
    site.traces.open("gate")

    for run in healthy:
        assert run.result(timeout=15).output == "healthy"
        assert site.kinds(run.id).count("run_claimed") == 1
    assert site.redis.get(site.keys.swept_at) != before
    assert all(worker.alive for worker in workers)
    _works(site)


def _handed_back(site: Site) -> RunHandle[str]:
    """A run in its second step, queued."""
    worker = site.worker("--grace=0")
    run = site.submit(task(use(note("a")), use(hold_again("gate")), say("done")))
    site.leaves("hold_again")
    worker.terminate()
    site.traces.open("gate")
    return run


@pytest.mark.parametrize("field", ["state", "open", "metadata"])
def test_a_run_whose_checkpoint_cannot_be_read_fails_and_goes_on_once_it_is_mended(site: Site, field: str) -> None:
    """case-092: failed with the reason at once, not after three crashes; kept as it was; resumed after the repair."""
    run = _handed_back(site)
    good = site.redis.hget(site.keys.run(run.id), field)
    site.redis.hset(site.keys.run(run.id), field, b"token \x80garbage")
    site.worker()

    record = site.reaches(run.id, Status.FAILED)
    assert record.reason.startswith("broken_record")
    assert record.crashes_total == 0
    with pytest.raises(BrokenRecord):
        run.info()
    site.redis.hset(site.keys.run(run.id), field, good)
    run.resume()
    assert run.result(timeout=15).output == "done"
    assert len(site.traces.found("note", run.id)) == 1


def test_a_run_whose_history_has_a_gap_fails(spoilt_site: Site) -> None:
    site = spoilt_site
    run = _handed_back(site)
    site.redis.xdel(site.keys.events(run.id), "3-0")
    site.worker()

    site.reaches(run.id, Status.FAILED)
    ending = site.events(run.id)[-1]
    assert isinstance(ending, RunFailed)
    assert ending.reason == "broken_record"
    assert "event 3 is missing" in ending.error
    _works(site)


def test_an_event_that_is_none_fails_its_run_only(spoilt_site: Site) -> None:
    """Claimed in one batch with healthy runs."""
    site = spoilt_site
    broken = site.submit(task(say("never")))
    healthy = [site.submit(task(say("healthy"))) for _ in range(5)]
    site.redis.delete(site.keys.events(broken.id))
    site.redis.xadd(site.keys.events(broken.id), {"x": "y"}, id="1-0")
    worker = site.worker()

    assert site.reaches(broken.id, Status.FAILED).reason.startswith("broken_record")
    for run in healthy:
        assert run.result(timeout=15).output == "healthy"
        assert site.kinds(run.id).count("run_claimed") == 1
    assert worker.alive


def test_a_run_of_an_agent_that_no_worker_has_waits_and_says_why(site: Site) -> None:
    """case-092: a deploy without the agent. The run is no failure; a worker that has the agent does it."""
    run = site.submit(task(say("done")))
    other = site.worker(targets="tests.support.example_agents:talker")
    other.said("run_deferred", run=run.id)
    assert site.record(run.id).status is Status.QUEUED
    assert "no worker has the agent 'player'" in run.info().reason
    assert site.record(run.id).crashes_total == 0
    other.terminate()
    site.worker()
    assert run.result(timeout=20).output == "done"


def test_an_error_that_cannot_be_pickled_is_stored_as_its_type_and_text(site: Site) -> None:
    """case-092: the model reads it, and the run goes on."""
    site.worker()
    run = site.submit(task(use(grumble()), say("done")))
    result = run.result(timeout=15)
    (returned,) = [recorded.event for recorded in result.events if isinstance(recorded.event, ToolReturned)]
    assert (returned.outcome, returned.content) == ("error", "Grumble: I hold a lock")
