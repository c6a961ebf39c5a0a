"""What sweeps find in RQ's registries, and what they take out of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import pytest
import redis
from redis.asyncio import Redis

from scheduler.connection import connect
from scheduler.lifecycle import Status
from scheduler.rq_bridge import Mirrored, cancelled_through_rq, forget_cancelled, forget_expired
from tests.support.rq_books import FACE, Books
from tests.support.runs import Desk

R = TypeVar("R")


@pytest.fixture
def books(redis_url: str) -> Books:
    return Books(Desk(cast(Any, redis.Redis).from_url(redis_url)))


def ask(redis_url: str, question: Callable[[Redis], Awaitable[R]]) -> R:
    async def asking() -> R:
        client = connect(redis_url)
        try:
            return await question(client)
        finally:
            await client.aclose()

    return asyncio.run(asking())


def cancelled(redis_url: str) -> list[str]:
    return ask(redis_url, lambda client: cancelled_through_rq(client, "default"))


def test_a_cancel_in_rqs_tools_is_found_until_it_is_carried_out(books: Books, redis_url: str) -> None:
    books.create("0-ours")
    books.desk.cancel("0-ours")
    books.mirror("0-ours")
    books.create("0-theirs")
    books.job("0-theirs").cancel()
    assert cancelled(redis_url) == ["0-theirs"]

    books.desk.cancel("0-theirs")
    assert books.mirror("0-theirs") is Mirrored.DONE
    assert cancelled(redis_url) == []
    assert books.listed("0-ours") == books.listed("0-theirs") == {"canceled"}


def test_a_cancel_of_a_run_that_is_gone_is_forgotten(books: Books, redis_url: str) -> None:
    books.redis.zadd("rq:canceled:default", {"0-gone": 1.0})
    assert cancelled(redis_url) == ["0-gone"]

    ask(redis_url, lambda client: forget_cancelled(client, "default", ["0-gone"]))
    ask(redis_url, lambda client: forget_cancelled(client, "default", []))
    assert cancelled(redis_url) == []


def test_runs_whose_retention_is_over_leave_rqs_lists(books: Books, redis_url: str) -> None:
    for run, status in (("0-old", Status.COMPLETED), ("0-worse", Status.FAILED), ("0-new", Status.FAILED)):
        books.create(run)
        owner, execution = books.claim(run, run)
        owner.commit(to=status)
        books.mirror(run, execution, FACE)
    for run, registry in (("0-old", "finished"), ("0-worse", "failed")):
        books.redis.zadd(f"rq:{registry}:default", {run: 1.0})

    ask(redis_url, lambda client: forget_expired(client, "default"))

    assert books.listed("0-old") == books.listed("0-worse") == set()
    assert books.listed("0-new") == {"failed"}
