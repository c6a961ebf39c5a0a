"""Claim, commit, renew, reap: who owns a run, and what an owner may do."""

from __future__ import annotations

import pytest

from scheduler.inputs import NewAsk
from scheduler.lifecycle import Status
from scheduler.replies import Ask, Behind, Claimed, Committed, Outcome, Refused
from tests.support.runs import POISON, Desk

MINUTE = 60_000


def test_a_new_run_is_queued_and_due_soon(desk: Desk) -> None:
    answer = desk.create("0-a", tenant="acme", session="s1", idempotency_key="k", metadata=b"{}", limits=b"{}")

    record = desk.record("0-a")
    assert (answer.code, answer.run, answer.behind, answer.now) == ("created", "0-a", False, desk.now)
    assert (record.status, record.agent, record.queue) == (Status.QUEUED, "calc", "default")
    assert (record.tenant, record.session, record.idempotency_key) == ("acme", "s1", "k")
    assert (record.created_at, record.seq, record.rev) == (desk.now, 1, 0)
    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now + 2_000


def test_a_delayed_run_is_not_claimed_early(desk: Desk) -> None:
    desk.create("0-a", delay_ms=MINUTE)
    desk.create("0-b", at_ms=desk.now + MINUTE)

    assert desk.do(desk.claim_call("0-a")) == Refused("early", str(MINUTE))
    assert desk.do(desk.claim_call("0-b")) == Refused("early", str(MINUTE))
    desk.pass_time(MINUTE)
    assert desk.claim("0-a").claimed.code == "claimed"
    assert desk.claim("0-b").claimed.code == "claimed"


def test_one_idempotency_key_is_one_run(desk: Desk) -> None:
    desk.create("0-a", idempotency_key="k", tenant="acme")

    again = desk.create("0-b", idempotency_key="k", tenant="acme")
    other_task = desk.do(desk.scripts.create(desk.new_run("0-c", idempotency_key="k", tenant="acme", digest="other")))
    other_tenant = desk.create("0-d", idempotency_key="k", tenant="umbrella")

    assert (again.code, again.run) == ("already", "0-a")
    assert other_task == Refused("conflict", "0-a")
    assert (other_tenant.code, other_tenant.run) == ("created", "0-d")
    assert not desk.redis.exists(desk.keys.run("0-b"), desk.keys.run("0-c"))


def test_a_claim_hands_over_all_that_is_known(desk: Desk) -> None:
    first = desk.running("0-a", limits=b'{"max_steps":3}', metadata=b'{"m":1}', session="s", tenant="t")
    first.commit(
        step=2,
        state=b'{"step":2}',
        open=b'{"model":"m"}',
        marks={"1.0": "started", "1.1": "planned", "1.2": "asked"},
        asks={"q1": NewAsk("approval", MINUTE), "q2": NewAsk("reply")},
        session_state=b"memory",
        session_cursor="0-a",
    )
    desk.signal("0-a", "s1", "top_up", body=b'{"max_steps":9}')
    desk.reap("0-a", first.token, dead=True)
    desk.pass_time(50)

    claimed = desk.claim("0-a", "B").claimed

    assert (claimed.code, claimed.token, claimed.now) == ("claimed", "2:B", desk.now)
    assert (claimed.queued_since, claimed.created_at) == (desk.now - 50, desk.now - 50)
    assert (claimed.rev, claimed.seq, claimed.step) == (1, 5, 2)
    assert (claimed.state, claimed.open) == (b'{"step":2}', b'1:A {"model":"m"}')
    assert (claimed.limits, claimed.metadata) == (b'{"max_steps":3}', b'{"m":1}')
    assert (claimed.crashes, claimed.crashes_total) == (1, 1)
    assert claimed.calls == {"1.0": "started:1:A", "1.1": "planned", "1.2": "asked"}
    assert {ask: (found.kind, found.deadline) for ask, found in claimed.asks.items()} == {
        "q1": ("approval", desk.now - 50 + MINUTE),
        "q2": ("reply", None),
    }
    assert [(entry.kind, entry.sid, entry.body) for entry in claimed.inbox] == [("top_up", "s1", b'{"max_steps":9}')]
    assert (claimed.session_state, claimed.begun) == (b"", ("0-a",)), "its memory is the session's at its end only"


def test_a_run_has_one_owner(desk: Desk) -> None:
    desk.running("0-a")

    desk.pass_time(1_000)

    assert desk.do(desk.claim_call("0-a", "B")) == Refused("held", "5000")


@pytest.mark.parametrize(
    "to", [Status.WAITING, Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.BUDGET_EXCEEDED]
)
def test_a_run_that_is_not_queued_is_not_claimed(desk: Desk, to: Status) -> None:
    desk.running("0-a").commit(to=to)

    assert desk.do(desk.claim_call("0-a", "B")) == Refused(to)


def test_claims_that_this_worker_cannot_serve(desk: Desk) -> None:
    desk.create("0-a")

    assert desk.do(desk.claim_call("0-x")) == Refused("missing")
    assert desk.do(desk.claim_call("0-a", newest_schema=0)) == Refused("newer", "1")
    assert desk.do(desk.claim_call("0-a", agents=["other", "more"])) == Refused("no_agent", "calc")
    assert desk.claim("0-a", agents=["other", "calc"]).claimed.code == "claimed"


def test_a_suspect_needs_room(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.reap("0-a", owner.token, dead=True)

    assert desk.do(desk.claim_call("0-a", "B", room_for_one_crash=False)) == Refused("suspect")
    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now + 500
    owner = desk.claim("0-a", "B", room_for_more=False)
    desk.reap("0-a", owner.token, dead=True)
    assert desk.do(desk.claim_call("0-a", "C", room_for_more=False)) == Refused("suspect")


def test_a_commit_appends_and_stays_with_its_owner(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.pass_time(3_000)

    answer = owner.commit(events=[b"one", b"two"], step=1, state=b"s", marks={"1.0": "started", "1.1": "planned"})

    assert (answer.code, answer.own, answer.status) == ("done", True, Status.RUNNING)
    assert (answer.rev, answer.seq, answer.now) == (1, 4, desk.now)
    assert desk.event_bodies("0-a")[2:] == [b"one", b"two"]
    assert desk.redis.zscore(desk.keys.leases, "0-a") == desk.now + 6_000
    owner.commit(marks={"1.0": None, "1.1": "started"})
    assert desk.redis.hgetall(desk.keys.calls("0-a")) == {b"1.1": b"started:1:A"}
    assert (desk.record("0-a").step, desk.record("0-a").state) == (1, b"s")


def test_events_carry_the_time_of_the_store(desk: Desk) -> None:
    desk.create("0-a")
    desk.pass_time(70)
    desk.claim("0-a")

    times = [int(fields[b"t"]) for _, fields in desk.redis.xrange(desk.keys.events("0-a"))]

    assert times == [desk.now - 70, desk.now]


def test_a_lost_owner_is_stale(desk: Desk) -> None:
    lost = desk.running("0-a")
    desk.pass_time(7_000)
    desk.reap("0-a", lost.token)
    owner = desk.claim("0-a", "B")
    before = desk.snapshot()

    assert desk.do(lost.call()) == Refused("stale")
    assert desk.snapshot() == before
    assert owner.commit().own


def test_an_expired_lease_that_nobody_took_is_still_an_owners(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.pass_time(MINUTE)

    assert owner.commit().own


def test_a_late_older_commit_is_stale(desk: Desk) -> None:
    owner = desk.running("0-a")
    late = owner.call(events=[b"late"])
    desk.do(late)
    owner.rev = 1
    owner.commit(events=[b"next"])

    assert desk.do(late) == Refused("stale")
    assert desk.event_bodies("0-a")[2:] == [b"late", b"next"]


def test_an_owner_learns_that_redis_went_back(desk: Desk) -> None:
    owner = desk.running("0-a")
    owner.rev = 3
    call = owner.call()

    assert desk.do(call) == Behind(0, 2)
    epoch = desk.record("0-a").epoch
    assert epoch
    assert desk.do(call) == Behind(0, 2)
    assert desk.record("0-a").epoch == epoch


def test_a_step_forward_clears_the_crashes_at_a_step(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.reap("0-a", owner.token, dead=True)
    owner = desk.claim("0-a", "B")

    owner.commit(step=0)
    assert desk.record("0-a").crashes == 1
    owner.commit(step=1)
    assert (desk.record("0-a").crashes, desk.record("0-a").crashes_total) == (0, 1)


def test_a_run_that_is_given_back_can_be_claimed_at_once(desk: Desk) -> None:
    answer = desk.running("0-a").commit(to=Status.QUEUED, reason="drained")

    assert (answer.own, answer.status) == (False, Status.QUEUED)
    assert desk.record("0-a").reason == "drained"
    assert desk.claim("0-a", "B").token == "2:B"


def test_a_run_that_is_given_back_with_a_delay_waits_for_it(desk: Desk) -> None:
    desk.running("0-a").commit(to=Status.QUEUED, delay_ms=MINUTE)

    assert desk.do(desk.claim_call("0-a", "B")) == Refused("early", str(MINUTE))
    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now + MINUTE


def test_a_release_with_blame_counts_like_a_crash(desk: Desk) -> None:
    desk.create("0-a")
    for number in range(2):
        answer = desk.claim("0-a", f"A{number}").commit(to=Status.QUEUED, blame=POISON)
        assert answer.status is Status.QUEUED

    answer = desk.claim("0-a", "A3").commit(to=Status.QUEUED, blame=POISON)

    assert answer.status is Status.FAILED
    assert desk.record("0-a").reason == POISON.reason
    assert desk.event_bodies("0-a")[-1] == POISON.body


def test_an_end_closes_what_is_open(desk: Desk) -> None:
    owner = desk.running("0-a")
    owner.commit(marks={"1.0": "started"}, asks={"q": NewAsk("reply")}, state=b"last")
    desk.signal("0-a", "s1")

    owner.commit(to=Status.COMPLETED, reason="")

    record = desk.record("0-a")
    assert (record.status, record.token, record.worker, record.state) == (Status.COMPLETED, "", "", b"last")
    assert not desk.redis.exists(desk.keys.inbox("0-a"), desk.keys.asks("0-a"), desk.keys.calls("0-a"))


@pytest.mark.parametrize("to", [Status.FAILED, Status.BUDGET_EXCEEDED])
def test_what_may_be_resumed_keeps_its_calls_and_its_questions(desk: Desk, to: Status) -> None:
    owner = desk.running("0-a")
    owner.commit(marks={"1.0": "started"}, asks={"1.1": NewAsk("approval", MINUTE, "May it be\nthis?")})
    deadline = desk.now + MINUTE

    owner.commit(to=to, reason="max_steps")

    assert desk.record("0-a").reason == "max_steps"
    assert desk.redis.hgetall(desk.keys.calls("0-a")) == {b"1.0": b"started:1:A"}
    assert desk.signal("0-a", "s1", "approve") == Refused("over", to)
    assert desk.resume("0-a") == Refused("resumed")
    assert desk.claim("0-a", "B").claimed.asks == {"1.1": Ask("approval", deadline, "May it be\nthis?")}


def test_an_answer_that_came_just_before_the_end_is_there_when_the_run_goes_on(desk: Desk) -> None:
    owner = desk.running("0-a")
    owner.commit(asks={"1.0": NewAsk("reply")})
    desk.signal("0-a", "s1")

    owner.commit(to=Status.FAILED)
    desk.resume("0-a")

    assert [(entry.kind, entry.ask) for entry in desk.claim("0-a", "B").claimed.inbox] == [("reply", "1.0")]


@pytest.mark.parametrize("to", [Status.WAITING, Status.BUDGET_EXCEEDED])
def test_a_run_does_not_fall_asleep_over_news(desk: Desk, to: Status) -> None:
    owner = desk.running("0-a")
    desk.signal("0-a", "s1", "top_up")

    answer = owner.commit(to=to, events=[b"asleep"])

    assert (answer.own, answer.status) == (True, Status.RUNNING)
    assert [entry.kind for entry in answer.inbox] == ["top_up"]
    assert desk.event_bodies("0-a")[-1] == b"asleep"
    assert owner.commit(to=to, consumed=1).status is to


def test_a_run_does_not_fall_asleep_when_it_is_to_end(desk: Desk) -> None:
    owner = desk.running("0-a")
    assert desk.cancel("0-a") == Outcome("asked")

    answer = owner.wait()

    assert (answer.own, answer.cancel) == (True, "user")
    assert owner.commit(to=Status.CANCELLED).status is Status.CANCELLED


def test_an_answer_that_was_lost_says_who_owns_the_run_now(desk: Desk) -> None:
    owner = desk.running("0-a")
    park = owner.call(to=Status.WAITING, asks={"q": NewAsk("reply")})
    desk.do(park)
    desk.signal("0-a", "s1")
    desk.claim("0-a", "B")

    answer = desk.do(park)

    assert isinstance(answer, Committed)
    assert (answer.code, answer.own, answer.status, answer.inbox) == ("already", False, Status.RUNNING, ())


def test_a_wait_without_deadline_is_not_due(desk: Desk) -> None:
    desk.running("0-a").wait(wait="reply", asks={"q": NewAsk("reply")})

    assert desk.record("0-a").wait == "reply"
    assert desk.redis.zscore(desk.keys.due, "0-a") is None


def test_a_wait_is_due_at_its_earliest_deadline(desk: Desk) -> None:
    desk.running("0-a").wait(delay_ms=5_000, asks={"q1": NewAsk("reply", 3_000), "q2": NewAsk("reply", 9_000)})

    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now + 3_000


def test_renewal_keeps_what_is_owned_and_names_what_is_not(desk: Desk) -> None:
    owner, lost, quiet = desk.running("0-a"), desk.running("0-b"), desk.running("0-c")
    desk.reap("0-b", lost.token, dead=True)
    desk.signal("0-a", "s1", "top_up")
    desk.cancel("0-a")
    desk.pass_time(2_000)

    answer = desk.do(desk.scripts.renew([(each.run, each.token) for each in (owner, lost, quiet)] + [("0-x", "1:A")]))

    assert answer.lost == ("0-b", "0-x")
    assert answer.flagged == (("0-a", "user", 1),)
    assert desk.redis.zscore(desk.keys.leases, "0-a") == desk.now + 6_000
    assert desk.redis.zscore(desk.keys.leases, "0-b") is None


def test_too_many_renewals_are_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="200"):
        desk.scripts.renew([("0-a", "1:A")] * 201)


def test_a_lease_is_reaped_when_it_is_over(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.pass_time(5_999)
    assert desk.reap("0-a", owner.token) == Refused("alive")
    desk.pass_time(1)

    assert desk.reap("0-a", owner.token) == Outcome("requeued")

    record = desk.record("0-a")
    assert (record.status, record.crashes, record.crashes_total) == (Status.QUEUED, 1, 1)
    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now


def test_the_dead_are_reaped_at_once(desk: Desk) -> None:
    owner = desk.running("0-a")

    assert desk.reap("0-a", owner.token, dead=True) == Outcome("requeued")


def test_only_the_named_owner_is_reaped(desk: Desk) -> None:
    first = desk.running("0-a")
    desk.reap("0-a", first.token, dead=True)
    desk.claim("0-a", "B")

    assert desk.reap("0-a", first.token, dead=True) == Refused("gone")
    assert desk.reap("0-x", "1:A") == Refused("missing")


def test_a_cancelled_run_is_not_queued_again(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.cancel("0-a")

    assert desk.reap("0-a", owner.token, dead=True) == Outcome("cancelled")
    assert desk.record("0-a").status is Status.CANCELLED


def test_the_third_crash_at_a_step_is_the_end(desk: Desk) -> None:
    desk.create("0-a")
    outcomes = [desk.reap("0-a", desk.claim("0-a", f"A{number}").token, dead=True) for number in range(3)]

    assert [outcome.code for outcome in outcomes] == ["requeued", "requeued", "failed"]
    assert desk.record("0-a").reason == POISON.reason
    assert desk.event_bodies("0-a")[-1] == POISON.body


def test_the_tenth_crash_in_all_is_the_end(desk: Desk) -> None:
    desk.create("0-a")
    for number in range(9):
        owner = desk.claim("0-a", f"A{number}")
        owner.commit(step=number + 1)
        assert desk.reap("0-a", owner.token, dead=True) == Outcome("requeued")
    owner = desk.claim("0-a", "last")
    owner.commit(step=99)

    assert desk.reap("0-a", owner.token, dead=True) == Outcome("failed")


def test_a_run_that_was_never_there(desk: Desk) -> None:
    desk.create("0-a")
    ghost = desk.claim("0-a")
    desk.redis.delete(desk.keys.run("0-a"))

    assert desk.do(ghost.call()) == Refused("missing")
    assert isinstance(desk.do(desk.claim_call("0-a")), Refused)
    assert not isinstance(desk.do(desk.claim_call("0-a")), Claimed)


def test_an_owner_cannot_leave_a_model_call_open(desk: Desk) -> None:
    owner = desk.running("0-a")

    with pytest.raises(ValueError, match="running"):
        owner.call(to=Status.WAITING, open=b"{}")
