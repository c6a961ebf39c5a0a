"""A desk and, at the same server, the store as its users have it: over asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import fakeredis
import redis
from redis.asyncio import Redis

from scheduler.connection import connect
from scheduler.store import Store
from tests.conftest import Servers
from tests.support.runs import Desk

T = TypeVar("T")


class Stage:
    """A server of one kind, with both ways to it."""

    def __init__(self, kind: str, servers: Servers) -> None:
        if kind == "fakeredis":
            fake = fakeredis.FakeServer()
            self.desk = Desk(fakeredis.FakeRedis(server=fake, protocol=2))
            self.connect: Callable[[], Redis] = lambda: fakeredis.FakeAsyncRedis(server=fake, protocol=2)
        else:
            server = servers.get(kind)
            self.desk = Desk(redis.Redis(unix_socket_path=str(server.socket), protocol=2))
            self.connect = lambda: connect(server.url)

    def play(self, scene: Callable[[Store], Awaitable[T]]) -> T:
        """Plays a scene with the store; its answer is the scene's."""

        async def played() -> T:
            client = self.connect()
            try:
                return await scene(Store(client, self.desk.scripts))
            finally:
                await client.aclose()

        return asyncio.run(played())
