"""Calls go in the order in which they come, together with what became ready meanwhile; PROTOCOL: group commit."""

import asyncio

import pytest

from agent.errors import BrokenRecord, StoreUnavailable
from scheduler.connection import connect
from scheduler.scripting import Script, ScriptCall
from scheduler.wire import ask, number
from tests.support.servers import Server, programs
from worker.batches import Batches

APPEND = Script("append", "redis.call('RPUSH', KEYS[1], ARGV[1]) return {redis.call('LLEN', KEYS[1])}")
BREAK = Script("break", "return redis.call('INCR', KEYS[1])")


def append(value: int) -> ScriptCall[int]:
    return ScriptCall(APPEND, ("values",), (value,), lambda reply: number(reply[0]))


def test_calls_keep_their_order_and_share_pipelines(redis_url: str) -> None:
    async def scenario() -> None:
        redis = connect(redis_url)
        batches = Batches(redis)
        lengths = await asyncio.gather(*(batches.send(append(value)) for value in range(1000)))

        assert lengths == list(range(1, 1001))
        (values,) = await ask(redis, ("LRANGE", "values", 0, -1))
        assert values == [b"%d" % value for value in range(1000)]
        await redis.aclose()

    asyncio.run(scenario())


def test_an_error_concerns_one_call_and_a_lost_listener_none(redis_url: str) -> None:
    async def scenario() -> None:
        redis = connect(redis_url)
        batches = Batches(redis)
        first = batches.send(append(1))
        broken = batches.send(ScriptCall(BREAK, ("values",), (), bool))
        deaf = batches.send(append(2))
        deaf.cancel()
        last = batches.send(append(3))

        assert (await first, await last) == (1, 3)
        with pytest.raises(BrokenRecord):
            await broken
        await redis.aclose()

    asyncio.run(scenario())


def test_what_nobody_waits_for_is_sent_too(redis_url: str) -> None:
    async def scenario() -> None:
        redis = connect(redis_url)
        batches = Batches(redis)
        batches.send(append(1))
        await batches.drained()
        await batches.drained()

        assert await ask(redis, ("LLEN", "values")) == [1]
        await redis.aclose()

    asyncio.run(scenario())


def test_an_outage_is_told_to_all_and_the_next_calls_go_through() -> None:
    async def scenario(server: Server) -> None:
        redis = connect(server.url)
        batches = Batches(redis)
        assert await batches.send(append(1)) == 1
        server.kill()
        replies = await asyncio.gather(*(batches.send(append(value)) for value in range(3)), return_exceptions=True)
        assert [type(reply) for reply in replies] == [StoreUnavailable] * 3

        server.start()
        assert await batches.send(append(2)) == 1, "the server came back empty"
        await redis.aclose()

    with Server(programs()["valkey"]) as server:
        asyncio.run(scenario(server))
