"""What a worker is granted it gets at once, whatever goes wrong beside it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
import redis

from agent.errors import BrokenRecord
from scheduler.connection import connect
from scheduler.histories import LARGEST_PAGE, fewer, next_count
from scheduler.lifecycle import Status
from scheduler.rq_bridge import Popped
from scheduler.scripts import Scripts
from scheduler.store import Store
from scheduler.wire import Line
from tests.support.runs import Desk
from tests.support.stage import Stage
from worker.claims import Claim, Claimer, Refusals, Rooms
from worker.recall import Recall

NOBODY_THERE = "redis://127.0.0.1:1/0"


def test_a_run_is_granted_although_it_cannot_be_said_why_another_was_refused(redis_url: str) -> None:
    """Claims have a connection of their own; the pool, over which runs are passed on, may fail alone."""
    desk = Desk(cast(Any, redis.Redis).from_url(redis_url, protocol=2))
    desk.create("0-a")
    desk.create("0-b", agent="other")

    async def scenario() -> tuple[list[Claim], Refusals]:
        client, pool = connect(redis_url), connect(NOBODY_THERE, connect_timeout=0.5)
        line, granted = Line(client), list[Claim]()
        claimer = Claimer(pool, Scripts(), worker="w1", agents=["calc"], line=line)
        popped = [Popped("0-b", "default"), Popped("0-a", "default")]
        refusals = await claimer.claim(popped, Rooms(1, 1), granted.append)
        await line.close()
        await client.aclose()
        return granted, refusals

    granted, refusals = asyncio.run(scenario())

    assert [(claim.run, claim.claimed.token) for claim in granted] == [("0-a", desk.record("0-a").token)]
    assert refusals == Refusals([Popped("0-b", "default")], [])
    assert desk.record("0-b").status is Status.QUEUED


def test_a_run_is_granted_before_the_room_for_others_is_looked_at(stage: Stage) -> None:
    """Of two runs with a crash there is room for one; the other is asked for again, alone, when the first is granted."""
    desk = stage.desk
    for run in ("0-a", "0-b"):
        desk.reap(run, desk.running(run).token, dead=True)
    order: list[str] = []

    async def scene(store: Store) -> Refusals:
        claimer = Claimer(store.redis, store.scripts, worker="w1", agents=["calc"])
        popped = [Popped("0-a", "default"), Popped("0-b", "default")]
        return await claimer.claim(popped, Rooms(1, 0), lambda claim: order.append(claim.run))

    refusals = stage.play(scene)

    assert order == ["0-a"]
    assert refusals.entries == [Popped("0-b", "default")]


def test_a_long_history_is_read_page_by_page(stage: Stage) -> None:
    """Whatever the size of its events: a page is small enough for a connection's limit of time."""
    desk = stage.desk
    many, large, broken = desk.running("0-many"), desk.running("0-large"), desk.running("0-broken")
    for number in range(130):
        many.commit(events=[b'{"n":%d}' % number])
        large.commit(events=[b"x" * 100_000])
    desk.redis.xadd(desk.keys.events(broken.run), {"no": "event"})

    async def scene(store: Store) -> None:
        recall = Recall(store.redis, store.keys)
        claims = [replace(owner.claimed, events=None) for owner in (many, large, broken)]
        assert [event.seq for event in await recall.story("0-many", claims[0])] == list(range(1, 133))
        assert sum(len(event.body) for event in await recall.story("0-large", claims[1])) > 13_000_000
        with pytest.raises(BrokenRecord):
            await recall.story("0-broken", claims[2])

    stage.play(scene)


def test_pages_grow_and_shrink_with_what_they_hold() -> None:
    assert [next_count(50, size) for size in (0, 999_999, 1_000_000, 4_000_001)] == [200, 200, 50, 12]
    assert next_count(LARGEST_PAGE, 0) == LARGEST_PAGE
    assert [fewer(50), fewer(3), fewer(1)] == [12, 1, 1]


def test_a_claim_brings_few_and_small_events_only(stage: Stage) -> None:
    """Ten claims are answered within one limit of time; what is large is read afterwards, page by page, under the lease."""
    desk = stage.desk
    desk.create("0-small")
    large = desk.running("0-large")
    large.commit(events=[b"x" * 300_000])
    large.commit(to=Status.QUEUED)
    long = desk.running("0-long")
    for _ in range(70):
        long.commit(events=[b"{}"])
    long.commit(to=Status.QUEUED)

    assert desk.claim("0-small").claimed.events is not None
    assert desk.claim("0-large", "later").claimed.events is None
    assert desk.claim("0-long", "later").claimed.events is None
