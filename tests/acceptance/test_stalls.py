"""Workers that stand still: a thread keeps the leases, and lets them go with the process; a zombie writes nothing."""

import signal

from scheduler.lifecycle import Status
from tests.support.player import LEASE_SECONDS
from tests.support.plays import block, hog, note, overdue, say, task, use
from tests.support.site import Site
from tests.support.waiting import wait_until


def test_a_zombie_is_refused_and_drops_the_run(site: Site) -> None:
    """case-080: stopped for longer than the lease, its run is another's; awake again, it writes and starts nothing."""
    zombie = site.worker()
    run = site.submit(task(use(note("a")), use(note("b"), gate="gate"), say("done")))
    site.leaves("model", run.id, times=2)
    site.worker()
    zombie.signal(signal.SIGSTOP)
    wait_until("another has the run", lambda: site.kinds(run.id).count("run_claimed") == 2)
    site.traces.open("gate")
    site.reaches(run.id, Status.COMPLETED)
    wait_until("RQ is told", lambda: site.redis.hget(site.keys.run(run.id), "mirror_status") == b"completed")
    before = site.redis.hgetall(site.keys.run(run.id)), site.kinds(run.id), site.traces.found()

    zombie.signal(signal.SIGCONT)

    zombie.said("run_lost", run=run.id)
    other = site.submit(task(say("the zombie lives")))
    assert other.result(timeout=15).output == "the zombie lives"
    own = [trace for trace in site.traces.found() if trace.run == run.id]
    assert (site.redis.hgetall(site.keys.run(run.id)), site.kinds(run.id), own) == before
    assert site.kinds(run.id).count("run_completed") == 1
    assert [trace.text for trace in site.traces.found("note", run.id)] == ["a", "b"]
    assert zombie.alive


def test_a_worker_that_slept_through_its_lease_goes_on_alone(site: Site) -> None:
    """Nobody else is there: it does not take its own run from itself, however much longer than the lease it slept."""
    worker = site.worker()
    for length in (1.2, 1.8, 2.5):
        gate = f"gate-{length}"
        run = site.submit(task(use(note(gate)), say("done", gate=gate)))
        site.leaves("note", run.id)
        worker.signal(signal.SIGSTOP)
        site.passes_time(length * LEASE_SECONDS)
        worker.signal(signal.SIGCONT)
        site.traces.open(gate)

        assert run.result(timeout=15).output == "done"
        assert site.kinds(run.id).count("run_completed") == 1
        assert site.kinds(run.id).count("run_claimed") == 1
        assert site.record(run.id).crashes_total == 0
        assert len(site.traces.found("note", run.id)) == 1


def test_a_tool_that_blocks_the_loop_does_not_lose_the_lease(site: Site) -> None:
    """case-079: blocked for three leases, beside another worker; the log names the place."""
    worker = site.worker()
    run = site.submit(task(use(hog(3 * LEASE_SECONDS)), say("done")))
    site.leaves("hog")
    site.worker()

    assert run.result(timeout=15).output == "done"
    assert len(site.traces.found("hog", run.id)) == 1
    assert site.kinds(run.id).count("run_claimed") == 1
    assert site.record(run.id).crashes_total == 0
    assert "hog (player.py" in worker.said("loop_blocked")["where"]


def test_a_tool_that_blocks_its_thread_lets_others_go_on(site: Site) -> None:
    """case-079: a sync tool of three leases runs once; other runs of the same worker end meanwhile."""
    site.worker()
    slow = site.submit(task(use(block(3 * LEASE_SECONDS)), say("slow")))
    site.leaves("block")
    quick = site.submit(task(use(note("a")), say("quick")))

    assert quick.result(timeout=15).output == "quick"
    assert site.record(slow.id).status is Status.RUNNING
    assert slow.result(timeout=15).output == "slow"
    assert len(site.traces.found("block", slow.id)) == 1
    assert site.kinds(slow.id).count("run_claimed") == 1


def test_a_run_without_a_time_limit_is_alive_as_long_as_its_lease(site: Site) -> None:
    """case-142: a step of three leases, while RQ's tools look on (and reap what they think is dead): never failed."""
    site.worker()
    run = site.submit(task(use(block(3 * LEASE_SECONDS)), say("done")))
    site.leaves("block")
    assert "1 executing, 0 finished, 0 failed" in site.rq("info", "--raw")
    for _ in range(2):
        assert " 0 failed" in site.rq("info", "--raw")

    assert run.result(timeout=15).output == "done"
    assert site.kinds(run.id).count("run_claimed") == 1


def test_a_time_out_and_a_lease_of_one_length_never_give_two_executions(site: Site) -> None:
    """case-101: the tool takes as long as its time-out, which is as long as the lease; two workers, many runs."""
    for _ in range(2):
        site.worker()
    runs = [site.submit(task(use(overdue(LEASE_SECONDS)), say("done"))) for _ in range(40)]

    for run in runs:
        assert run.result(timeout=20).output == "done"
        assert len(site.traces.found("overdue", run.id)) == 1
        assert site.kinds(run.id).count("run_claimed") == 1


def test_a_run_that_ends_is_not_taken_for_a_lost_one(site: Site) -> None:
    """Leases are renewed all the time while hundreds of runs end: a renewal that finds one ended says nothing of it."""
    worker = site.worker(PAWL_RENEW_SECONDS="0.001")
    runs = [site.submit(task(use(note("a")), say("done"))) for _ in range(400)]
    for run in runs:
        assert run.result(timeout=30).output == "done"
    assert worker.terminate() == 0
    assert not worker.lines("run_lost")
