"""Rings: a lost, doubled or late one costs time, never correctness; a backlog is not rung again and again."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from rq.job import Job

from agent.errors import Conflict
from agent.events import RunCreated, encode
from scheduler.connection import connect
from scheduler.inputs import NewRun
from scheduler.rq_bridge import RunJob, enqueue
from scheduler.scripting import run_blocking, run_many
from scheduler.scripts import Scripts
from scheduler.store import Store
from scheduler.sweeps import Sweeper
from tests.support.player import player
from tests.support.plays import hold, note, say, task, use
from tests.support.site import Site
from tests.support.waiting import wait_until

QUEUE = "rq:queue:default"
JOB: Any = Job


def test_a_lost_ring_is_made_good(site: Site) -> None:
    run = site.submit(task(say("done")))
    site.redis.delete(QUEUE)
    site.worker()
    assert run.result(timeout=15).output == "done"


def test_a_ring_that_died_with_its_worker_is_made_good(site: Site) -> None:
    """Taken from the queue, and never claimed."""
    run = site.submit(task(say("done")))
    assert site.redis.lmove(QUEUE, f"{QUEUE}:intermediate") == run.id.encode()
    site.worker()
    assert run.result(timeout=15).output == "done"
    wait_until("nothing is left of it", lambda: not site.redis.exists(f"{QUEUE}:intermediate"))


def test_a_run_that_rings_many_times_runs_once(site: Site) -> None:
    run = site.submit(task(use(note("a")), say("done")))
    site.redis.rpush(QUEUE, *[run.id] * 3, "0-unknown")
    for _ in range(2):
        site.worker()

    assert run.result(timeout=15).output == "done"
    wait_until("all entries are taken", lambda: not site.redis.exists(QUEUE, f"{QUEUE}:intermediate"))
    assert site.kinds(run.id).count("run_claimed") == 1
    assert len(site.traces.found("note")) == 1


def test_an_emptied_queue_is_no_cancel(site: Site) -> None:
    """`rq empty` takes entries and jobs; both are made again."""
    runs = [site.submit(task(say("done"))) for _ in range(3)]
    site.rq("empty", "default")
    assert not site.redis.exists(QUEUE, *(f"rq:job:{run.id}" for run in runs))
    site.worker()

    for run in runs:
        assert run.result(timeout=15).output == "done"
        wait_until("RQ shows the end", lambda run=run: JOB.fetch(run.id, connection=site.redis).is_finished)


def test_the_job_of_a_running_run_may_be_deleted(site: Site) -> None:
    site.worker()
    run = site.submit(task(use(hold("gate")), say("done")))
    site.leaves("hold")
    JOB.fetch(run.id, connection=site.redis).delete()
    site.traces.open("gate")

    assert run.result(timeout=15).output == "done"
    assert site.kinds(run.id).count("run_claimed") == 1


def test_an_accepted_run_needs_no_ring(site: Site) -> None:
    """case-140 b: whoever submitted it died between the record and the ring. The record alone is enough."""
    created = RunCreated(agent="player", task=task(say("done")), budget=player.budget)
    new = NewRun(id="0-torn", digest="d", event=encode(created), agent="player", queue="default")
    run_blocking(site.redis, Scripts().create(new))
    assert not site.redis.exists(QUEUE)
    site.worker()
    assert site.client.get("0-torn").result(timeout=15).output == "done"


def test_a_second_submit_with_the_same_key_is_the_same_run(site: Site) -> None:
    """Before, while and after it runs."""
    play = task(use(note("a"), hold("gate")), say("done"))
    first = site.submit(play, idempotency_key="mail-42")
    assert site.submit(play, idempotency_key="mail-42").id == first.id
    site.worker()
    site.leaves("hold")
    assert site.submit(play, idempotency_key="mail-42").id == first.id
    with pytest.raises(Conflict):
        site.submit(task(say("another")), idempotency_key="mail-42")
    site.traces.open("gate")

    assert first.result(timeout=15).output == "done"
    assert site.submit(play, idempotency_key="mail-42").result(timeout=15).run_id == first.id
    assert len(site.traces.found("note")) == 1


def test_a_backlog_is_not_rung_again_and_again(spoilt_site: Site) -> None:
    """Ten thousand runs and no worker: over a minute of sweeps the queue stays as long as it was."""
    Backlog(spoilt_site).sweeps(10_000, 120, lambda length: length == 10_000)


def test_a_lost_entry_of_a_backlog_is_rung_again(site: Site) -> None:
    """Within a minute or two, and once."""
    backlog = Backlog(site)
    backlog.sweeps(5, 10, lambda length: length == 5)
    lost = site.redis.lpop(QUEUE)
    backlog.sweeps(0, 240, lambda length: length in (4, 5))
    entries = site.redis.lrange(QUEUE, 0, -1)
    assert len(entries) == 5
    assert entries[-1] == lost


class Backlog:
    """Runs that no worker takes, under sweeps; the store's clock is moved, so that a minute takes a second."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._now = 4_000_000_000_000

    def sweeps(self, runs: int, passes: int, fits: Callable[[int], bool]) -> None:
        """Accepts runs, and sweeps every half second. The queue's length must always fit."""
        asyncio.run(self._sweeps(runs, passes, fits))

    async def _sweeps(self, runs: int, passes: int, fits: Callable[[int], bool]) -> None:
        redis = connect(self._site.url)
        store = Store(redis)
        sweeper = Sweeper(redis, store, ["default"])
        self._move_clock()
        await _accept(store, runs)
        for _ in range(passes):
            self._move_clock()
            assert (await sweeper.once()).code != "fresh"
            assert fits(self._site.redis.llen(QUEUE))
        await redis.aclose()

    def _move_clock(self) -> None:
        self._now += 500
        self._site.redis.set(self._site.keys.clock, self._now)


async def _accept(store: Store, runs: int) -> None:
    body = encode(RunCreated(agent="player", task=task(say("done")), budget=player.budget))
    names = [f"0-{number:05}" for number in range(runs)]
    for start in range(0, runs, 500):
        some = names[start : start + 500]
        new = [NewRun(id=name, digest="d", event=body, agent="player", queue="default") for name in some]
        await run_many(store.redis, [store.scripts.create(one) for one in new])
        jobs = [
            RunJob(run_id=name, queue="default", agent="player", task="wait", retention_seconds=60) for name in some
        ]
        await run_many(store.redis, [enqueue(store.keys, job) for job in jobs])
