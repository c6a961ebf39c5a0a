"""Every script may be sent again: at once, when its answer was lost, and at any later time, out of some buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from scheduler.inputs import Entry, NewAsk
from scheduler.lifecycle import Status
from scheduler.scripting import ScriptCall
from scheduler.sessions import OnBusy
from tests.support import invariants
from tests.support.runs import RQ_WORDS, Desk, rq_keys
from tests.support.snapshot import Snapshot


@dataclass(frozen=True)
class Case:
    """A call, what it and its repetition answer, and a course of the run after which it comes once more."""

    prepare: Callable[[Desk], ScriptCall[Any]]
    first: str
    again: str
    goes_on: Callable[[Desk], object] = lambda desk: desk.claim("0-a", "later").commit(to=Status.COMPLETED)
    late: str = ""


def new_run(desk: Desk) -> ScriptCall[Any]:
    return desk.scripts.create(desk.new_run("0-a", session="s", tenant="t", idempotency_key="k"))


def interrupting_run(desk: Desk) -> ScriptCall[Any]:
    desk.running("0-z", session="s").wait(asks={"q": NewAsk("reply")})
    return desk.scripts.create(desk.new_run("0-a", session="s", on_busy=OnBusy.INTERRUPT))


def claim(desk: Desk) -> ScriptCall[Any]:
    desk.create("0-a")
    return desk.claim_call("0-a")


def commit(desk: Desk) -> ScriptCall[Any]:
    tenant = desk.keys.tenant("t")
    owner = desk.running("0-a")
    owner.commit(open=b"1", hold=[Entry(tenant, "tokens", 10)])
    desk.signal("0-a", "s1", "top_up")
    return owner.call(
        consumed=1, open=b"2", settled=[Entry(tenant, "tokens", 9)], hold=[Entry(tenant, "tokens", 20)],
        step=1, state=b"s", marks={"1.0": "started"}, asks={"q": NewAsk("reply")},
    )  # fmt: skip


def end(desk: Desk) -> ScriptCall[Any]:
    owner = desk.running("0-a", session="s")
    desk.create("0-b", session="s")
    return owner.call(to=Status.FAILED)


def park(desk: Desk) -> ScriptCall[Any]:
    return desk.running("0-a").call(to=Status.WAITING, asks={"q": NewAsk("reply", 1_000)})


def renew(desk: Desk) -> ScriptCall[Any]:
    owner = desk.running("0-a")
    desk.pass_time(2_000)
    return desk.scripts.renew([("0-a", owner.token), ("0-b", "1:A")])


def reap(desk: Desk) -> ScriptCall[Any]:
    owner = desk.running("0-a")
    owner.commit(open=b"1", hold=[Entry(desk.keys.tenant("t"), "tokens", 10)])
    desk.pass_time(6_000)
    return desk.reap_call("0-a", owner.token)


def signal(desk: Desk) -> ScriptCall[Any]:
    desk.running("0-a").wait(asks={"q": NewAsk("reply")})
    return desk.scripts.signal("0-a", sid="s1", kind="reply", body=b"{}")


def cancel(desk: Desk) -> ScriptCall[Any]:
    desk.create("0-a", session="s")
    desk.create("0-b", session="s")
    return desk.scripts.cancel("0-a", sid="c1", event=b"{}")


def ask_to_end(desk: Desk) -> ScriptCall[Any]:
    desk.running("0-a")
    return desk.scripts.cancel("0-a", sid="c1", event=b"{}")


def resume(desk: Desk) -> ScriptCall[Any]:
    desk.ended("0-a", Status.FAILED)
    return desk.scripts.resume("0-a", sid="r1", event=b"{}", limits=b"{}")


def sweep(desk: Desk) -> ScriptCall[Any]:
    desk.create("0-a")
    desk.do(desk.scripts.sweep())
    desk.pass_time(2_500)
    return desk.scripts.sweep()


def ring(desk: Desk) -> ScriptCall[Any]:
    desk.running("0-a").commit(to=Status.QUEUED)
    desk.redis.hset("rq:job:0-a", "status", "started")
    desk.redis.rpush("rq:queue:default", "0-z")
    return desk.scripts.ring("0-a", rq_keys=rq_keys("0-a"), rq_words=RQ_WORDS)


def defer(desk: Desk) -> ScriptCall[Any]:
    desk.create("0-a")
    return desk.scripts.defer("0-a", deferral="d1", reason="no agent")


def hasten(desk: Desk) -> ScriptCall[Any]:
    desk.do(defer(desk))
    return desk.scripts.hasten("0-a")


def delete(desk: Desk) -> ScriptCall[Any]:
    desk.ended("0-a")
    return desk.scripts.delete("0-a")


def forget(desk: Desk) -> ScriptCall[Any]:
    desk.ended("0-z", session="s", tenant="t")
    return desk.scripts.forget("s", "t", last_activity=desk.now)


def use_the_session_again(desk: Desk) -> None:
    desk.pass_time(10)
    desk.ended("0-a", session="s", tenant="t")


def finish(desk: Desk) -> None:
    record = desk.record("0-a")
    desk.reap("0-a", record.token, dead=True)
    desk.claim("0-a", "later").commit(to=Status.COMPLETED)


def nothing(_: Desk) -> None: ...


CASES = {
    "create": Case(new_run, "created", "already", late="already"),
    "create that interrupts": Case(interrupting_run, "created", "already", late="already"),
    "claim": Case(claim, "claimed", "yours", finish, "completed"),
    "commit": Case(commit, "done", "already", finish, "stale"),
    "commit of an end": Case(end, "done", "already", lambda desk: desk.resume("0-a"), "already"),
    "commit of a wait": Case(park, "done", "already", lambda desk: desk.signal("0-a", "s"), "already"),
    "renew": Case(renew, "", "", finish, ""),
    "reap": Case(reap, "requeued", "gone", late="gone"),
    "signal": Case(signal, "woken", "already", lambda desk: desk.claim("0-a", "later").commit(), "already"),
    "cancel": Case(cancel, "cancelled", "already", nothing, "already"),
    "cancel of a running run": Case(ask_to_end, "asked", "already", nothing, "already"),
    "resume": Case(resume, "resumed", "already", late="already"),
    "sweep": Case(sweep, "swept", "fresh", nothing, "fresh"),
    "ring": Case(ring, "rung", "waits", lambda desk: desk.claim("0-a", "later"), "no"),
    "defer": Case(defer, "deferred", "already", nothing, "already"),
    "hasten": Case(hasten, "hastened", "no", lambda desk: desk.claim("0-a", "later"), "no"),
    "delete": Case(delete, "deleted", "missing", nothing, "missing"),
    "forget": Case(forget, "forgotten", "forgotten", use_the_session_again, "moved"),
}


def code(answer: object) -> str:
    return getattr(answer, "code", "")


def seen(desk: Desk) -> Snapshot:
    found = desk.snapshot()
    invariants.check(desk.keys, found)
    return found


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_call_that_is_sent_twice_is_done_once(desk: Desk, case: Case) -> None:
    call = case.prepare(desk)
    assert code(desk.do(call)) == case.first
    before = seen(desk)

    assert code(desk.do(call)) == case.again
    assert seen(desk) == before


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_call_that_comes_late_changes_nothing(desk: Desk, case: Case) -> None:
    call = case.prepare(desk)
    desk.do(call)
    case.goes_on(desk)
    before = seen(desk)

    assert code(desk.do(call)) == case.late
    assert seen(desk) == before


def test_every_script_is_among_the_cases() -> None:
    covered = {case.partition(" ")[0] for case in CASES}

    assert covered == {"create", "claim", "commit", "renew", "reap", "signal", "cancel", "resume", "sweep", "ring",
                       "defer", "hasten", "delete", "forget"}  # fmt: skip


def test_what_was_answered_is_answered_again(desk: Desk) -> None:
    """What a worker learns from a commit it learns again from its repetition."""
    call = commit(desk)

    first, again = desk.do(call), desk.do(call)

    assert {**vars_of(first), "code": ""} == {**vars_of(again), "code": ""}


def test_a_claim_is_answered_again_in_full(desk: Desk) -> None:
    call = claim(desk)

    first, again = desk.do(call), desk.do(call)

    assert {**vars_of(first), "code": ""} == {**vars_of(again), "code": ""}


def vars_of(answer: object) -> dict[str, Any]:
    names: Any = getattr(answer, "_fields", None) or getattr(answer, "__dataclass_fields__", ())
    return {name: getattr(answer, name) for name in names}
