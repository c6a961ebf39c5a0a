"""A worker as RQ knows it, without agents: a test plays those who move the runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import redis
from rq import Worker
from rq import command as rq_command

from scheduler.connection import connect, connect_blocking
from scheduler.lifecycle import Status
from scheduler.rq_bridge import queue_keys
from tests.support.rq_books import Books
from tests.support.runs import Desk, Owner
from worker.rq_worker import AgentWorker

NAME = "host:1:bb"
SEND: Any = rq_command


@dataclass
class Face:
    """A worker, what it was told to do, and a look at its Redis from outside."""

    worker: AgentWorker
    books: Books
    stopped: list[str]
    shutdowns: int = 0
    owners: dict[str, Owner] = field(default_factory=dict[str, Owner])

    @property
    def redis(self) -> Any:
        return self.books.redis

    def seen(self) -> Worker | None:
        """As RQ's tools see it."""
        workers = cast(Any, Worker).all(connection=self.redis)
        return next((worker for worker in workers if worker.name == NAME), None)

    def put(self, run_id: str, queue: str = "default") -> None:
        self.redis.rpush(queue_keys(queue).queue, run_id)

    def queued(self, queue: str = "default") -> list[bytes]:
        return self.redis.lrange(queue_keys(queue).queue, 0, -1)

    def taken(self, queue: str = "default") -> list[bytes]:
        return self.redis.lrange(queue_keys(queue).intermediate, 0, -1)

    def finish(self, run_id: str) -> None:
        """The run's record says that it is completed."""
        self.owners[run_id].commit(to=Status.COMPLETED)

    def begin(self, run_id: str, activation: str = "A") -> None:
        """A run is claimed, and the worker told."""
        self.books.create(run_id)
        self.redis.lmove(queue_keys("default").queue, queue_keys("default").intermediate)
        self.owners[run_id] = self.books.desk.claim(run_id, activation)
        self.worker.started(self.books.standing(run_id), activation)


@asynccontextmanager
async def working(url: str, *queues: str) -> AsyncGenerator[Face]:
    books = Books(Desk(cast(Any, redis.Redis).from_url(url)))
    client, blocking, stopped = connect(url), connect_blocking(url), list[str]()
    worker = AgentWorker(
        queues or ("default",),
        NAME,
        connection=blocking,
        redis=client,
        keys=books.desk.keys,
        on_shutdown=lambda: setattr(face, "shutdowns", face.shutdowns + 1),
        on_stop=stopped.append,
    )
    face = Face(worker, books, stopped)
    await worker.register()
    await until(lambda: face.redis.pubsub_numsub(worker.pubsub_channel_name)[0][1] == 1, "it hears commands")
    try:
        yield face
    finally:
        await worker.unregister()
        await client.aclose()
        blocking.close()


async def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, f"not within 5 s: {what}"
        await asyncio.sleep(0.01)
