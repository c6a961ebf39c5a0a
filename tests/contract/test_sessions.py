"""The runs of a session come one after another, whatever ends the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.inputs import NewAsk
from scheduler.lifecycle import Status
from scheduler.policy import Policy
from scheduler.replies import Outcome, Refused
from scheduler.scripts import Scripts
from scheduler.sessions import OnBusy
from tests.support.runs import Desk

SESSION: dict[str, Any] = {"session": "s", "tenant": "t"}


def line(desk: Desk) -> list[str]:
    return [run.decode() for run in desk.redis.lrange(desk.keys.next("t:s"), 0, -1)]


def active(desk: Desk) -> str:
    return desk.redis.hget(desk.keys.session("t:s"), "active").decode()


def remembered(desk: Desk) -> list[str]:
    return [run.decode() for run in desk.redis.lrange(desk.keys.begun("t:s"), 0, -1)]


def test_the_second_run_stands_behind_the_first(desk: Desk) -> None:
    assert not desk.create("0-a", **SESSION).behind
    assert desk.create("0-b", **SESSION).behind

    assert (active(desk), line(desk)) == ("0-a", ["0-b"])
    assert desk.do(desk.claim_call("0-b")) == Refused("behind")
    assert desk.redis.zscore(desk.keys.due, "0-b") is None


def test_sessions_of_one_name_belong_to_their_tenants(desk: Desk) -> None:
    desk.create("0-a", **SESSION)

    assert not desk.create("0-b", session="s", tenant="u").behind
    assert not desk.create("0-c", session="s").behind


def complete(desk: Desk) -> str:
    return desk.claim("0-a").commit(to=Status.COMPLETED).promoted


def cancel_it(desk: Desk) -> str:
    answer = desk.cancel("0-a")
    assert isinstance(answer, Outcome)
    return answer.promoted


def cancel_it_while_it_waits(desk: Desk) -> str:
    desk.claim("0-a").wait(asks={"q": NewAsk("reply")})
    return cancel_it(desk)


def poison_it(desk: Desk) -> str:
    *_, answer = [desk.reap("0-a", desk.claim("0-a", f"A{number}").token, dead=True) for number in range(3)]
    assert isinstance(answer, Outcome)
    return answer.promoted


def reap_it_when_it_is_cancelled(desk: Desk) -> str:
    owner = desk.claim("0-a")
    desk.cancel("0-a")
    answer = desk.reap("0-a", owner.token, dead=True)
    assert isinstance(answer, Outcome)
    return answer.promoted


@pytest.mark.parametrize(
    "end", [complete, cancel_it, cancel_it_while_it_waits, poison_it, reap_it_when_it_is_cancelled]
)
def test_every_end_promotes_the_next(desk: Desk, end: Callable[[Desk], str]) -> None:
    for run in ("0-a", "0-b", "0-c"):
        desk.create(run, **SESSION)

    assert end(desk) == "0-b"

    assert (active(desk), line(desk)) == ("0-b", ["0-c"])
    assert desk.redis.zscore(desk.keys.due, "0-b") == desk.now
    assert desk.claim("0-b").commit(to=Status.COMPLETED).promoted == "0-c"


def test_who_is_cancelled_in_line_leaves_it(desk: Desk) -> None:
    for run in ("0-a", "0-b", "0-c"):
        desk.create(run, **SESSION)

    assert desk.cancel("0-b") == Outcome("cancelled")

    assert (active(desk), line(desk)) == ("0-a", ["0-c"])


def test_a_run_that_is_gone_is_passed_over(desk: Desk) -> None:
    for run in ("0-a", "0-b", "0-c"):
        desk.create(run, **SESSION)
    desk.redis.delete(desk.keys.run("0-b"))

    assert complete(desk) == "0-c"


def test_a_busy_session_may_reject(desk: Desk) -> None:
    desk.create("0-a", **SESSION)
    before = desk.snapshot()

    answer = desk.do(desk.scripts.create(desk.new_run("0-b", on_busy=OnBusy.REJECT, **SESSION)))

    assert answer == Refused("busy", "0-a")
    assert desk.snapshot() == before


def test_a_line_has_an_end(desk: Desk) -> None:
    desk.scripts = Scripts(policy=Policy(max_behind=1))
    desk.create("0-a", **SESSION)
    desk.create("0-b", **SESSION)
    before = desk.snapshot()

    assert desk.do(desk.scripts.create(desk.new_run("0-c", **SESSION))) == Refused("full")
    assert desk.snapshot() == before


@pytest.mark.parametrize("on_busy", [OnBusy.INTERRUPT, OnBusy.ROLLBACK])
def test_who_interrupts_a_running_run_is_next(desk: Desk, on_busy: OnBusy) -> None:
    owner = desk.running("0-a", **SESSION)
    desk.create("0-b", **SESSION)

    answer = desk.create("0-c", on_busy=on_busy, **SESSION)

    assert (answer.behind, answer.cancelled) == (True, "")
    assert line(desk) == ["0-c", "0-b"]
    assert owner.commit().cancel == on_busy
    assert desk.record("0-a").forgotten == (on_busy is OnBusy.ROLLBACK)
    assert owner.commit(to=Status.CANCELLED).promoted == "0-c"


@pytest.mark.parametrize("on_busy", [OnBusy.INTERRUPT, OnBusy.ROLLBACK])
def test_who_interrupts_a_run_that_nobody_has_is_active_at_once(desk: Desk, on_busy: OnBusy) -> None:
    desk.running("0-a", **SESSION).wait(asks={"q": NewAsk("reply")})
    desk.create("0-b", **SESSION)

    answer = desk.create("0-c", on_busy=on_busy, overtaken_event=b"interrupted", **SESSION)

    assert (answer.behind, answer.cancelled) == (False, "0-a")
    assert (desk.record("0-a").status, desk.record("0-a").forgotten) == (Status.CANCELLED, on_busy is OnBusy.ROLLBACK)
    assert desk.event_bodies("0-a")[-1] == b"interrupted"
    assert (active(desk), line(desk)) == ("0-c", ["0-b"])
    assert desk.claim("0-c").token == "1:A"


@pytest.mark.parametrize("on_busy", [OnBusy.INTERRUPT, OnBusy.ROLLBACK])
def test_who_interrupts_ends_one_that_was_about_to_interrupt_as_well(desk: Desk, on_busy: OnBusy) -> None:
    """case-125: the last word counts, and the others are said before it."""
    owner = desk.running("0-a", **SESSION)
    desk.create("0-b", **SESSION)
    desk.create("0-c", on_busy=OnBusy.INTERRUPT, **SESSION)

    answer = desk.create("0-d", on_busy=on_busy, overtaken_event=b"overtaken", **SESSION)

    assert (answer.behind, answer.cancelled) == (True, "0-c")
    assert (desk.record("0-c").status, desk.event_bodies("0-c")[-1]) == (Status.CANCELLED, b"overtaken")
    assert line(desk) == ["0-d", "0-b"]
    assert owner.commit(to=Status.CANCELLED).promoted == "0-d"
    began_before = ("0-a", "0-c") if on_busy is OnBusy.INTERRUPT else ()
    assert desk.claim("0-d").claimed.begun == (*began_before, "0-d")


def test_a_run_that_was_put_off_starts_no_sooner_because_it_stood_behind_another(desk: Desk) -> None:
    desk.create("0-a", **SESSION)
    desk.create("0-b", delay_ms=5_000, **SESSION)
    desk.create("0-c", delay_ms=9_000, on_busy=OnBusy.INTERRUPT, **SESSION)

    assert desk.do(desk.claim_call("0-c")) == Refused("early", "9000")
    assert desk.redis.zscore(desk.keys.due, "0-c") == desk.now + 9_000
    desk.cancel("0-c")
    assert desk.do(desk.claim_call("0-b")) == Refused("early", "5000")


def test_a_resumed_run_stands_behind_who_came_meanwhile(desk: Desk) -> None:
    desk.ended("0-a", Status.FAILED, **SESSION)
    desk.create("0-b", **SESSION)

    assert desk.resume("0-a", "r1", OnBusy.REJECT) == Refused("busy", "0-b")
    assert desk.resume("0-a", "r2") == Refused("behind")
    assert (active(desk), line(desk)) == ("0-b", ["0-a"])
    assert desk.claim("0-b").commit(to=Status.COMPLETED).promoted == "0-a"


def test_a_resumed_run_may_interrupt(desk: Desk) -> None:
    desk.ended("0-a", Status.FAILED, **SESSION)
    desk.create("0-b", **SESSION)

    assert desk.resume("0-a", on_busy=OnBusy.INTERRUPT) == Refused("resumed")
    assert active(desk) == "0-a"
    assert desk.record("0-b").status is Status.CANCELLED


def test_a_session_remembers_what_its_active_run_says(desk: Desk) -> None:
    owner = desk.running("0-a", **SESSION)
    owner.commit(session_state=b"draft", session_cursor="0-a")
    assert desk.redis.hget(desk.keys.session("t:s"), "state") is None
    owner.commit(to=Status.COMPLETED, session_state=b"summary", session_cursor="0-a")
    desk.create("0-b", **SESSION)

    claimed = desk.claim("0-b").claimed

    assert (claimed.session_state, claimed.begun) == (b"summary", ("0-a", "0-b"))
    assert desk.redis.hget(desk.keys.session("t:s"), "cursor") == b"0-a"


def interrupt(desk: Desk) -> None:
    desk.create("0-b", on_busy=OnBusy.INTERRUPT, **SESSION)


def roll_back(desk: Desk) -> None:
    desk.create("0-b", on_busy=OnBusy.ROLLBACK, **SESSION)


@pytest.mark.parametrize(
    ("end", "state", "begun"),
    [(cancel_it, b"draft", ["0-a"]), (interrupt, b"draft", ["0-a"]), (roll_back, None, [])],
)
def test_what_a_run_made_of_the_memory_stays_unless_it_is_rolled_back(
    desk: Desk, end: Callable[[Desk], object], state: bytes | None, begun: list[str]
) -> None:
    """Also where no worker has the run at its end."""
    desk.running("0-a", **SESSION).wait(asks={"q": NewAsk("reply")}, session_state=b"draft")

    end(desk)

    assert desk.redis.hget(desk.keys.session("t:s"), "state") == state
    assert remembered(desk) == begun


def test_a_run_that_is_rolled_back_but_completes_first_leaves_nothing(desk: Desk) -> None:
    owner = desk.running("0-a", **SESSION)
    roll_back(desk)

    owner.commit(to=Status.COMPLETED, session_state=b"summary")

    assert desk.record("0-a").status is Status.COMPLETED
    assert desk.redis.hget(desk.keys.session("t:s"), "state") is None
    assert desk.claim("0-b").claimed.begun == ("0-b",)


def test_runs_are_remembered_in_the_order_in_which_they_began(desk: Desk) -> None:
    owner = desk.running("0-a", **SESSION)
    desk.create("0-b", **SESSION)
    desk.create("0-c", on_busy=OnBusy.INTERRUPT, **SESSION)
    owner.commit(to=Status.CANCELLED)
    desk.claim("0-c").commit(to=Status.FAILED)
    desk.resume("0-c")

    assert desk.claim("0-b").claimed.begun == ("0-a", "0-c", "0-b")


def test_a_run_that_never_began_is_remembered_where_it_was_interrupted_and_not_where_it_was_cancelled(
    desk: Desk,
) -> None:
    desk.create("0-x", **SESSION)
    desk.cancel("0-x")
    desk.create("0-a", **SESSION)
    interrupt(desk)

    assert desk.claim("0-b").claimed.begun == ("0-a", "0-b")


def test_a_run_that_goes_on_when_fifty_others_have_begun_is_remembered_anew(desk: Desk) -> None:
    desk.ended("0-x", Status.FAILED, **SESSION)
    for number in range(50):
        desk.ended(f"0-{number}", **SESSION)
    desk.resume("0-x")

    assert desk.claim("0-x", "B").claimed.begun == (*(f"0-{number}" for number in range(1, 50)), "0-x")


def test_a_memory_holds_the_latest_fifty_runs(desk: Desk) -> None:
    for number in range(52):
        desk.ended(f"0-{number}", **SESSION)

    assert remembered(desk) == [f"0-{number}" for number in range(2, 52)]


def test_an_idle_session_ends_some_time(desk: Desk) -> None:
    policy = Policy(run_retention_ms=1_000, session_retention_ms=5_000)
    desk.scripts = Scripts(policy=policy)
    desk.ended("0-a", **SESSION)
    snapshot = desk.snapshot()
    for key in (desk.keys.session("t:s"), desk.keys.begun("t:s")):
        assert snapshot.expiry(key) == desk.now + 5_000

    desk.create("0-b", **SESSION)

    for key in (desk.keys.session("t:s"), desk.keys.begun("t:s")):
        assert desk.snapshot().expiry(key) == -1


def test_sessions_are_found_by_their_last_activity_until_they_end(desk: Desk) -> None:
    desk.scripts = Scripts(policy=Policy(run_retention_ms=1_000, session_retention_ms=5_000))
    desk.create("0-a", session="waits")
    desk.pass_time(500)
    desk.ended("0-b", **SESSION)
    began = desk.now

    assert desk.snapshot().scores(desk.keys.sessions) == {":waits": began - 500, "t:s": began}
    assert desk.snapshot().scores(desk.keys.sessions_of("t")) == {"t:s": began}
    desk.redis.delete(desk.keys.session("t:s"))  # as its expiry will have done
    desk.pass_time(6_000)
    desk.do(desk.scripts.sweep())
    desk.pass_time(500)
    desk.do(desk.scripts.sweep())

    assert desk.snapshot().scores(desk.keys.sessions) == {":waits": desk.now}
    assert not desk.redis.exists(desk.keys.sessions_of("t"))


def test_the_runs_of_a_memory_live_as_long_as_the_session(desk: Desk) -> None:
    desk.scripts = Scripts(policy=Policy(run_retention_ms=1_000, session_retention_ms=5_000))
    for run in ("0-a", "0-b"):
        desk.ended(run, **SESSION)
        desk.pass_time(100)
    desk.running("0-c", **SESSION).commit(to=Status.COMPLETED, session_state=b"summary", session_cursor="0-b")

    assert desk.record("0-a").expires_at == desk.now - 100 + 5_000  # before the cursor: from the close of 0-b
    assert desk.record("0-b").expires_at == desk.now + 5_000
    assert desk.record("0-c").expires_at == desk.now + 5_000
