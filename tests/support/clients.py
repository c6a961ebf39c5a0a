"""What tests of the client share: servers of each kind, and scenes that are played with an open client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import fakeredis
import pytest
import redis

from agent import Budget
from scheduler import AgentCard, AsyncClient
from tests.conftest import Servers

Play = Callable[[Callable[[AsyncClient], Awaitable[None]]], None]
"""Plays a scene with an open client."""

SUPPORT = AgentCard(name="support", model="m", priced=True, budget=Budget(max_steps=7))
"""The card that the tests' hand publishes."""


@dataclass
class Backend:
    """A server of one kind: how the test reaches it, and the URL under which the client does."""

    url: str
    redis: redis.Redis


def backend_of(kind: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """An empty server of a kind."""
    if kind == "fakeredis":
        fake = fakeredis.FakeServer()

        def connect_fake(url: str, **_: object) -> fakeredis.FakeAsyncRedis:
            return fakeredis.FakeAsyncRedis(server=fake, protocol=2)

        monkeypatch.setattr("scheduler.deployment.connect", connect_fake)
        return Backend("redis://fake", fakeredis.FakeRedis(server=fake, protocol=2))
    url = servers.get(kind).url
    client: Any = redis.Redis(unix_socket_path=url.removeprefix("unix://"), protocol=2)
    client.flushall()
    return Backend(url, client)


def player(backend: Backend) -> Play:
    """Plays scenes at a server."""

    def run(scene: Callable[[AsyncClient], Awaitable[None]]) -> None:
        async def scenario() -> None:
            async with AsyncClient(backend.url) as client:
                await scene(client)

        asyncio.run(scenario())

    return run
