"""The client against a real server: submitting, finding, telling. Nothing works on the runs but the test's own hand."""

import asyncio
import json
import os
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from agent import Agent, Budget
from agent.budget import Usage
from agent.errors import (
    BrokenRecord,
    BudgetExceeded,
    ConfigurationError,
    Conflict,
    NotResumable,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunWaiting,
    StoreUnavailable,
    TooLarge,
    UnknownPriceError,
)
from agent.events import RunBudgetExceeded as BudgetEnd
from agent.events import RunCancelled as CancelEnd
from agent.events import RunCompleted
from agent.events import RunFailed as FailureEnd
from scheduler import AgentCard, AsyncClient, Client, Settings, UnknownAgentWarning
from scheduler.inputs import Entry
from scheduler.rq_bridge import queue_keys
from tests.support.hand import Hand

SUPPORT = AgentCard(name="support", model="m", priced=True, budget=Budget(max_steps=7))


class Answer(BaseModel):
    total: int


typed = Agent("Add.", name="adder", output_schema=Answer)


@pytest.fixture
def hand(redis_url: str) -> Hand:
    """The only worker; it serves `support`."""
    made = Hand(redis_url)
    made.publish(SUPPORT)
    return made


@pytest.fixture
def play(redis_url: str) -> Callable[[Callable[[AsyncClient], Awaitable[None]]], None]:
    """Plays a scene with an open client."""

    def run(scene: Callable[[AsyncClient], Awaitable[None]]) -> None:
        async def scenario() -> None:
            async with AsyncClient(redis_url) as client:
                await scene(client)

        asyncio.run(scenario())

    return run


Play = Callable[[Callable[[AsyncClient], Awaitable[None]]], None]

# ---- submitting -----------------------------------------------------------------------------------------------------


def test_a_run_is_stored_and_rung_before_submit_returns(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "Refund order 7", session="s", tenant="t", metadata={"mail": 42})
        info = await run.info()

        assert (info.status, info.agent, info.session, info.tenant) == ("queued", "support", "s", "t")
        assert (info.metadata, info.budget) == ({"mail": 42}, Budget(max_steps=7))
        assert info.reason == "waits for a free worker of queue 'default'"
        assert hand.redis.lrange(queue_keys("default").queue, 0, -1) == [run.id.encode()]
        job = hand.redis.hgetall(f"rq:job:{run.id}")
        assert (job[b"status"], job[b"description"]) == (b"queued", b"support: Refund order 7")
        assert hand.redis.zcard(hand.keys.mirror) == 0  # RQ has been told; no sweep has to

    play(scene)


def test_the_same_key_gives_the_same_run_and_another_task_is_a_conflict(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        first = await client.submit("support", "Refund", idempotency_key="mail-42", tenant="t")
        again = await client.submit("support", "Refund", idempotency_key="mail-42", tenant="t")
        other_tenant = await client.submit("support", "Refund", idempotency_key="mail-42", tenant="u")

        assert again.id == first.id != other_tenant.id
        assert hand.redis.llen(queue_keys("default").queue) == 2
        with pytest.raises(Conflict, match=f"belongs to another task, run {first.id}"):
            await client.submit("support", "Refund twice", idempotency_key="mail-42", tenant="t")

    play(scene)


def test_a_hundred_submissions_at_once_with_one_key_are_one_run(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        runs = await asyncio.gather(*(client.submit("support", "x", idempotency_key="k") for _ in range(100)))

        assert len({run.id for run in runs}) == 1
        assert hand.redis.llen(queue_keys("default").queue) == 1

    play(scene)


def test_a_priority_rings_in_a_queue_of_its_own(play: Play, hand: Hand) -> None:
    hand.publish(AgentCard(name="gpu", queue="gpu"))

    async def scene(client: AsyncClient) -> None:
        high = await client.submit("support", "x", priority="high")
        gpu = await client.submit("gpu", "x", priority="high")

        assert hand.redis.lrange(queue_keys("high").queue, 0, -1) == [high.id.encode()]
        assert hand.redis.lrange(queue_keys("gpu").queue, 0, -1) == [gpu.id.encode()]

    play(scene)


def test_a_delayed_run_is_scheduled_and_not_rung(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        delayed = await client.submit("support", "x", delay=60)
        at = datetime.now(UTC) + timedelta(hours=1)
        later = await client.submit("support", "x", at=at)

        assert hand.redis.llen(queue_keys("default").queue) == 0
        assert hand.redis.zscore(queue_keys("default").scheduled, later.id) == pytest.approx(at.timestamp(), abs=0.01)
        assert hand.redis.hget(f"rq:job:{delayed.id}", "status") == b"scheduled"
        info = await later.info()
        assert info.due_at == at.replace(microsecond=at.microsecond // 1000 * 1000)
        assert info.reason.startswith("starts at ")

    play(scene)


def test_the_second_run_of_a_session_stands_behind_the_first(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        first = await client.submit("support", "x", session="s")
        second = await client.submit("support", "y", session="s")

        assert (await second.info()).reason == f"behind run {first.id} of its session"
        assert hand.redis.hget(f"rq:job:{second.id}", "status") == b"deferred"
        with pytest.raises(Conflict, match=f"busy with run {first.id}"):
            await client.submit("support", "z", session="s", on_busy="reject")
        assert await first.cancel() == "cancelled"
        assert (await second.info()).reason == "waits for a free worker of queue 'default'"
        assert hand.redis.lrange(queue_keys("default").queue, 0, -1) == [second.id.encode()]

    play(scene)


def test_an_agent_without_a_worker_is_warned_of_and_its_run_waits(play: Play, hand: Hand) -> None:
    """case-092 yields: the run stays queued, with a visible reason."""

    async def scene(client: AsyncClient) -> None:
        with pytest.warns(UnknownAgentWarning, match="no worker has the agent 'nobody'"):
            run = await client.submit("nobody", "x")
        info = await run.info()
        assert (info.status, info.reason.partition(":")[0]) == ("queued", "no worker has the agent 'nobody'")

        hand.publish(AgentCard(name="nobody"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await client.submit("nobody", "y")  # the card is seen at once

    play(scene)


def test_an_agent_in_code_is_submitted_without_any_worker(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = await client.submit(typed, "Add 200 and 10")
        hand.finish(run.id, {"total": 210})

        result = await run.result(timeout=5)
        assert result.output == Answer(total=210)
        assert result.output.total == 210  # typed: a type checker knows this attribute
        assert (await (await client.get(run.id)).result()).output == {"total": 210}
        assert (await (await client.get(run.id, typed)).result()).output == Answer(total=210)

    play(scene)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"task": "x" * 300_000}, TooLarge, "max_task_bytes"),
        ({"priority": "urgent"}, ConfigurationError, "no priority 'urgent'"),
        ({"on_busy": "wait"}, ConfigurationError, "no on_busy 'wait'"),
        ({"session": "a\nb"}, ConfigurationError, "session"),
        ({"tenant": "a:b"}, ConfigurationError, "tenant"),
        ({"agent": "cheap", "budget": Budget(max_cost_usd=Decimal(1))}, UnknownPriceError, "no price is known"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    play: Play, hand: Hand, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    hand.publish(AgentCard(name="cheap", priced=False))

    given: dict[str, Any] = {"agent": "support", "task": "x"}
    given.update(arguments)

    async def scene(client: AsyncClient) -> None:
        with pytest.raises(error, match=words):
            await client.submit(**given)

    play(scene)
    assert hand.redis.keys() == [hand.keys.cards.encode()]


# ---- results --------------------------------------------------------------------------------------------------------


def test_a_result_holds_output_usage_steps_and_events(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x")
        held = hand.take(run.id)
        held.step()
        held.step()
        assert (await run.info()).worker == "hand"
        hand_over = asyncio.create_task(run.result(timeout=5))
        await asyncio.sleep(0.05)
        held.end(RunCompleted(output="done"))
        result = await hand_over

        assert (result.run_id, result.output, result.steps) == (run.id, "done", 2)
        assert (result.usage.model_calls, result.usage.input_tokens) == (2, 20)
        assert [one.event.type for one in result.events] == [
            "run_created", "run_claimed", "model_replied", "model_replied", "run_completed",
        ]  # fmt: skip
        info = await run.info()
        assert (info.output, info.status, info.step, info.worker) == ("done", "completed", 2, "")
        assert info.started_at is not None
        assert info.ended_at is not None
        assert info.created_at <= info.started_at <= info.ended_at

    play(scene)


def test_a_run_without_a_result_raises_what_it_came_to(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        failed = await client.submit("support", "x")
        hand.take(failed.id).end(FailureEnd(reason="refused", error="It said no.", partial="Well"))
        with pytest.raises(RunFailed, match=r"refused.*It said no") as failure:
            await failed.result()
        assert (failure.value.run_id, failure.value.reason, failure.value.partial) == (failed.id, "refused", "Well")

        spent = await client.submit("support", "x")
        hand.take(spent.id).end(BudgetEnd(limit="max_steps", used="7", allowed="7"))
        with pytest.raises(BudgetExceeded, match="max_steps") as excess:
            await spent.result()
        assert excess.value.limit == "max_steps"

        dropped = await client.submit("support", "x")
        await dropped.cancel()
        with pytest.raises(RunCancelled):
            await dropped.result()

    play(scene)


def test_a_run_that_waits_for_a_person_says_what_it_asks(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x")
        hand.take(run.id).ask("q1", "reply")

        with pytest.raises(RunWaiting, match="reply q1") as waiting:
            await run.result(timeout=5)
        assert waiting.value.requests == ("q1",)
        assert (await run.wait(timeout=5)).wait == "reply"

        with pytest.raises(Conflict, match="no open request that 'approve'"):
            await run.approve()
        await run.reply("the second one")
        with pytest.raises(Conflict, match="no open request"):
            await run.reply("too late")
        assert (await run.info()).status == "queued"
        assert hand.redis.lrange(queue_keys("default").queue, 0, -1)[-1] == run.id.encode()
        entry = hand.take(run.id).claimed.inbox[0]
        assert (entry.kind, entry.ask, json.loads(entry.body)) == ("reply", "q1", {"text": "the second one"})

    play(scene)


def test_an_answer_to_nothing_is_refused(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x")
        for answer in (run.reply("x"), run.approve(), run.reject(reason="no")):
            with pytest.raises(Conflict, match="no open request"):
                await answer

    play(scene)


# ---- telling --------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_a_queued_run_and_asks_a_running_one(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        queued, running = [await client.submit("support", "x") for _ in range(2)]
        held = hand.take(running.id)

        assert await queued.cancel() == "cancelled"
        assert await queued.cancel() == "over"
        assert hand.redis.hget(f"rq:job:{queued.id}", "status") == b"canceled"
        assert await running.cancel() == "asked"
        assert (await running.info()).reason == "was asked to end"
        held.end(CancelEnd())
        assert (await running.info()).error == "cancelled (user)"

    play(scene)


def test_a_failed_run_goes_on_with_a_new_budget(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x")
        with pytest.raises(NotResumable, match="queued"):
            await run.resume()
        held = hand.take(run.id)
        held.step()
        held.end(BudgetEnd(limit="max_steps", used="1", allowed="1"))
        with pytest.raises(Conflict, match="budget_exceeded"):
            await run.add_budget(max_steps=5)

        assert await run.resume(budget=Budget(max_steps=20)) == "resumed"
        info = await run.info()
        assert (info.status, info.budget.max_steps, info.step, info.usage.model_calls) == ("queued", 20, 1, 1)
        assert hand.redis.lrange(queue_keys("default").queue, 0, -1).count(run.id.encode()) >= 1
        hand.finish(run.id)
        assert (await run.result()).output == "done"

    play(scene)


def test_an_added_budget_reaches_the_owner_as_the_limits_that_were_given(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x")
        await run.add_budget(max_steps=3, max_cost_usd="0.5")

        (entry,) = hand.take(run.id).claimed.inbox
        assert entry.kind == "top_up"
        added = Budget.model_validate_json(entry.body)
        assert Budget(max_steps=7, max_cost_usd=Decimal(1)).raised(added) == Budget(
            max_steps=10, max_cost_usd=Decimal("1.5")
        )

    play(scene)


def test_a_deleted_run_leaves_nothing_behind(play: Play, hand: Hand) -> None:
    """case-128"""

    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "Refund", idempotency_key="k", metadata={"mail": 1})
        with pytest.raises(Conflict, match="cancel it first"):
            await run.delete()
        held = hand.take(run.id)
        held.step()
        held.end(FailureEnd(reason="refused", error="no"))
        await run.delete()

        for ask in (
            run.info(),
            run.wait(timeout=5),
            run.result(timeout=5),
            run.delete(),
            run.cancel(),
            client.get(run.id),
        ):
            with pytest.raises(RunNotFound):
                await ask
        with pytest.raises(RunNotFound):
            _ = [event async for event in run.events(follow=True)]

    play(scene)
    left = set(hand.redis.keys()) - {hand.keys.cards.encode()}
    assert left == {b"rq:queues"}


# ---- finding --------------------------------------------------------------------------------------------------------


def test_runs_are_found_by_what_they_are_page_by_page(play: Play, hand: Hand) -> None:
    hand.publish(AgentCard(name="sales"))

    async def scene(client: AsyncClient) -> None:
        before = datetime.now(UTC) - timedelta(seconds=1)
        support = [await client.submit("support", "x", tenant="t", session=f"s{n}") for n in range(5)]
        sales = await client.submit("sales", "x")
        hand.finish(support[0].id)

        async def ids(**conditions: Any) -> set[str]:
            return {run.id for run in (await client.runs(**conditions)).runs}

        assert await ids() == {run.id for run in [*support, sales]}
        assert await ids(status="completed") == {support[0].id}
        assert await ids(agent="sales") == {sales.id}
        assert await ids(tenant="t", session="s3") == {support[3].id}
        assert await ids(since=before, until=before + timedelta(hours=1)) == await ids()
        assert await ids(until=before) == set()
        first = await client.runs(agent="support", limit=3)
        second = await client.runs(agent="support", limit=3, page=first.next)
        assert [run.id for run in (*first.runs, *second.runs)] == [run.id for run in reversed(support)]
        assert second.next == ""
        with pytest.raises(ConfigurationError, match="no status 'done'"):
            await client.runs(status="done")

    play(scene)


def test_a_broken_record_is_named_and_spoils_no_list(play: Play, hand: Hand) -> None:
    """case-092"""

    async def scene(client: AsyncClient) -> None:
        runs = [await client.submit("support", "x") for _ in range(3)]
        hand.redis.hset(hand.keys.run(runs[0].id), "seq", "many")
        hand.redis.hset(hand.keys.run(runs[1].id), "state", b"\x80\x04not json")

        page = await client.runs()
        assert [run.id for run in page.runs] == [runs[2].id]
        assert set(page.broken) == {runs[0].id, runs[1].id}
        for broken in runs[:2]:
            with pytest.raises(BrokenRecord):
                await broken.info()

    play(scene)


def test_agents_usage_and_workers_are_read(play: Play, hand: Hand) -> None:
    hand.redis.hset(hand.keys.cards, "newer", b"9999999999999 w\nnot a card")

    async def scene(client: AsyncClient) -> None:
        assert await client.agents() == [SUPPORT]
        assert await client.workers() == []
        run = await client.submit("support", "x")
        today = hand.keys.usage(datetime.now(UTC).date())
        field = json.dumps(["support", "m", "", "input_tokens"])
        hand.take(run.id).step(usage=Usage(model_calls=1), settled=(Entry(today, field, 30),))
        (row,) = await client.usage(days=2)
        assert (row.agent, row.model, row.input_tokens) == ("support", "m", 30)

    play(scene)


# ---- where it is used -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def elsewhere(url: str) -> AsyncGenerator[AsyncClient]:
    async with AsyncClient(url) as client:
        yield client


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "unix:///nowhere/redis.sock"])
def test_an_unreachable_redis_is_one_clear_error(url: str) -> None:
    async def scenario() -> None:
        with pytest.raises(StoreUnavailable, match=f"is it running.*{url}"):
            async with elsewhere(url):
                pass

    started = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started < 3


def test_a_wrong_password_is_named_and_not_shown(hand: Hand, redis_url: str) -> None:
    hand.redis.config_set("requirepass", "right-password")
    secret = "wrong-password-1234"
    try:
        for url in (redis_url, f"unix://:{secret}@{redis_url.removeprefix('unix://')}"):
            with pytest.raises(StoreUnavailable) as refused:
                Client(url).runs()
            assert "password" in str(refused.value)
            assert secret not in str(refused.value)
    finally:
        hand.redis.config_set("requirepass", "")


def test_one_client_serves_one_loop_after_another(hand: Hand, redis_url: str) -> None:
    """case-090"""
    client = AsyncClient(redis_url)
    ids = {asyncio.run(client.submit("support", "x")).id for _ in range(3)}

    assert len(ids) == 3
    assert {run.id for run in asyncio.run(client.runs()).runs} == ids


def test_a_client_that_failed_to_open_opens_once_it_can(hand: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        client = AsyncClient(redis_url)
        hand.redis.config_set("requirepass", "right")
        with pytest.raises(StoreUnavailable, match="password"):
            await client.runs()
        hand.redis.config_set("requirepass", "")
        assert (await client.runs()).runs == ()
        await client.close()
        assert (await client.runs()).runs == ()  # closed, and opened anew

    asyncio.run(scenario())


def test_the_client_without_asyncio_says_the_same(hand: Hand, redis_url: str) -> None:
    with Client(redis_url) as client:
        run = client.submit(typed, "Add", session="s", tenant="t", metadata={"a": 1})
        assert [found.id for found in client.runs(tenant="t").runs] == [run.id]
        threading.Timer(0.2, hand.finish, (run.id, {"total": 3})).start()
        kinds = [recorded.event.type for recorded in run.events(follow=True)]

        assert kinds == ["run_created", "run_claimed", "run_completed"]
        assert run.result(timeout=5).output.total == 3
        assert client.get(run.id).wait().status == "completed"
        assert run.cancel() == "over"
        with pytest.raises(NotResumable):
            run.resume()
        with pytest.raises(Conflict):
            run.add_budget(max_steps=1)
        reader = run.events()
        next(reader)
        assert [one.seq for one in run.events(after=reader.cursor)] == [2, 3]
        run.delete()
        with pytest.raises(RunNotFound):
            run.info()
        assert [card.name for card in client.agents()] == ["support"]
        assert (client.workers(), client.usage()) == ([], [])


def test_it_is_used_inside_a_running_loop_and_from_many_threads(hand: Hand, redis_url: str) -> None:
    client = Client(redis_url)

    async def in_a_notebook() -> str:
        return client.submit("support", "x").id

    ids = [asyncio.run(in_a_notebook())]
    threads = [threading.Thread(target=lambda: ids.append(client.submit("support", "x").id)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(ids)) == 21 == len(client.runs().runs)


def test_a_forked_child_has_a_loop_and_connections_of_its_own(hand: Hand, redis_url: str) -> None:
    """case-090"""
    client = Client(redis_url)
    run = client.submit("support", "x")
    following = run.events(follow=True)
    next(following)
    children: list[int] = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                seen = run.info().status == "queued" and client.submit("support", "y").id != run.id
                os._exit(0 if seen else 1)
            except BaseException:
                os._exit(2)
        children.append(child)

    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert len(client.runs().runs) == 4
    hand.finish(run.id)
    assert [recorded.event.type for recorded in following] == ["run_claimed", "run_completed"]


def test_settings_say_where_and_under_which_names(redis_url: str) -> None:
    settings = Settings(redis_url=redis_url, namespace="other")
    with Client(settings=settings) as client, warnings.catch_warnings(action="ignore"):
        client.submit("support", "x")

    with Client(redis_url) as elsewhere_named:
        assert elsewhere_named.runs().runs == ()
