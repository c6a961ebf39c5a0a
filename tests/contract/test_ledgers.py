"""What is reserved before a model call, and settled after it."""

from __future__ import annotations

from datetime import date

import pytest

from scheduler.inputs import Entry
from scheduler.keys import Ledger
from scheduler.lifecycle import Status
from scheduler.replies import Over
from tests.support.runs import Desk

DAY = date(2026, 1, 2)


def counters(desk: Desk, ledger: Ledger) -> dict[str, int]:
    return {field.decode(): int(value) for field, value in desk.redis.hgetall(ledger.key).items() if int(value)}


def test_a_hold_is_settled_with_what_was_used(desk: Desk) -> None:
    day, tenant = desk.keys.usage(DAY), desk.keys.tenant("t")
    owner = desk.running("0-a")

    owner.commit(open=b'{"model":"m"}', hold=[Entry(tenant, "tokens", 100), Entry(day, "calc tokens", 100)])
    assert counters(desk, tenant) == {"held:tokens": 100}
    assert desk.record("0-a").open == b'1:A {"model":"m"}'
    assert desk.record("0-a").hold == ((tenant.key, "tokens", 100), (day.key, "calc tokens", 100))

    owner.commit()  # something else happens while the call is under way
    assert counters(desk, tenant) == {"held:tokens": 100}

    owner.commit(open=b"", settled=[Entry(tenant, "tokens", 70), Entry(day, "calc tokens", 70)])
    assert counters(desk, tenant) == {"used:tokens": 70}
    assert counters(desk, day) == {"used:calc tokens": 70}
    assert (desk.record("0-a").open, desk.record("0-a").hold) == (b"", ())


def test_one_commit_settles_a_call_and_reserves_the_next(desk: Desk) -> None:
    tenant = desk.keys.tenant("t")
    owner = desk.running("0-a")
    owner.commit(open=b"1", hold=[Entry(tenant, "tokens", 100)])

    owner.commit(open=b"2", hold=[Entry(tenant, "tokens", 40)], settled=[Entry(tenant, "tokens", 90)])

    assert counters(desk, tenant) == {"used:tokens": 90, "held:tokens": 40}


def test_what_does_not_fit_is_not_held_but_what_was_paid_is_kept(desk: Desk) -> None:
    day, tenant = desk.keys.usage(DAY), desk.keys.tenant("t")
    desk.redis.hset(tenant.key, mapping={"limit:tokens": 150, "limit:cost": 10})
    owner = desk.running("0-a")
    owner.commit(open=b"1", hold=[Entry(tenant, "tokens", 100)])

    answer = owner.commit(
        events=[b"reply"],
        settled=[Entry(tenant, "tokens", 100)],
        open=b"2",
        hold=[Entry(day, "tokens", 60), Entry(tenant, "cost", 1), Entry(tenant, "tokens", 60)],
    )

    over = Over(tenant.key, "tokens", used=100, held=0, limit=150)
    assert (answer.over, answer.own) == (over, True)
    assert desk.event_bodies("0-a")[-1] == b"reply"
    assert counters(desk, tenant) == {"used:tokens": 100, "limit:tokens": 150, "limit:cost": 10}
    assert counters(desk, day) == {}
    assert (desk.record("0-a").open, desk.record("0-a").hold, desk.record("0-a").over) == (b"", (), over)
    assert owner.commit(open=b"2", hold=[Entry(tenant, "tokens", 50)]).over is None


def test_runs_share_what_their_tenant_may_use(desk: Desk) -> None:
    """case-115"""
    tenant = desk.keys.tenant("t")
    desk.redis.hset(tenant.key, "limit:tokens", 10_000)
    owners = [desk.running(f"0-{number}") for number in range(20)]

    answers = [owner.commit(open=b"{}", hold=[Entry(tenant, "tokens", 2_000)]) for owner in owners]

    assert [answer.over is None for answer in answers].count(True) == 5
    assert {answer.over for answer in answers[5:]} == {Over(tenant.key, "tokens", used=0, held=10_000, limit=10_000)}


def test_a_refusal_is_said_again_when_the_commit_is_sent_again(desk: Desk) -> None:
    tenant = desk.keys.tenant("t")
    desk.redis.hset(tenant.key, "limit:tokens", 10)
    call = desk.running("0-a").call(open=b"{}", hold=[Entry(tenant, "tokens", 11)])

    first, again = desk.do(call), desk.do(call)

    over = Over(tenant.key, "tokens", used=0, held=0, limit=10)
    assert (getattr(first, "over", None), getattr(again, "over", None)) == (over, over)


def test_a_crash_is_charged_as_reserved(desk: Desk) -> None:
    tenant = desk.keys.tenant("t")
    owner = desk.running("0-a")
    owner.commit(open=b"{}", hold=[Entry(tenant, "tokens", 100)])

    desk.reap("0-a", owner.token, dead=True)

    assert counters(desk, tenant) == {"used:tokens": 100}
    assert desk.record("0-a").hold == ()
    assert desk.claim("0-a", "B").claimed.open == b"1:A {}"  # the next owner charges the run


@pytest.mark.parametrize("to", [Status.QUEUED, Status.WAITING, Status.CANCELLED])
def test_a_call_that_is_left_open_is_charged_as_reserved(desk: Desk, to: Status) -> None:
    tenant = desk.keys.tenant("t")
    owner = desk.running("0-a")
    owner.commit(open=b"{}", hold=[Entry(tenant, "tokens", 100)])

    owner.commit(to=to)

    assert counters(desk, tenant) == {"used:tokens": 100}
    assert (desk.record("0-a").hold, desk.record("0-a").open) == ((), b"1:A {}")


def test_large_amounts_are_exact(desk: Desk) -> None:
    tenant, amount = desk.keys.tenant("t"), 9_007_199_254_740_991
    owner = desk.running("0-a")
    owner.commit(open=b"{}", hold=[Entry(tenant, "nanodollars", amount)])

    owner.commit(open=b"", settled=[Entry(tenant, "nanodollars", amount - 1)])

    assert counters(desk, tenant) == {"used:nanodollars": amount - 1}


def test_a_days_ledger_lives_so_long_after_its_last_entry(desk: Desk) -> None:
    day = desk.keys.usage(DAY)
    desk.running("0-a").commit(settled=[Entry(day, "tokens", 1)])

    left = desk.redis.pttl(day.key)

    assert desk.scripts.policy.ledger_retention_ms - 60_000 < left <= desk.scripts.policy.ledger_retention_ms


def test_amounts_are_not_negative(desk: Desk) -> None:
    with pytest.raises(ValueError, match="tokens"):
        desk.running("0-a").call(settled=[Entry(desk.keys.tenant("t"), "tokens", -1)])
