"""Sweeps, rings, deferrals: what happens to runs that nobody looks after."""

from __future__ import annotations

from itertools import pairwise

import pytest

from scheduler.inputs import NewAsk
from scheduler.lifecycle import Status
from scheduler.policy import Policy
from scheduler.replies import Deferred, Refused, Swept
from scheduler.sweeps.sweeper import SWEEPS_IN_A_LEASE
from tests.support.runs import Desk, rq_keys

QUEUE, INTERMEDIATE, SCHEDULED, _ = rq_keys("")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A desk where sweeps are at work: the last one was a second ago."""
    desk.do(desk.scripts.sweep())
    desk.pass_time(1_000)
    return desk


def sweep(desk: Desk, after: int = 0, **fields: int) -> Swept:
    """A sweep after some time in which others swept."""
    while after > 2_000:
        desk.pass_time(2_000)
        after -= 2_000
        desk.redis.set(desk.keys.swept_at, desk.now)
    desk.pass_time(after or 500)
    return desk.do(desk.scripts.sweep(**fields))


def test_one_sweep_at_a_time_is_enough(desk: Desk) -> None:
    assert desk.do(desk.scripts.sweep()).code == "swept"
    desk.pass_time(399)
    assert desk.do(desk.scripts.sweep()).code == "fresh"
    desk.pass_time(1)
    assert desk.do(desk.scripts.sweep()).code == "swept"


def test_leases_that_are_over_are_named(desk: Desk) -> None:
    owner, young = desk.running("0-a"), desk.running("0-b")
    desk.do(desk.scripts.renew([(owner.run, owner.token)]))
    for _ in range(2):
        assert sweep(desk, 2_000).expired == ()
    desk.do(desk.scripts.renew([(young.run, young.token)]))

    assert sweep(desk, 2_000).expired == ((owner.run, owner.token),)


@pytest.mark.parametrize("gap", [3_001, 3_600_000, -1])
def test_after_a_pause_everyone_may_renew_first(desk: Desk, gap: int) -> None:
    owner = desk.running("0-a")
    desk.do(desk.scripts.sweep())
    desk.redis.zadd(desk.keys.leases, {"0-a": desk.now - 10})
    desk.pass_time(gap)

    assert desk.do(desk.scripts.sweep()).code == "amnesty"

    assert desk.redis.zscore(desk.keys.leases, "0-a") == desk.now + 6_000
    assert desk.reap("0-a", owner.token) == Refused("alive")
    assert sweep(desk).expired == ()


@pytest.mark.parametrize("lease", [500, 1_000, 2_000, 5_000, 60_000])
def test_a_pause_that_can_cost_a_lease_costs_none(desk: Desk, lease: int) -> None:
    """A lease is renewed when half of it is left, at the latest. A pause behind which it is over is followed by an amnesty."""
    desk.scripts.policy = Policy(lease_ms=lease)
    owner = desk.running("0-a")
    for pause in (lease // 2 + 1, lease, 3 * lease):
        desk.do(desk.scripts.renew([(owner.run, owner.token)]))
        desk.pass_time(lease // 2)  # the renewal is due
        desk.redis.set(desk.keys.swept_at, desk.now)
        desk.pass_time(pause)
        assert desk.do(desk.scripts.sweep()).expired == ()
        assert desk.reap("0-a", owner.token) == Refused("alive")
    for _ in range(SWEEPS_IN_A_LEASE):
        assert desk.do(desk.scripts.sweep()).code != "amnesty"
        desk.pass_time(min(lease // SWEEPS_IN_A_LEASE, 1_000))
    desk.pass_time(lease)
    desk.redis.set(desk.keys.swept_at, desk.now - min(lease // SWEEPS_IN_A_LEASE, 1_000))
    assert desk.do(desk.scripts.sweep()).expired == ((owner.run, owner.token),), "without a pause it is taken"


def test_the_dead_are_reaped_in_an_amnesty_too(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.pass_time(60_000)
    desk.do(desk.scripts.sweep())

    assert desk.reap("0-a", owner.token, dead=True).code == "requeued"


def test_no_lease_is_longer_than_a_lease(desk: Desk) -> None:
    desk.running("0-a")
    desk.redis.zadd(desk.keys.leases, {"0-a": desk.now + 3_600_000})

    sweep(desk)

    assert desk.redis.zscore(desk.keys.leases, "0-a") == desk.now + 6_000


def test_due_runs_are_rung_at_growing_distance(desk: Desk) -> None:
    desk.create("0-a", queue="high")
    rung: list[int] = []
    for _ in range(250):
        if sweep(desk, 1_000).rings == (("0-a", "high"),):
            rung.append(desk.now)

    distances = [later - earlier for earlier, later in pairwise(rung)]
    assert distances == [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]


def test_a_deadline_wakes_a_run_and_closes_its_question(desk: Desk) -> None:
    desk.running("0-a").wait(asks={"q": NewAsk("reply", 1_000), "r": NewAsk("reply", 9_000)})
    assert sweep(desk).fired == ()

    swept = sweep(desk)

    assert (swept.fired, swept.rings) == (("0-a",), (("0-a", "default"),))
    assert desk.record("0-a").status is Status.QUEUED
    assert desk.signal("0-a", "s1", ask="q") == Refused("answered")
    (entry,) = desk.claim("0-a", "B").claimed.inbox
    assert (entry.kind, entry.ask, entry.at, entry.body) == ("expired", "q", desk.now, b"")


def test_a_timer_wakes_a_run(desk: Desk) -> None:
    desk.running("0-a").wait(wait="timer", delay_ms=1_000)

    sweep(desk)
    assert sweep(desk).fired == ("0-a",)
    assert desk.claim("0-a", "B").claimed.inbox == ()


def test_the_next_deadline_counts_when_a_run_waits_on(desk: Desk) -> None:
    desk.running("0-a").wait(asks={"q": NewAsk("reply", 500), "r": NewAsk("reply", 9_000)})
    asked_at = desk.now
    sweep(desk)

    desk.claim("0-a", "B").wait(consumed=1)

    assert desk.redis.zscore(desk.keys.due, "0-a") == asked_at + 9_000


def test_a_deadline_passes_while_the_run_is_at_work(desk: Desk) -> None:
    owner = desk.running("0-a")
    owner.commit(asks={"q": NewAsk("reply", 500), "r": NewAsk("reply", 9_000), "s": NewAsk("reply")})
    asked_at = desk.now
    assert sweep(desk, 400).fired == ()
    assert desk.do(desk.scripts.renew([(owner.run, owner.token)])).flagged == ()

    assert sweep(desk).fired == (), "it works on"
    (flag,) = desk.do(desk.scripts.renew([(owner.run, owner.token)])).flagged
    assert flag.unread == 1
    assert desk.signal("0-a", "s1", ask="q") == Refused("answered")
    assert desk.redis.zscore(desk.keys.due, "0-a") == asked_at + 9_000
    (entry,) = owner.commit().inbox
    assert (entry.kind, entry.ask, entry.at, entry.body) == ("expired", "q", desk.now, b"")
    assert desk.record("0-a").status is Status.RUNNING


def test_a_deadline_outlasts_its_owner(desk: Desk) -> None:
    first = desk.running("0-a")
    first.commit(asks={"q": NewAsk("reply", 5_000)})
    deadline = desk.now + 5_000
    desk.reap("0-a", first.token, dead=True)
    owner = desk.claim("0-a", "B")
    assert desk.redis.zscore(desk.keys.due, "0-a") == deadline

    desk.pass_time(4_000)
    sweep(desk)
    sweep(desk, 1_000)
    (entry,) = owner.commit().inbox
    assert (entry.kind, entry.ask) == ("expired", "q")
    assert desk.redis.zscore(desk.keys.due, "0-a") is None


def test_a_wait_without_deadline_outlasts_everything(desk: Desk) -> None:
    desk.running("0-a").wait(asks={"q": NewAsk("reply")})

    assert sweep(desk, 21 * 24 * 60 * 60 * 1_000 % 100_000).fired == ()
    assert desk.record("0-a").status is Status.WAITING


def test_sweeps_are_bounded(desk: Desk) -> None:
    for number in range(7):
        desk.create(f"0-{number}")

    assert len(sweep(desk, 2_000, most=5).rings) == 5
    assert len(sweep(desk, most=5).rings) == 2


def test_what_rq_was_not_told_is_named_once_in_a_while(desk: Desk) -> None:
    desk.create("0-a")
    assert sweep(desk, 1_500).unmirrored == ()
    assert sweep(desk, 500, most_tended=0).unmirrored == ()

    assert sweep(desk).unmirrored == ("0-a",)
    assert sweep(desk).unmirrored == ()
    assert len(sweep(desk, 2_000).unmirrored) == 1


def test_entries_without_a_run_are_dropped(desk: Desk) -> None:
    for key in (desk.keys.leases, desk.keys.due, desk.keys.mirror):
        desk.redis.zadd(key, {"0-ghost": desk.now - 60_000})

    swept = sweep(desk)

    assert (swept.expired, swept.rings, swept.unmirrored) == ((), (), ())
    assert (
        desk.redis.zcard(desk.keys.leases) + desk.redis.zcard(desk.keys.due) + desk.redis.zcard(desk.keys.mirror) == 0
    )


def test_an_ended_run_leaves_the_indexes_when_its_time_is_over(desk: Desk) -> None:
    desk.ended("0-a", session="s", tenant="t")
    desk.create("0-b", tenant="t")
    desk.redis.delete(*desk.keys.family("0-a"))

    sweep(desk, 30 * 24 * 60 * 60 * 1_000 % 50_000)
    assert desk.redis.zscore(desk.keys.by_time, "0-a") is not None
    desk.pass_time(31 * 24 * 60 * 60 * 1_000)
    desk.redis.set(desk.keys.swept_at, desk.now - 500)
    desk.do(desk.scripts.sweep())

    found = desk.snapshot()
    for key in found.named(f"{desk.keys.prefix}:by-"):
        assert "0-a" not in found.scores(key), key
    assert list(found.scores(desk.keys.by_tenant("t"))) == ["0-b"]
    assert found.scores(desk.keys.expiring) == {}


def test_the_first_ring_pushes_and_finds_no_job(desk: Desk) -> None:
    desk.create("0-a", delay_ms=0)

    assert desk.ring("0-a") == Refused("no_job")
    assert desk.redis.llen(QUEUE) == 0


def has_job(desk: Desk, run: str) -> None:
    desk.redis.hset(f"rq:job:{run}", "status", "scheduled")
    desk.redis.expire(f"rq:job:{run}", 100)


def test_a_ring_brings_a_run_back_from_where_rq_has_it(desk: Desk) -> None:
    owner = desk.running("0-a")
    has_job(desk, "0-a")
    desk.redis.rpush(INTERMEDIATE, "0-a")
    desk.redis.zadd(SCHEDULED, {"0-a": 1})
    owner.commit(to=Status.QUEUED)

    assert desk.ring("0-a") == Refused("rung")

    assert desk.redis.lrange(QUEUE, 0, -1) == [b"0-a"]
    assert not desk.redis.exists(INTERMEDIATE, SCHEDULED)
    assert desk.redis.hgetall("rq:job:0-a") == {b"status": b"queued"}
    assert desk.redis.ttl("rq:job:0-a") == -1


def test_a_ring_is_not_doubled(desk: Desk) -> None:
    desk.create("0-a")
    has_job(desk, "0-a")
    desk.redis.rpush(QUEUE, "0-a", "0-z")

    assert desk.ring("0-a") == Refused("waits")
    assert desk.ring("0-a") == Refused("waits")
    assert desk.redis.lrange(QUEUE, 0, -1) == [b"0-a", b"0-z"]


def test_a_ring_that_is_lost_is_found_out_when_the_queue_is_empty(desk: Desk) -> None:
    desk.create("0-a")
    has_job(desk, "0-a")

    assert desk.ring("0-a") == Refused("rung")


@pytest.mark.parametrize("there", [True, False])
def test_a_ring_that_is_lost_in_a_backlog_is_looked_for_after_a_minute(desk: Desk, there: bool) -> None:
    desk.create("0-a")
    has_job(desk, "0-a")
    desk.redis.rpush(QUEUE, "0-z", *(["0-a"] if there else []))
    created = desk.now
    answers: dict[str, int] = {}
    while desk.now < created + 100_000:
        for run, _ in sweep(desk, 1_000).rings:
            answers.setdefault(desk.ring(run).code, desk.now - created)

    if there:
        assert list(answers) == ["waits"]
    else:
        assert 60_000 < answers["rung"] < 70_000


def test_a_refused_claim_has_used_up_the_ring(desk: Desk) -> None:
    owner = desk.running("0-a")
    has_job(desk, "0-a")
    owner.commit(to=Status.QUEUED, delay_ms=5_000)
    desk.redis.rpush(QUEUE, "0-z")
    assert desk.do(desk.claim_call("0-a")) == Refused("early", "5000")
    assert desk.ring("0-a") == Refused("no", "early")
    desk.pass_time(5_000)

    assert desk.ring("0-a") == Refused("rung")


def test_who_is_not_to_be_rung(desk: Desk) -> None:
    desk.running("0-a", session="s")
    desk.create("0-b", session="s")

    assert desk.ring("0-a") == Refused("no", "running")
    assert desk.ring("0-b") == Refused("no", "behind")
    assert desk.ring("0-x") == Refused("missing")


def test_a_run_is_put_off_for_longer_and_longer(desk: Desk) -> None:
    desk.create("0-a")
    delays: list[int] = []
    for number in range(6):
        answer = desk.do(desk.scripts.defer("0-a", deferral=f"d{number}", reason="no agent"))
        assert isinstance(answer, Deferred)
        delays.append(answer.delay_ms)

    assert delays == [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]
    assert (desk.record("0-a").reason, desk.record("0-a").deferrals) == ("no agent", 6)
    assert desk.do(desk.claim_call("0-a")) == Refused("early", "60000")
    desk.pass_time(60_000)
    desk.claim("0-a")
    assert (desk.record("0-a").reason, desk.record("0-a").deferrals, desk.record("0-a").crashes_total) == ("", 0, 0)


def test_a_run_that_was_put_off_is_due_when_a_worker_has_come_that_can_run_it(desk: Desk) -> None:
    for run in ("0-a", "0-b", "0-c"):
        desk.create(run)
    desk.create("0-late", delay_ms=60_000)
    desk.do(desk.scripts.defer("0-a", deferral="d1", reason="no agent"))
    desk.do(desk.scripts.defer("0-b", deferral="d2", reason="no agent"))
    desk.claim("0-c")
    assert desk.do(desk.claim_call("0-a")) == Refused("early", "5000")

    for run, answer in [("0-a", "hastened"), ("0-late", "no"), ("0-c", "no"), ("0-x", "missing")]:
        assert desk.do(desk.scripts.hasten(run)).code == answer
    assert [due.run for due in sweep(desk).rings] == ["0-a"]
    desk.claim("0-a")
    assert desk.do(desk.claim_call("0-late")).code == "early"


def test_a_run_that_was_passed_on_in_vain_is_due_then_too(desk: Desk) -> None:
    """Its claims were refused, nobody put it off, and it is rung ever more rarely."""
    desk.create("0-a")
    desk.create("0-b")
    for _ in range(4):
        assert [due.run for due in sweep(desk, 60_000).rings] == ["0-a", "0-b"]
        desk.ring("0-a")
        assert desk.do(desk.claim_call("0-a", agents=["other"])).code == "no_agent"
    assert sweep(desk, 1_000).rings == ()

    assert desk.do(desk.scripts.hasten("0-b")).code == "no", "its entry is in the queue"
    assert desk.do(desk.scripts.hasten("0-a")).code == "hastened"
    assert [due.run for due in sweep(desk).rings] == ["0-a"]


def test_why_a_run_was_put_off_is_not_said_any_longer(desk: Desk) -> None:
    desk.create("0-a")
    desk.do(desk.scripts.defer("0-a", deferral="d1", reason="no agent"))
    desk.do(desk.scripts.hasten("0-a"))
    assert (desk.record("0-a").reason, desk.record("0-a").not_before) == ("", None)


def test_only_a_queued_run_is_put_off(desk: Desk) -> None:
    desk.running("0-a")

    assert desk.do(desk.scripts.defer("0-a", deferral="d", reason="r")) == Refused("no", "running")
    assert desk.do(desk.scripts.defer("0-x", deferral="d", reason="r")) == Refused("missing")


@pytest.mark.parametrize("word", ["canceled", "stopped"])
def test_a_ring_does_not_undo_what_a_person_asked_of_rq(desk: Desk, word: str) -> None:
    desk.create("0-a")
    desk.redis.hset("rq:job:0-a", "status", word)
    assert desk.ring("0-a") == Refused("cancel")
    assert desk.redis.hget("rq:job:0-a", "status") == word.encode()
    assert not desk.redis.exists("rq:queue:default")
