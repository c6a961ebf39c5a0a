"""Listening goes on, whatever becomes of the connection: PROTOCOL C1, case-085."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis

from scheduler.connection import connect
from tests.support.relay import Relay
from worker import channels

Publish = Callable[[str], int]


@asynccontextmanager
async def _listening(url: str, heard: list[str]) -> AsyncGenerator[None]:
    client = connect(url)

    async def listen() -> None:
        async for message in channels.messages(client, "news"):
            heard.append(message["data"].decode())

    listener = asyncio.create_task(listen())
    yield
    listener.cancel()
    await asyncio.wait([listener])
    await client.aclose()


async def _said_until_heard(publish: Publish, word: str, heard: list[str]) -> None:
    """Published again and again: what is said while nobody listens is lost, and may be."""
    async with asyncio.timeout(10):
        while word not in heard:
            publish(word)
            await asyncio.sleep(0.05)


@pytest.fixture
def publish(redis_url: str) -> Publish:
    client = redis.Redis.from_url(redis_url, protocol=2)  # pyright: ignore[reportUnknownMemberType]
    return lambda word: int(client.publish("news", word))  # pyright: ignore[reportUnknownMemberType, reportArgumentType]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(channels, "AGAIN_SECONDS", 0.05)


def test_a_quiet_channel_is_no_lost_one(redis_url: str, publish: Publish) -> None:
    async def scenario() -> None:
        heard: list[str] = []
        async with _listening(redis_url, heard):
            await _said_until_heard(publish, "first", heard)
            heard.clear()
            await asyncio.sleep(1.0)  # several silences
            assert publish("second") == 1
            await _said_until_heard(publish, "third", heard)
            assert heard[0] == "second"

    asyncio.run(scenario())


@pytest.mark.parametrize("harm", [Relay.cut, Relay.fall_silent], ids=["closed", "half-open"])
def test_a_connection_that_fails_is_replaced(redis_url: str, publish: Publish, harm: Callable[[Relay], None]) -> None:
    async def scenario(relay: Relay) -> None:
        heard: list[str] = []
        async with _listening(relay.url, heard):
            await _said_until_heard(publish, "before", heard)
            harm(relay)
            publish("lost")
            relay.speak()
            await _said_until_heard(publish, "after", heard)

    with Relay(Path(redis_url.removeprefix("unix://"))) as relay:
        asyncio.run(scenario(relay))
