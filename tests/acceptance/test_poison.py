"""Poison: a run that kills its workers ends as failed and harms only itself."""

import pytest

from agent import errors
from agent.events import RunFailed
from scheduler.lifecycle import Status
from tests.support.plays import boom, hold_again, note, put, say, task, use
from tests.support.rogue_agents import ROGUES
from tests.support.site import Site
from tests.support.waiting import wait_until

HEALTHY = 100


def test_one_poison_run_among_a_hundred_healthy_ones(site: Site) -> None:
    """case-086: it kills its process each time; only it fails, and says why; the others lose nothing."""
    parent = site.worker("--processes=3", "--grace=1", ready=False)
    plays = task(use(note("a"), seconds=0.5), use(put("b"), seconds=0.5), say("done", seconds=0.5))
    before = [site.submit(plays) for _ in range(HEALTHY // 2)]
    poison = site.submit(task(use(boom()), say("never")))
    after = [site.submit(plays) for _ in range(HEALTHY // 2)]

    site.reaches(poison.id, Status.FAILED, seconds=40)
    ending = site.events(poison.id)[-1]
    assert isinstance(ending, RunFailed)
    assert ending.reason == "worker_lost"
    assert poison.info().reason.startswith("worker_lost")
    assert len(site.traces.found("boom")) == 3
    assert site.kinds(poison.id).count("run_requeued") == 2
    for run in (*before, *after):
        assert run.result(timeout=30).output == "done"
        notes = site.traces.found("note", run.id)
        assert len(notes) <= 1, "not idempotent: never twice, whatever died"
        assert len({trace.key for trace in site.traces.found("put", run.id)}) == 1
    wait_until("RQ lists one failure", lambda: f" {HEALTHY} finished, 1 failed" in site.rq("info", "--raw"))
    parent.terminate()


def test_many_runs_with_a_crash_are_taken_a_few_at_a_time(site: Site) -> None:
    """A process takes 32 runs that have crashed at their step; one that moves on makes room for the next."""
    victim = site.worker()
    play = task(use(hold_again("gate")), say("done"))
    runs = [site.submit(play) for _ in range(70)]
    site.leaves("hold_again", times=70)
    victim.kill()
    site.worker()

    wait_until("32 are taken", lambda: _running(site) == 32)
    site.leaves("hold_again", times=70 + 32)
    assert _running(site) == 32
    site.traces.open("gate")
    for run in runs:
        assert run.result(timeout=20).output == "done"
        assert site.record(run.id).crashes_total == 1


def _running(site: Site) -> int:
    return site.redis.zcard(site.keys.leases)


@pytest.mark.parametrize("rogue", ROGUES)
def test_a_tool_that_ends_its_process_otherwise_is_poison_too(site: Site, rogue: str) -> None:
    """Whatever the exit code: the parent fills the place again, and hands nothing over without counting the crash."""
    parent = site.worker("--processes=2", "--grace=1", targets="tests.support.rogue_agents", ready=False)
    wait_until("both are there", lambda: len(parent.lines("worker_started")) == 2)
    poison = site.client.submit(rogue, "go")
    site.reaches(poison.id, Status.FAILED, seconds=40)

    assert site.record(poison.id).reason.startswith("worker_lost")
    assert len(site.traces.found("rogue")) == 3
    wait_until("three have died", lambda: len(parent.lines("process_died")) == 3)
    wait_until("both are there again", lambda: len(parent.lines("worker_started")) == 5)
    assert parent.terminate() == 0


def test_dependencies_that_leave_the_process_fail_their_run_alone(site: Site) -> None:
    worker = site.worker(targets="tests.support.rogue_agents")
    run = site.client.submit("homeless", "go")
    with pytest.raises(
        errors.RunFailed, match="action_context=_exit_instead: SystemExit: no dependencies for homeless"
    ):
        run.result(timeout=20)
    assert worker.alive
