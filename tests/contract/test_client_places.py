"""Where the client is used: loops, threads, forks; and what it says where Redis cannot be used."""

import asyncio
import os
import threading
import time
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from pydantic import BaseModel

from agent import Agent
from agent.errors import (
    Conflict,
    NotResumable,
    RunNotFound,
    StoreUnavailable,
)
from scheduler import AsyncClient, Client, Settings
from tests.support.clients import SUPPORT
from tests.support.hand import Hand


class Answer(BaseModel):
    total: int


typed = Agent("Add.", name="adder", output_schema=Answer)


@pytest.fixture
def hand_of_redis(redis_url: str) -> Hand:
    """The only worker of a real server, where what is tested is how the client reaches it."""
    made = Hand.at(redis_url)
    made.publish(SUPPORT)
    return made


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


def test_a_wrong_password_is_named_and_not_shown(hand_of_redis: Hand, redis_url: str) -> None:
    hand_of_redis.redis.config_set("requirepass", "right-password")
    secret = "wrong-password-1234"
    try:
        for url in (redis_url, f"unix://:{secret}@{redis_url.removeprefix('unix://')}"):
            with pytest.raises(StoreUnavailable) as refused:
                Client(url).runs()
            assert "password" in str(refused.value)
            assert secret not in str(refused.value)
    finally:
        hand_of_redis.redis.config_set("requirepass", "")


def test_one_client_serves_one_loop_after_another(hand_of_redis: Hand, redis_url: str) -> None:
    """case-090"""
    client = AsyncClient(redis_url)
    ids = {asyncio.run(client.submit("support", "x")).id for _ in range(3)}

    assert len(ids) == 3
    assert {run.id for run in asyncio.run(client.runs()).runs} == ids


def test_a_client_that_failed_to_open_opens_once_it_can(hand_of_redis: Hand, redis_url: str) -> None:
    async def scenario() -> None:
        client = AsyncClient(redis_url)
        hand_of_redis.redis.config_set("requirepass", "right")
        with pytest.raises(StoreUnavailable, match="password"):
            await client.runs()
        hand_of_redis.redis.config_set("requirepass", "")
        assert (await client.runs()).runs == ()
        await client.close()
        assert (await client.runs()).runs == ()  # closed, and opened anew

    asyncio.run(scenario())


def test_the_client_without_asyncio_says_the_same(hand_of_redis: Hand, redis_url: str) -> None:
    with Client(redis_url) as client:
        run = client.submit(typed, "Add", session="s", tenant="t", metadata={"a": 1})
        assert [found.id for found in client.runs(tenant="t").runs] == [run.id]
        threading.Timer(0.2, hand_of_redis.finish, (run.id, {"total": 3})).start()
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


def test_it_is_used_inside_a_running_loop_and_from_many_threads(hand_of_redis: Hand, redis_url: str) -> None:
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


def test_a_forked_child_has_a_loop_and_connections_of_its_own(hand_of_redis: Hand, redis_url: str) -> None:
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
    hand_of_redis.finish(run.id)
    assert [recorded.event.type for recorded in following] == ["run_claimed", "run_completed"]


def test_settings_say_where_and_under_which_names(redis_url: str) -> None:
    settings = Settings(redis_url=redis_url, namespace="other")
    with Client(settings=settings) as client, warnings.catch_warnings(action="ignore"):
        client.submit("support", "x")

    with Client(redis_url) as elsewhere_named:
        assert elsewhere_named.runs().runs == ()
