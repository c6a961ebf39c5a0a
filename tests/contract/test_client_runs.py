"""The client finds runs, waits for what they come to, and tells them things, on a server of each kind."""

import asyncio
import json
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
    PawlError,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunWaiting,
)
from agent.events import RunBudgetExceeded as BudgetEnd
from agent.events import RunCancelled as CancelEnd
from agent.events import RunCompleted
from agent.events import RunFailed as FailureEnd
from scheduler import AgentCard, AsyncClient, Request
from scheduler.inputs import Entry
from scheduler.rq_bridge import queue_keys
from tests.support.clients import SUPPORT, Play
from tests.support.hand import Hand

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


class Measured(BaseModel):
    value: float


def test_a_stored_result_that_does_not_fit_the_agent_is_an_error_of_ours_and_can_be_read_without_it(
    play: Play, hand: Hand
) -> None:
    agent = Agent("Measure.", name="support", output_schema=Measured)

    async def scene(client: AsyncClient) -> None:
        run = await client.submit(agent, "x")
        hand.take(run.id).end(RunCompleted(output={"value": None}))

        with pytest.raises(PawlError, match=rf"run {run.id} has completed, but output_schema=Measured does not fit"):
            await run.result(timeout=5)
        assert (await (await client.get(run.id)).result()).output == {"value": None}

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
        waiting_info = await run.wait(timeout=5)
        assert (waiting_info.wait, waiting_info.requests) == ("reply", (Request("q1", "reply", question="Which one?"),))

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
