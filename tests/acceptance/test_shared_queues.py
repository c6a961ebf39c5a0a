"""Workers with different agents on one queue, which is what one gets who never speaks of queues."""

from scheduler.lifecycle import Status
from tests.support.plays import say, task
from tests.support.site import Site
from tests.support.waiting import wait_until

OTHER = "tests.support.example_agents:talker"


def test_a_run_that_the_wrong_worker_took_comes_to_the_right_one_at_once(site: Site) -> None:
    wrong = [site.worker(targets=OTHER) for _ in range(2)]
    site.worker()
    runs = [site.submit(task(say("done"))) for _ in range(20)]

    for run in runs:
        assert run.result(timeout=5).output == "done"
        assert site.record(run.id).crashes_total == 0
    assert wrong[0].lines("run_passed_on") or wrong[1].lines("run_passed_on"), "none was taken by a wrong one"
    assert not [line for worker in wrong for line in worker.lines("run_deferred")]


def test_a_run_that_nobody_could_run_need_not_wait_any_longer_when_the_right_worker_comes(site: Site) -> None:
    wrong = site.worker(targets=OTHER)
    run = site.submit(task(say("done")))
    wrong.said("run_deferred", run=run.id)
    assert "no worker of queue" in site.record(run.id).reason

    right = site.worker()
    right.said("runs_hastened", agent="player", runs=1)
    assert run.result(timeout=30).output == "done"


def test_what_is_passed_on_waits_for_room_and_for_the_end_of_a_suspension(site: Site) -> None:
    wrong = site.worker(targets=OTHER)
    site.worker("--concurrency", "1")
    first = site.submit(task(say("first", gate="gate")))
    site.leaves("model")
    second = site.submit(task(say("second")))
    wrong.said("run_passed_on", run=second.id)
    assert site.record(second.id).status is Status.QUEUED

    site.rq("suspend")
    site.traces.open("gate")
    assert first.result(timeout=15).output == "first"
    site.passes_time(1.5)  # a place is free, and sweeps have looked
    assert site.record(second.id).status is Status.QUEUED

    site.rq("resume")
    assert second.result(timeout=10).output == "second"


def test_a_hint_that_nobody_understands_harms_nothing(site: Site) -> None:
    worker = site.worker()
    listening = wait_until("the worker listens", lambda: site.redis.pubsub_numsub(site.keys.hints)[0][1], 15)
    for hint in (b"\xff\xfe", b"", b"{}", b"[1]", b'{"run": "0-none", "queue": "default", "agent": "player"}'):
        assert site.redis.publish(site.keys.hints, hint) == listening

    assert site.submit(task(say("done"))).result(timeout=15).output == "done"
    assert worker.alive
    assert not worker.lines(level="error")
