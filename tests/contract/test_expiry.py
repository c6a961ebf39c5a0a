"""Everything ends, and nothing ends early."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from scheduler.inputs import Entry, NewAsk
from scheduler.keys import Life
from scheduler.lifecycle import Status
from tests.support.runs import Desk, Owner

DAY = date(2026, 1, 2)


def full(desk: Desk) -> Owner:
    """A run with every key that a run can have."""
    owner = desk.running("0-a", session="s", tenant="t", idempotency_key="k")
    owner.commit(marks={"1.0": "started"}, asks={"q": NewAsk("reply")}, settled=[Entry(desk.keys.usage(DAY), "n", 1)])
    desk.signal("0-a", "s1", "top_up")
    desk.redis.xadd(desk.keys.live("0-a"), {"b": "piece"})
    return owner


def of_the_run(desk: Desk) -> dict[str, int]:
    snapshot = desk.snapshot()
    return {key: snapshot.expiry(key) for key in snapshot.keys if desk.keys.life(key) is Life.RUN}


def complete(desk: Desk, owner: Owner) -> None:
    owner.commit(to=Status.COMPLETED)


def fail(desk: Desk, owner: Owner) -> None:
    owner.commit(to=Status.FAILED)


def cancel(desk: Desk, owner: Owner) -> None:
    owner.commit(to=Status.QUEUED)
    desk.cancel("0-a")


def poison(desk: Desk, owner: Owner) -> None:
    for number in range(3):
        desk.reap("0-a", owner.token, dead=True)
        if number < 2:
            owner = desk.claim("0-a", f"B{number}")


@pytest.mark.parametrize("end", [complete, fail, cancel, poison])
def test_all_keys_of_an_ended_run_expire_at_once(desk: Desk, end: Callable[[Desk, Owner], None]) -> None:
    owner = full(desk)
    assert set(of_the_run(desk).values()) == {-1}
    assert len(of_the_run(desk)) == 8

    end(desk, owner)

    expiries = of_the_run(desk)
    assert set(expiries.values()) == {desk.now + desk.scripts.policy.session_retention_ms}
    assert desk.keys.idem("t:k") in expiries
    assert desk.record("0-a").expires_at == desk.now + desk.scripts.policy.session_retention_ms


def test_a_run_without_session_is_kept_for_its_own_time(desk: Desk) -> None:
    desk.ended("0-a")

    assert set(of_the_run(desk).values()) == {desk.now + desk.scripts.policy.run_retention_ms}


def test_no_key_of_a_resumed_run_expires(desk: Desk) -> None:
    fail(desk, full(desk))

    desk.resume("0-a")

    assert set(of_the_run(desk).values()) == {-1}


def test_every_key_has_a_life_that_is_written_down(desk: Desk) -> None:
    full(desk).commit(open=b"{}", hold=[Entry(desk.keys.tenant("t"), "n", 1)])
    desk.create("0-b", session="s", tenant="t")
    desk.do(desk.scripts.sweep())

    lives = {key: desk.keys.life(key) for key in desk.snapshot().keys}

    assert None not in lives.values(), lives
    assert desk.keys.life(desk.keys.next("t:s")) is Life.SESSION


def test_a_deleted_run_leaves_nothing(desk: Desk) -> None:
    desk.running("0-z", tenant="t").commit(to=Status.COMPLETED)
    before = desk.snapshot()
    complete(desk, full(desk))

    assert desk.do(desk.scripts.delete("0-a")).code == "deleted"

    left = {key for key in desk.snapshot().keys if desk.keys.life(key) not in (Life.SESSION, Life.LEDGER)}
    assert left - {desk.keys.sessions, desk.keys.sessions_of("t")} == set(before.keys)
    assert desk.snapshot().scores(desk.keys.by_tenant("t")) == before.scores(desk.keys.by_tenant("t"))
    assert desk.do(desk.scripts.delete("0-a")).code == "missing"


def test_a_live_run_is_not_deleted(desk: Desk) -> None:
    desk.create("0-a")

    answer = desk.do(desk.scripts.delete("0-a"))

    assert (answer.code, answer.detail) == ("live", "queued")
    assert desk.record("0-a").status is Status.QUEUED


def test_an_idempotency_key_that_is_used_anew_outlives_the_run_before(desk: Desk) -> None:
    desk.ended("0-a", idempotency_key="k")
    desk.redis.delete(*desk.keys.family("0-a"))

    assert desk.create("0-b", idempotency_key="k").run == "0-b"

    assert desk.snapshot().expiry(desk.keys.idem(":k")) == -1
