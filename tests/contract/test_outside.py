"""Signals, cancels and resumes: what comes to a run from outside."""

from __future__ import annotations

import pytest

from scheduler.inputs import NewAsk
from scheduler.lifecycle import ENDED, CancelReason, Status
from scheduler.policy import Policy
from scheduler.replies import Outcome, Refused
from scheduler.scripts import Scripts
from tests.support.runs import Desk


def asking(desk: Desk, **asks: NewAsk) -> None:
    """A run that waits for answers."""
    desk.running("0-a").wait(wait="reply", asks=asks)


def test_a_reply_wakes_a_run(desk: Desk) -> None:
    asking(desk, q=NewAsk("reply"))

    assert desk.signal("0-a", "s1", body=b"the second one") == Refused("woken")

    record = desk.record("0-a")
    assert (record.status, record.wait) == (Status.QUEUED, "")
    (entry,) = desk.claim("0-a", "B").claimed.inbox
    assert (entry.kind, entry.ask, entry.at, entry.sid, entry.body) == ("reply", "q", desk.now, "s1", b"the second one")


def test_a_running_run_gets_it_with_its_next_commit(desk: Desk) -> None:
    owner = desk.running("0-a")

    assert desk.signal("0-a", "s1", "top_up", body=b"{}") == Refused("kept")

    assert [entry.sid for entry in owner.commit().inbox] == ["s1"]
    assert owner.commit(consumed=1).inbox == ()


def test_a_question_is_answered_once(desk: Desk) -> None:
    asking(desk, q=NewAsk("reply"), r=NewAsk("reply"))

    assert desk.signal("0-a", "s1", ask="q") == Refused("woken")
    assert desk.signal("0-a", "s2", ask="q") == Refused("answered")
    assert desk.signal("0-a", "s3", ask="r") == Refused("kept")
    assert desk.signal("0-a", "s4") == Refused("not_asked")


def test_an_answer_behind_the_deadline_comes_too_late_although_nobody_has_swept(desk: Desk) -> None:
    """The default holds: nothing that was to be rejected is executed since all workers were away."""
    asking(desk, q=NewAsk("approval", 2_000), r=NewAsk("reply"), late=NewAsk("reply", 2_000))
    desk.pass_time(1_999)
    assert desk.signal("0-a", "s1", "approve", ask="unknown") == Refused("not_asked")
    desk.pass_time(1)

    assert desk.signal("0-a", "s2", "approve", ask="q") == Refused("answered")
    assert desk.signal("0-a", "s3", "approve") == Refused("answered")
    assert desk.signal("0-a", "s4", ask="late") == Refused("answered")
    assert desk.record("0-a").status is Status.WAITING
    assert desk.signal("0-a", "s5") == Refused("woken"), "of two questions one is still open"


def test_an_answer_names_its_question_where_there_are_several(desk: Desk) -> None:
    asking(desk, q=NewAsk("reply"), r=NewAsk("reply"), a=NewAsk("approval"))

    assert desk.signal("0-a", "s1") == Refused("which")
    assert desk.signal("0-a", "s2", "approve") == Refused("woken")
    assert desk.signal("0-a", "s3", "approve") == Refused("not_asked")
    assert desk.signal("0-a", "s4", ask="r") == Refused("kept")
    assert desk.signal("0-a", "s5") == Refused("kept")


def test_an_answer_fits_its_question(desk: Desk) -> None:
    asking(desk, q=NewAsk("reply"))

    assert desk.signal("0-a", "s1", "reject", ask="q") == Refused("not_asked")
    assert desk.signal("0-a", "s2", ask="unknown") == Refused("not_asked")


def test_the_owner_may_close_its_question(desk: Desk) -> None:
    owner = desk.running("0-a")
    owner.commit(asks={"q": NewAsk("reply")})
    owner.commit(asks={"q": None})

    assert desk.signal("0-a", "s1", ask="q") == Refused("answered")
    assert desk.signal("0-a", "s2") == Refused("not_asked")


@pytest.mark.parametrize("to", sorted(ENDED))
def test_nothing_comes_to_an_ended_run(desk: Desk, to: Status) -> None:
    desk.ended("0-a", to)
    before = desk.snapshot()

    assert desk.signal("0-a", "s1", "top_up") == Refused("over", to)
    assert desk.cancel("0-a") == Refused("over", to)
    assert desk.snapshot() == before


def test_what_comes_to_no_run(desk: Desk) -> None:
    assert desk.signal("0-x", "s1") == Refused("missing")
    assert desk.cancel("0-x") == Refused("missing")
    assert desk.resume("0-x") == Refused("gone")
    assert desk.snapshot().without(desk.keys.clock).keys == {}


def test_an_inbox_has_an_end(desk: Desk) -> None:
    desk.scripts = Scripts(policy=Policy(max_inbox=2, max_signals=3))
    owner = desk.running("0-a")

    assert [desk.signal("0-a", f"s{n}", "top_up").code for n in range(3)] == ["kept", "kept", "full"]
    owner.commit(consumed=2)
    assert [desk.signal("0-a", f"t{n}", "top_up").code for n in range(2)] == ["kept", "full"]


def test_a_run_that_nobody_has_is_cancelled_at_once(desk: Desk) -> None:
    desk.create("0-a")
    desk.running("0-b").wait(asks={"q": NewAsk("reply")})

    for run in ("0-a", "0-b"):
        assert desk.cancel(run) == Outcome("cancelled")
        record = desk.record(run)
        assert (record.status, record.cancel, record.reason) == (Status.CANCELLED, "user", "user")
        assert desk.event_bodies(run)[-1] == b'{"type":"cancelled"}'
    assert not desk.redis.exists(desk.keys.asks("0-b"))


def test_a_running_run_is_asked_to_end(desk: Desk) -> None:
    owner = desk.running("0-a")
    hints = desk.redis.pubsub(ignore_subscribe_messages=True)
    hints.subscribe(desk.keys.hints)
    hints.get_message(timeout=1)

    assert desk.cancel("0-a") == Outcome("asked")

    message = hints.get_message(timeout=1)
    assert message is not None
    assert message["data"] == b"0-a"
    assert desk.record("0-a").status is Status.RUNNING
    assert owner.commit().cancel == "user"


def test_the_first_reason_stays(desk: Desk) -> None:
    desk.running("0-a")
    desk.cancel("0-a", "c1", reason=CancelReason.INTERRUPT)

    assert desk.cancel("0-a", "c2") == Outcome("asked")
    assert desk.record("0-a").cancel == "interrupt"


def test_many_cancels_are_one(desk: Desk) -> None:
    desk.running("0-a")
    answers = [desk.cancel("0-a", f"c{number}") for number in range(3)]

    assert answers == [Outcome("asked")] * 3
    assert desk.redis.hlen(desk.keys.family("0-a")[5]) == 1


def test_a_finished_run_beats_the_cancel(desk: Desk) -> None:
    owner = desk.running("0-a")
    desk.cancel("0-a")

    assert owner.commit(to=Status.COMPLETED).status is Status.COMPLETED


@pytest.mark.parametrize("to", [Status.FAILED, Status.BUDGET_EXCEEDED])
def test_a_run_goes_on_from_its_checkpoint(desk: Desk, to: Status) -> None:
    owner = desk.running("0-a", limits=b"small", idempotency_key="k")
    owner.commit(step=3, state=b"state")
    owner.commit(to=to, reason="why")

    assert desk.resume("0-a", limits=b"large") == Refused("resumed")

    record = desk.record("0-a")
    assert (record.status, record.reason, record.expires_at, record.crashes) == (Status.QUEUED, "", None, 0)
    claimed = desk.claim("0-a", "B").claimed
    assert (claimed.step, claimed.state, claimed.limits) == (3, b"state", b"large")
    assert desk.event_bodies("0-a")[-2] == b'{"type":"resumed"}'


def test_limits_stay_where_none_are_given(desk: Desk) -> None:
    desk.ended("0-a", Status.FAILED, limits=b"small")

    desk.resume("0-a")

    assert desk.claim("0-a", "B").claimed.limits == b"small"


@pytest.mark.parametrize("to", [Status.COMPLETED, Status.CANCELLED, Status.RUNNING, Status.WAITING])
def test_what_cannot_be_resumed(desk: Desk, to: Status) -> None:
    desk.running("0-a").commit(to=to)

    assert desk.resume("0-a") == Refused("not_resumable", to)


def test_a_run_whose_events_are_gone_cannot_go_on(desk: Desk) -> None:
    desk.ended("0-a", Status.FAILED)
    desk.redis.delete(desk.keys.events("0-a"))

    assert desk.resume("0-a") == Refused("gone")
