"""A connection of one's own: taken in turns, made anew where it was closed, given up where no answer comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from redis.exceptions import ResponseError

from agent.errors import StoreUnavailable
from scheduler.connection import connect
from scheduler.wire import Line, Reply, ask, number, send, text
from tests.support.servers import Server, programs


@asynccontextmanager
async def line_to(url: str) -> AsyncGenerator[Line]:
    redis = connect(url, socket_timeout=2.0)
    line = Line(redis)
    yield line
    await line.close()
    await redis.aclose()


def test_whoever_comes_meanwhile_waits_for_his_turn(redis_url: str) -> None:
    async def scenario() -> list[Reply]:
        async with line_to(redis_url) as line:
            asked = [ask(line, ("ECHO", str(place)), ("CLIENT", "ID")) for place in range(50)]
            return await asyncio.gather(*asked)

    answers = asyncio.run(scenario())

    assert [text(answer[0]) for answer in answers] == [str(place) for place in range(50)]
    assert len({number(answer[1]) for answer in answers}) == 1, "over one connection"


def test_an_error_is_that_of_one_command(redis_url: str) -> None:
    async def scenario() -> list[object]:
        async with line_to(redis_url) as line:
            return [*await send(line, [("ECHO", "a"), ("NO-SUCH-COMMAND",), ("ECHO", "b")])]

    first, wrong, second = asyncio.run(scenario())

    assert (first, second) == (b"a", b"b")
    assert isinstance(wrong, ResponseError)


def test_a_connection_that_the_server_has_closed_is_made_anew(redis_url: str) -> None:
    async def scenario() -> None:
        redis = connect(redis_url)
        async with line_to(redis_url) as line:
            (client,) = await ask(line, ("CLIENT", "ID"))
            await ask(redis, ("CLIENT", "KILL", "ID", number(client)))
            await asyncio.sleep(0.05)

            assert await ask(line, ("ECHO", "again")) == [b"again"]
        await redis.aclose()

    asyncio.run(scenario())


def test_after_an_outage_and_a_silence_it_goes_on() -> None:
    async def scenario(server: Server) -> None:
        async with line_to(server.url) as line:
            assert await ask(line, ("ECHO", "a")) == [b"a"]
            server.kill()
            with pytest.raises(StoreUnavailable):
                await ask(line, ("ECHO", "b"))
            server.start()
            assert await ask(line, ("ECHO", "c")) == [b"c"]
            with pytest.raises(StoreUnavailable):
                await ask(line, ("BLPOP", "nothing", "30"))
            assert await ask(line, ("ECHO", "d")) == [b"d"]

    with Server(programs()["valkey"]) as server:
        asyncio.run(scenario(server))
