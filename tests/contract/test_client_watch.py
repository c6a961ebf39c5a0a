"""Waiting for runs and following their events, against a real server: nothing is lost, and nothing hangs."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import redis

from agent.errors import BrokenRecord, RunNotFound, StoreUnavailable
from agent.events import RunCompleted, RunFailed
from scheduler import AgentCard, AsyncClient, AsyncRunHandle
from scheduler.client import outages, watcher
from scheduler.client.events import PAGE, Cursor
from tests.support.hand import Hand, Held
from tests.support.servers import Server, programs


@pytest.fixture
def hand(redis_url: str) -> Hand:
    made = Hand.at(redis_url)
    made.publish(AgentCard(name="support"))
    return made


async def numbers(run: AsyncRunHandle[object], after: int | str = 0, *, follow: bool = True) -> list[int]:
    return [recorded.seq async for recorded in run.events(after, follow=follow)]


def test_followers_see_every_event_in_order_however_late_they_come(hand: Hand, redis_url: str) -> None:
    """case-117: two viewers, in two processes as it were, and one that joins later."""

    async def scenario() -> None:
        async with AsyncClient(redis_url) as client, AsyncClient(redis_url) as other:
            run = await client.submit("support", "x")
            same = await other.get(run.id)
            early = [asyncio.create_task(numbers(run)), asyncio.create_task(numbers(same))]
            held = hand.take(run.id)
            for _ in range(50):
                held.step()
                await asyncio.sleep(0.001)
            late = asyncio.create_task(numbers(run))
            from_the_middle = asyncio.create_task(numbers(same, after=30))
            held.step()
            held.end(RunCompleted(output="done"))

            expected = list(range(1, 55))
            assert await asyncio.gather(*early, late) == [expected] * 3
            assert await from_the_middle == expected[30:]
            assert await numbers(run, follow=False) == expected

    asyncio.run(scenario())


def test_a_long_history_is_replayed_page_by_page(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            run = await client.submit("support", "x")
            held = hand.take(run.id)
            for _ in range(PAGE):
                held.step()

            assert await numbers(run, follow=False) == list(range(1, PAGE + 3))
            assert await numbers(run, after=2, follow=False) == list(range(3, PAGE + 3))  # exactly one page
            assert await numbers(run, after=PAGE + 2, follow=False) == []

    asyncio.run(scenario())


def test_news_arrives_at_once(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            others = [await client.submit("support", "x") for _ in range(5)]
            waits = [asyncio.create_task(other.wait()) for other in others]
            run = await client.submit("support", "x")
            delays: list[float] = []
            held = hand.take(run.id)
            reader = run.events(after=2, follow=True)
            for _ in range(20):
                waiting = asyncio.create_task(anext(reader))
                await asyncio.sleep(0.06)
                started = time.perf_counter()
                held.step()
                await waiting
                delays.append(time.perf_counter() - started)
            for wait in waits:
                wait.cancel()

            assert sorted(delays)[10] < 0.1  # a look at the records alone would take half a second
            assert max(delays) < 0.9

    asyncio.run(scenario())


def test_a_wait_ends_with_the_run(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            runs = [await client.submit("support", "x") for _ in range(40)]
            waits = [asyncio.create_task(run.wait(timeout=10)) for run in runs]
            await asyncio.sleep(0.1)
            for run in reversed(runs):
                hand.finish(run.id)
            assert {info.status for info in await asyncio.gather(*waits)} == {"completed"}
            assert (await runs[0].wait(timeout=0.5)).status == "completed"  # it has long ended

    asyncio.run(scenario())


def test_a_wait_that_is_too_long_ends_and_the_run_goes_on(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            run = await client.submit("support", "x")
            for wait in (run.wait(timeout=0.05), run.result(timeout=0.05)):
                with pytest.raises(TimeoutError, match=f"run {run.id} did not end in 0.05 s; it goes on"):
                    await wait
            assert (await run.info()).status == "queued"
            assert client_is_idle(redis_url)

    asyncio.run(scenario())


def client_is_idle(redis_url: str) -> bool:
    """Whether nobody reads streams, give or take the second that a read may last."""
    with cast(Any, redis.Redis).from_url(redis_url) as server:
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            if not any(one["cmd"] == "xread" and "b" in one["flags"] for one in server.client_list()):
                return True
            time.sleep(0.05)
    return False


async def waited(run: AsyncRunHandle[object]) -> object:
    return await run.wait(timeout=30)


async def result(run: AsyncRunHandle[object]) -> object:
    return await run.result()


@pytest.mark.parametrize("look", [waited, result, numbers])
def test_a_run_that_is_gone_is_said_to_be_gone_and_never_waited_for(
    hand: Hand, redis_url: str, look: Callable[[AsyncRunHandle[object]], Coroutine[object, object, object]]
) -> None:
    """case-094"""

    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            run = await client.submit("support", "x")
            looking = asyncio.create_task(look(run))
            await asyncio.sleep(0.1)
            for key in hand.keys.family(run.id):
                hand.redis.pexpire(key, 50)
            started = time.monotonic()
            with pytest.raises(RunNotFound, match="retention is over"):
                await looking
            assert time.monotonic() - started < 2.5
            with pytest.raises(RunNotFound):
                await look(run)

    asyncio.run(scenario())


def test_one_broken_run_leaves_the_watch_over_the_others(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            runs = [await client.submit("support", "x") for _ in range(3)]
            waits = [asyncio.create_task(run.wait(timeout=10)) for run in runs]
            await asyncio.sleep(0.05)
            hand.redis.delete(hand.keys.events(runs[0].id))
            hand.redis.set(hand.keys.events(runs[0].id), "no stream")
            hand.redis.hset(hand.keys.run(runs[1].id), "status", "lost")
            hand.finish(runs[2].id)

            assert (await waits[2]).status == "completed"
            with pytest.raises(BrokenRecord):
                await waits[1]
            with pytest.raises(BrokenRecord):
                await numbers(runs[0])
            waits[0].cancel()

    asyncio.run(scenario())


def test_a_follower_goes_on_after_a_resume(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            run = await client.submit("support", "x")
            hand.take(run.id).end(RunFailed(reason="refused", error="no"))
            assert await numbers(run) == [1, 2, 3]
            await run.resume()
            following = asyncio.create_task(numbers(run))
            hand.finish(run.id)
            assert await following == [1, 2, 3, 4, 5, 6]

    asyncio.run(scenario())


# ---- outages and lost events ----------------------------------------------------------------------------------------


def test_waiting_and_following_survive_a_restart_of_redis() -> None:
    async def scenario() -> None:
        with Server(next(iter(programs().values())), appendonly=True) as server:
            hand = Hand.at(server.url)
            hand.redis.config_set("appendfsync", "always")
            async with AsyncClient(server.url) as client:
                hand.publish(AgentCard(name="support"))
                run = await client.submit("support", "x")
                waiting, following = asyncio.create_task(run.wait()), asyncio.create_task(numbers(run))
                held = hand.take(run.id)
                held.step()
                await asyncio.sleep(0.2)
                server.kill()
                await asyncio.sleep(1.5)
                with pytest.raises(StoreUnavailable):
                    await run.info()
                server.start()
                held.step()
                held.end(RunCompleted(output="done"))

                assert (await waiting).status == "completed"
                assert await following == [1, 2, 3, 4, 5]

    asyncio.run(scenario())


def test_an_outage_that_does_not_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "OUTAGE_SECONDS", 0.3)
    monkeypatch.setattr(watcher, "OUTAGE_SECONDS", 0.3)

    async def scenario() -> None:
        with Server(next(iter(programs().values()))) as server:
            hand = Hand.at(server.url)
            hand.publish(AgentCard(name="support"))
            client = AsyncClient(server.url)
            run = await client.submit("support", "x")
            looking: list[asyncio.Task[object]] = [asyncio.create_task(run.wait()), asyncio.create_task(numbers(run))]
            await asyncio.sleep(0.1)
            server.kill()
            for look in looking:
                with pytest.raises(StoreUnavailable):
                    await asyncio.wait_for(look, 10)
            await client.close()

    asyncio.run(scenario())


def test_events_that_redis_lost_are_told_anew(hand: Hand, redis_url: str) -> None:
    """After a failover a number may mean another event; `epoch` in the record says so."""

    async def scenario() -> None:
        async with AsyncClient(redis_url) as client:
            run = await client.submit("support", "x")
            held = hand.take(run.id)
            held.step("one")
            reader = run.events(follow=True)
            assert [(await anext(reader)).seq for _ in range(3)] == [1, 2, 3]
            cursor = reader.cursor
            snapshot = hand.redis.hgetall(hand.keys.run(run.id))
            held.step("two")
            held.step("three")
            assert [(await anext(reader)).seq for _ in range(2)] == [4, 5]

            go_back(hand, run.id, snapshot, to=3)
            other = Held(hand, run.id, held.claimed)
            other._rev = int(snapshot[b"rev"])  # pyright: ignore[reportPrivateUsage]
            for _ in range(2):
                other.step("another two")
            again = [await asyncio.wait_for(anext(reader), 5) for _ in range(5)]
            assert [recorded.seq for recorded in again] == [1, 2, 3, 4, 5]
            assert getattr(again[3].event, "content") == "another two"  # noqa: B009

            assert [one.seq async for one in run.events(after=cursor)] == [1, 2, 3, 4, 5]
            assert [one.seq async for one in run.events(after=reader.cursor)] == []
            assert [one.seq async for one in run.events(after=3)] == [4, 5]

    asyncio.run(scenario())


def go_back(hand: Hand, run: str, snapshot: dict[bytes, bytes], *, to: int) -> None:
    """Redis is what it was before, as after a failover; its owner has found out."""
    hand.redis.hset(hand.keys.run(run), mapping=snapshot | {b"epoch": b"later"})
    kept = hand.redis.xrange(hand.keys.events(run), max=f"{to}-0")
    hand.redis.delete(hand.keys.events(run))
    for entry, fields in kept:
        hand.redis.xadd(hand.keys.events(run), fields, id=entry)


def test_a_cursor_is_text_and_back() -> None:
    assert [str(Cursor.of(value)) for value in (7, "7", "7@n1", "7@")] == ["7", "7", "7@n1", "7@"]
    assert Cursor.of("7@") == Cursor(7, "") != Cursor.of("7")
