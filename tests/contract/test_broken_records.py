"""A record that cannot be read is said to be so, kept as it is, and stands in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent.budget import Budget
from agent.errors import BrokenRecord
from agent.events import RunCreated, encode
from scheduler.inputs import NewAsk
from scheduler.lifecycle import Status
from scheduler.replies import Claimed, Refused
from scheduler.scripting import ScriptCall
from scheduler.sessions import OnBusy
from scheduler.store import Store
from scheduler.sweeps.sweeper import TEND_EVERY, Sweeper
from tests.support.runs import Desk, Owner
from tests.support.stage import Stage

CALLS: dict[str, Callable[[Desk, Owner], ScriptCall[Any]]] = {
    "claim": lambda desk, owner: desk.claim_call("0-a", "B"),
    "commit": lambda desk, owner: owner.call(),
    "commit of an end": lambda desk, owner: owner.call(to=Status.COMPLETED),
    "reap": lambda desk, owner: desk.reap_call("0-a", owner.token, dead=True),
    "signal": lambda desk, owner: desk.scripts.signal("0-a", sid="s1", kind="top_up", body=b"{}"),
    "cancel": lambda desk, owner: desk.scripts.cancel("0-a", sid="c1", event=b"{}"),
    "resume": lambda desk, owner: desk.scripts.resume("0-a", sid="r1", event=b"{}"),
    "defer": lambda desk, owner: desk.scripts.defer("0-a", deferral="d1", reason="r"),
    "hasten": lambda desk, owner: desk.scripts.hasten("0-a"),
    "delete": lambda desk, owner: desk.scripts.delete("0-a"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@pytest.mark.parametrize(
    ("field", "value"), [("seq", None), ("rev", "many"), ("status", "sleeping"), ("id", "0-b"), ("token", None)]
)
def test_no_script_works_on_a_broken_record(
    desk: Desk, call: Callable[[Desk, Owner], ScriptCall[Any]], field: str, value: str | None
) -> None:
    owner = desk.running("0-a")
    if value is None:
        desk.redis.hdel(desk.keys.run("0-a"), field)
    else:
        desk.redis.hset(desk.keys.run("0-a"), field, value)
    before = desk.snapshot()

    assert desk.do(call(desk, owner)) == Refused("broken", field)
    assert desk.snapshot() == before
    with pytest.raises(BrokenRecord, match=field if field != "id" else "0-b"):
        desk.record("0-a")


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_no_script_works_on_what_is_no_record(desk: Desk, call: Callable[[Desk, Owner], ScriptCall[Any]]) -> None:
    owner = desk.running("0-a")
    desk.redis.delete(desk.keys.run("0-a"))
    desk.redis.set(desk.keys.run("0-a"), "text")
    before = desk.snapshot()

    answer = desk.do(call(desk, owner))

    assert isinstance(answer, Refused)
    assert answer.code == "broken"
    assert desk.snapshot() == before


@pytest.mark.parametrize("kind", ["events", "inbox", "calls", "asks", "sids"])
@pytest.mark.parametrize("queued", [True, False])
def test_a_run_with_a_damaged_key_has_no_owner(desk: Desk, kind: str, queued: bool) -> None:
    if queued:
        desk.create("0-a")
    else:
        desk.running("0-a").wait(delay_ms=1)
    key = desk.keys.family("0-a")[0].replace(":run:", f":{kind}:")
    desk.redis.delete(key)
    desk.redis.set(key, "text")
    before = desk.snapshot()
    call = desk.claim_call("0-a") if queued else desk.scripts.cancel("0-a", sid="c1", event=b"{}")

    assert desk.do(call) == Refused("broken", key)
    assert desk.snapshot() == before


def test_a_run_that_lost_events_has_no_owner(desk: Desk) -> None:
    desk.running("0-a").commit(to=Status.QUEUED)
    desk.redis.xdel(desk.keys.events("0-a"), "3-0")

    assert desk.do(desk.claim_call("0-a", "B")) == Refused("broken", desk.keys.events("0-a"))


def test_nobody_is_interrupted_halfway(desk: Desk) -> None:
    desk.create("0-a", session="s")
    desk.redis.delete(desk.keys.events("0-a"))
    before = desk.snapshot()

    answer = desk.do(desk.scripts.create(desk.new_run("0-b", session="s", on_busy=OnBusy.INTERRUPT)))

    assert answer == Refused("broken", desk.keys.events("0-a"))
    assert desk.snapshot() == before


def test_a_broken_run_does_not_stop_the_sweeps(desk: Desk) -> None:
    desk.do(desk.scripts.sweep())
    for run in ("0-a", "0-b", "0-c", "0-d"):
        desk.create(run, delay_ms=10)
    desk.running("0-e").wait(asks={"q": NewAsk("reply", 10)})
    desk.running("0-f")
    desk.redis.hdel(desk.keys.run("0-a"), "seq")
    desk.redis.delete(desk.keys.run("0-b"), desk.keys.asks("0-e"), desk.keys.run("0-f"))
    desk.redis.set(desk.keys.run("0-b"), "text")
    desk.redis.set(desk.keys.asks("0-e"), "text")
    desk.redis.set(desk.keys.run("0-f"), "text")
    desk.pass_time(2_000)
    desk.redis.set(desk.keys.swept_at, desk.now - 500)

    swept = desk.do(desk.scripts.sweep())

    assert [run for run, _ in swept.rings] == ["0-c", "0-d"]
    assert desk.redis.zscore(desk.keys.due, "0-a") == desk.now + 60_000
    assert desk.redis.get(desk.keys.run("0-b")) == b"text"


def test_an_unreadable_run_does_not_stop_the_mending_of_rqs_books(stage: Stage) -> None:
    """Four queued runs whose jobs somebody deleted; the first event of one cannot be read, the record of another is broken."""
    desk, runs = stage.desk, ("0-a", "0-b", "0-c", "0-d")
    body = encode(RunCreated(agent="calc", task="Add.", budget=Budget()))
    for run in runs:
        desk.create(run, event=b"no event" if run == "0-a" else body)
        desk.redis.zadd(desk.keys.due, {run: desk.now + 1_000_000})
        desk.redis.zadd(desk.keys.mirror, {run: 1})
    desk.redis.hdel(desk.keys.run("0-b"), "seq")

    async def scene(store: Store) -> None:
        sweeper = Sweeper(store.redis, store, ["default"])
        for _ in range(TEND_EVERY):
            desk.pass_time(500)
            await sweeper.once()

    stage.play(scene)

    made = {run: desk.redis.exists(f"rq:job:{run}") for run in runs}
    assert made == {"0-a": 1, "0-b": 0, "0-c": 1, "0-d": 1}
    assert [run.decode() for run in desk.redis.lrange("rq:queue:default", 0, -1)].count("0-a") == 1, (
        "a worker says what it is"
    )


def test_a_claim_of_a_sound_run_goes_on(desk: Desk) -> None:
    desk.create("0-a")
    desk.redis.set(desk.keys.run("0-z"), "text")

    assert isinstance(desk.do(desk.claim_call("0-a")), Claimed)
