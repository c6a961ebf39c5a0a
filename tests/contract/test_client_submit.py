"""The client submits: what is stored, rung and refused, on a server of each kind."""

import asyncio
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from agent import Agent, Budget
from agent.errors import (
    ConfigurationError,
    Conflict,
    TooLarge,
    UnknownPriceError,
)
from scheduler import AgentCard, AsyncClient, UnknownAgentWarning
from scheduler.rq_bridge import queue_keys
from tests.support.clients import Play
from tests.support.hand import Hand


class Answer(BaseModel):
    total: int


typed = Agent("Add.", name="adder", output_schema=Answer)


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


@pytest.mark.parametrize("card", [b"garbage", b'99999999999999 w1\n{"name": 5}'])
def test_a_card_that_cannot_be_read_is_as_none(play: Play, hand: Hand, card: bytes) -> None:
    """No other agent's runs are held up by it."""
    hand.redis.hset(hand.keys.cards, "broken", card)

    async def scene(client: AsyncClient) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await client.submit("support", "x")
        assert [one.name for one in await client.agents()] == ["support"]
        with pytest.warns(UnknownAgentWarning, match="no worker has the agent 'broken': the run stays queued"):
            run = await client.submit("broken", "x")
        assert (await run.info()).status == "queued"

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
