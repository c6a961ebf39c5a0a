"""The store's verbs, as clients use them."""

from __future__ import annotations

from datetime import date

import pytest

from agent.errors import BrokenRecord, Conflict, NotResumable, RunNotFound, StoreError, TooLarge
from scheduler.inputs import Entry, NewAsk
from scheduler.ledgers import Counter, Ledgers
from scheduler.lifecycle import Status
from scheduler.policy import Policy
from scheduler.published import Cards
from scheduler.records import RunRecord
from scheduler.replies import Ask, Created, Outcome
from scheduler.scripting import run_many
from scheduler.scripts import Scripts
from scheduler.sessions import OnBusy
from scheduler.store import HASTENED_AT_ONCE, Store
from tests.support.runs import START
from tests.support.stage import Stage


def test_a_run_is_accepted_once(stage: Stage) -> None:
    async def scene(store: Store) -> tuple[Created, Created]:
        new = stage.desk.new_run("0-a", idempotency_key="k")
        return await store.create(new), await store.create(stage.desk.new_run("0-b", idempotency_key="k"))

    first, again = stage.play(scene)

    assert (first.code, first.run, again.code, again.run) == ("created", "0-a", "already", "0-a")


def test_what_is_not_accepted_says_why(stage: Stage) -> None:
    desk = stage.desk
    desk.create("0-a", idempotency_key="mail-42", session="s1")

    with pytest.raises(Conflict, match=r"'mail-42'.*0-a"):
        stage.play(lambda store: store.create(desk.new_run("0-b", idempotency_key="mail-42", digest="other")))
    with pytest.raises(Conflict, match=r"'s1'.*0-a"):
        stage.play(lambda store: store.create(desk.new_run("0-b", session="s1", on_busy=OnBusy.REJECT)))
    with pytest.raises(TooLarge, match=r"max_task_bytes = 262,144"):
        stage.play(lambda store: store.create(desk.new_run("0-b", event=b"x" * 262_145)))
    desk.scripts = Scripts(policy=Policy(max_behind=0))
    with pytest.raises(TooLarge, match=r"'s1'.*max_behind"):
        stage.play(lambda store: store.create(desk.new_run("0-b", session="s1")))


def test_the_runs_of_an_agent_are_hastened_however_many_were_put_off(stage: Stage) -> None:
    desk = stage.desk
    runs = [f"0-{number}" for number in range(HASTENED_AT_ONCE + 5)]
    for run in runs:
        desk.create(run)
        desk.do(desk.scripts.defer(run, deferral=f"d{run}", reason="no agent"))
    desk.create("0-never", delay_ms=60_000)
    desk.create("0-other", agent="other")
    desk.do(desk.scripts.defer("0-other", deferral="d", reason="no agent"))

    assert sorted(stage.play(lambda store: store.hasten("calc"))) == sorted((run, "default") for run in runs)
    assert stage.play(lambda store: store.hasten("calc")) == []
    assert desk.record(runs[-1]).not_before is None
    assert desk.record("0-other").not_before is not None


def test_a_record_tells_all(stage: Stage) -> None:
    owner = stage.desk.running("0-a", session="s", tenant="t", idempotency_key="k", metadata=b"{}", limits=b"{}")
    owner.commit(step=2, state=b"head", open=b"{}", hold=[Entry(stage.desk.keys.tenant("t"), "tokens", 3)])

    record = stage.play(lambda store: store.info("0-a"))

    assert (record.id, record.status, record.agent, record.queue) == ("0-a", Status.RUNNING, "calc", "default")
    assert (record.session, record.tenant, record.idempotency_key) == ("s", "t", "k")
    assert (record.metadata, record.limits, record.state, record.open) == (b"{}", b"{}", b"head", b"1:A {}")
    assert (record.token, record.worker, record.fence) == ("1:A", "w1", 1)
    assert (record.rev, record.seq, record.step, record.moves) == (1, 3, 2, 2)
    assert (record.created_at, record.status_at, record.expires_at, record.ended) == (START, START, None, False)


def test_runs_that_are_not_there_or_not_readable(stage: Stage) -> None:
    stage.desk.create("0-a")
    stage.desk.create("0-b")
    stage.desk.create("0-c")
    stage.desk.redis.hset(stage.desk.keys.run("0-b"), "id", "0-other")
    stage.desk.redis.hset(stage.desk.keys.run("0-c"), "rev", b"\xff")

    found = stage.play(lambda store: store.infos(["0-a", "0-b", "0-c", "0-x"]))

    assert [type(each) for each in found] == [RunRecord, BrokenRecord, BrokenRecord, RunNotFound]
    with pytest.raises(RunNotFound, match="0-x"):
        stage.play(lambda store: store.info("0-x"))
    with pytest.raises(BrokenRecord, match="'rev'"):
        stage.play(lambda store: store.info("0-c"))


def test_events_in_pages(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.store.EVENTS_PAGE", 3)
    stage.desk.running("0-a").commit(events=[b"3", b"4", b"5", b"6"])

    async def scene(store: Store) -> tuple[list[int], list[bytes], list[int]]:
        page = await store.events("0-a", after=1, count=2)
        everything = [event async for event in store.all_events("0-a")]
        rest = [event.seq async for event in store.all_events("0-a", after=5)]
        return [event.seq for event in page], [event.body for event in everything[2:]], rest

    page, bodies, rest = stage.play(scene)

    assert page == [2, 3]
    assert bodies == [b"3", b"4", b"5", b"6"]
    assert rest == [6]


def test_events_of_no_run(stage: Stage) -> None:
    with pytest.raises(RunNotFound):
        stage.play(lambda store: store.events("0-x"))


def test_the_last_event(stage: Stage) -> None:
    stage.desk.running("0-a").commit(events=[b"a", b"z"])

    last = stage.play(lambda store: store.last_event("0-a"))
    none = stage.play(lambda store: store.last_event("0-x"))

    assert last is not None
    assert (last.seq, last.at, last.body) == (4, stage.desk.now, b"z")
    assert none is None


def test_what_a_run_has_open(stage: Stage) -> None:
    owner = stage.desk.running("0-a")
    owner.commit(
        marks={"1.0": "started", "1.1": "planned"},
        asks={"q": NewAsk("reply", 5_000), "r": NewAsk("approval"), "old": None},
    )
    stage.desk.signal("0-a", "s1", "top_up", body=b"a b  c")

    assert stage.play(lambda store: store.asks("0-a")) == {
        "q": Ask("reply", stage.desk.now + 5_000),
        "r": Ask("approval", None),
    }
    assert stage.play(lambda store: store.calls("0-a")) == {"1.0": "started:1:A", "1.1": "planned"}
    (entry,) = stage.play(lambda store: store.inbox("0-a"))
    assert (entry.kind, entry.ask, entry.sid, entry.body) == ("top_up", "", "s1", b"a b  c")


def test_signals_in_words(stage: Stage) -> None:
    stage.desk.running("0-a").wait(asks={"q": NewAsk("reply"), "r": NewAsk("reply")})
    stage.desk.ended("0-b")

    async def signal(store: Store, run: str, sid: str, kind: str = "reply", ask: str = "") -> str:
        return await store.signal(run, sid=sid, kind=kind, body=b"{}", ask=ask)

    with pytest.raises(Conflict, match="several"):
        stage.play(lambda store: signal(store, "0-a", "s1"))
    assert stage.play(lambda store: signal(store, "0-a", "s2", ask="q")) == "woken"
    assert stage.play(lambda store: signal(store, "0-a", "s2", ask="q")) == "woken"
    with pytest.raises(Conflict, match="answered"):
        stage.play(lambda store: signal(store, "0-a", "s3", ask="q"))
    with pytest.raises(Conflict, match="no open request"):
        stage.play(lambda store: signal(store, "0-a", "s4", "approve"))
    with pytest.raises(Conflict, match="completed"):
        stage.play(lambda store: signal(store, "0-b", "s5", "top_up"))
    with pytest.raises(RunNotFound):
        stage.play(lambda store: signal(store, "0-x", "s6"))


def test_cancel_in_words(stage: Stage) -> None:
    stage.desk.running("0-a")
    stage.desk.create("0-b")
    stage.desk.ended("0-c")

    async def cancel(store: Store, run: str) -> str:
        return (await store.cancel(run, sid="c1", event=b"{}")).code

    assert stage.play(lambda store: cancel(store, "0-a")) == "asked"
    assert stage.play(lambda store: cancel(store, "0-b")) == "cancelled"
    assert stage.play(lambda store: cancel(store, "0-b")) == "cancelled"
    assert stage.play(lambda store: cancel(store, "0-c")) == "over"
    with pytest.raises(RunNotFound):
        stage.play(lambda store: cancel(store, "0-x"))


def test_resume_in_words(stage: Stage) -> None:
    stage.desk.ended("0-a", Status.FAILED, session="s")
    stage.desk.create("0-b", session="s")

    async def resume(store: Store, run: str, sid: str, on_busy: OnBusy = OnBusy.ENQUEUE) -> str:
        return await store.resume(run, sid=sid, event=b"{}", on_busy=on_busy)

    with pytest.raises(Conflict, match="0-b"):
        stage.play(lambda store: resume(store, "0-a", "r1", OnBusy.REJECT))
    assert stage.play(lambda store: resume(store, "0-a", "r2")) == "behind"
    assert stage.play(lambda store: resume(store, "0-a", "r2")) == "behind"
    with pytest.raises(NotResumable, match="queued"):
        stage.play(lambda store: resume(store, "0-a", "r3"))
    with pytest.raises(RunNotFound):
        stage.play(lambda store: resume(store, "0-x", "r4"))


def test_delete_in_words(stage: Stage) -> None:
    stage.desk.create("0-a")
    stage.desk.ended("0-b")

    with pytest.raises(Conflict, match="queued"):
        stage.play(lambda store: store.delete("0-a"))
    stage.play(lambda store: store.delete("0-b"))
    with pytest.raises(RunNotFound):
        stage.play(lambda store: store.delete("0-b"))


def test_a_broken_record_is_named(stage: Stage) -> None:
    stage.desk.create("0-a")
    stage.desk.redis.hdel(stage.desk.keys.run("0-a"), "moves")

    with pytest.raises(BrokenRecord, match="moves"):
        stage.play(lambda store: store.cancel("0-a", sid="c1", event=b"{}"))


def test_the_clock_of_the_store(stage: Stage) -> None:
    assert stage.play(lambda store: store.now()) == START
    stage.desk.redis.delete(stage.desk.keys.clock)

    assert 1_700_000_000_000 < stage.play(lambda store: store.now()) < START


def test_calls_in_one_pipeline_fail_alone(stage: Stage) -> None:
    """A record that breaks a script in mid-pipeline, and scripts that the server has forgotten, concern no other call."""
    desk = stage.desk
    for run in ("0-a", "0-b", "0-c"):
        desk.create(run)
    desk.redis.set(desk.keys.inbox("0-b"), "text")
    desk.redis.script_flush()

    async def scene(store: Store) -> list[Outcome | Exception | object]:
        calls = [desk.scripts.signal(run, sid="s", kind="top_up", body=b"{}") for run in ("0-a", "0-b", "0-c")]
        return [*await run_many(store.redis, calls)]

    first, broken, last = stage.play(scene)

    assert isinstance(broken, BrokenRecord)
    assert not isinstance(first, StoreError)
    assert not isinstance(last, StoreError)
    assert desk.redis.llen(desk.keys.inbox("0-a")) == desk.redis.llen(desk.keys.inbox("0-c")) == 1


def test_usage_by_day_and_tenant(stage: Stage) -> None:
    desk = stage.desk
    day, tenant = desk.keys.usage(date(2026, 1, 2)), desk.keys.tenant("t")

    async def scene(store: Store) -> tuple[dict[str, Counter], dict[str, Counter], dict[str, Counter]]:
        ledgers = Ledgers(store.redis, store.keys)
        await ledgers.limit_tenant("t", {"tokens": 50, "calls": 5})
        await ledgers.limit_tenant("t", {"tokens": 100, "calls": None})
        owner = desk.running("0-a")
        owner.commit(settled=[Entry(day, "calc:tokens", 7)], open=b"{}", hold=[Entry(tenant, "tokens", 30)])
        usage = dict(await ledgers.usage(date(2026, 1, 2)))
        return usage, dict(await ledgers.tenant("t")), dict(await ledgers.usage(date(2026, 1, 3)))

    assert stage.play(scene) == (
        {"calc:tokens": Counter(used=7)},
        {"tokens": Counter(used=0, held=30, limit=100)},
        {},
    )


def test_cards_count_for_a_while(stage: Stage) -> None:
    async def scene(store: Store) -> list[str]:
        cards = Cards(store.redis, store.keys)
        await cards.publish("support", b'{"v":1}', worker="w1", queues=["default"], life_ms=60_000)
        await cards.publish("support", b'{"v":2}\n', worker="w2", queues=["default"], life_ms=60_000)
        await cards.publish("old", b"{}", worker="w1", queues=["default"], life_ms=-60_000)
        found = await cards.all()
        assert (found["support"].card, found["support"].worker) == (b'{"v":2}\n', "w2")
        return [*found, *map(bytes.decode, await store.redis.hkeys(store.keys.cards))]  # pyright: ignore

    assert stage.play(scene) == ["support", "support"]


def test_who_serves_an_agent_serves_it_from_its_queues_only(stage: Stage) -> None:
    """A run is not passed on to a worker that would not take it."""

    async def scene(store: Store) -> list[bool]:
        cards = Cards(store.redis, store.keys)
        await cards.publish("support", b"{}", worker="w1", queues=["fast", "low"], life_ms=60_000)
        await cards.publish("support", b"{}", worker="w2", queues=["gpu"], life_ms=60_000)
        await cards.publish("old", b"{}", worker="w1", queues=["fast"], life_ms=-60_000)
        stage.desk.redis.hset(store.keys.served, "broken\nfast", b"soon")
        places = [
            ("support", "fast"),
            ("support", "gpu"),
            ("support", "default"),
            ("old", "fast"),
            ("new", "fast"),
            ("broken", "fast"),
        ]
        served = [await cards.is_served(*place) for place in places]
        await cards.all()
        assert sorted(await store.redis.hkeys(store.keys.served)) == [
            b"support\nfast",
            b"support\ngpu",
            b"support\nlow",
        ]  # pyright: ignore
        return served

    assert stage.play(scene) == [True, True, False, False, False, False]


@pytest.mark.parametrize("garbage", [b"no card", b"", b"\xff\xfe 1\n{}", b"soon w1\n{}", b"9" * 5000 + b" w1\n{}"])
def test_a_card_that_cannot_be_read_stands_in_nobodys_way(stage: Stage, garbage: bytes) -> None:
    stage.desk.redis.hset(stage.desk.keys.cards, "broken", garbage)
    stage.desk.redis.hset(stage.desk.keys.cards, b"\xff", b"99999999999999 w1\n{}")

    async def scene(store: Store) -> list[str]:
        cards = Cards(store.redis, store.keys)
        await cards.publish("support", b"{}", worker="w1", queues=["default"], life_ms=60_000)
        return list(await cards.all())

    assert stage.play(scene) == ["support"]
    assert stage.desk.redis.hkeys(stage.desk.keys.cards) == [b"support"]


def test_sizes_are_refused_before_anything_is_sent(stage: Stage) -> None:
    owner = stage.desk.running("0-a")

    with pytest.raises(TooLarge, match="max_event_bytes = 1,048,576"):
        owner.call(events=[b"x" * 1_048_577])
    with pytest.raises(TooLarge, match="max_state_bytes = 65,536"):
        owner.call(state=b"x" * 65_537)
    with pytest.raises(TooLarge, match="max_calls = 3,000"):
        owner.call(marks={str(number): "planned" for number in range(3_001)})
    with pytest.raises(TooLarge, match="max_event_bytes"):
        stage.desk.signal("0-a", "s", "top_up", body=b"x" * 1_048_577)
    owner.commit(marks={str(number): "planned" for number in range(3_000)}, events=[b"x" * 1_048_576])
