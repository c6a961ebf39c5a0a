"""A server that goes away, comes back, or takes no writes; and callers that give up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agent.errors import RunNotFound, StoreUnavailable
from scheduler.connection import connect, connect_blocking
from scheduler.inputs import NewRun
from scheduler.scripting import run, run_blocking
from scheduler.scripts import Scripts
from scheduler.store import Store
from scheduler.wire import ask
from tests.support.servers import Server, programs


def new_run(run_id: str) -> NewRun:
    return NewRun(id=run_id, digest="d", event=b"{}", agent="calc", queue="default")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(programs()["valkey"], appendonly=True) as running:
        yield running


def test_the_same_client_goes_on_when_the_server_is_back(server: Server) -> None:
    scripts = Scripts()

    async def scene() -> None:
        client = connect(server.url)
        await run(client, scripts.create(new_run("0-a")))
        server.stop()
        with pytest.raises(StoreUnavailable):
            await run(client, scripts.create(new_run("0-b")))
        server.start()
        assert (await run(client, scripts.create(new_run("0-a")))).code == "already"
        assert (await run(client, scripts.create(new_run("0-b")))).code == "created"
        await client.aclose()

    asyncio.run(scene())


def test_a_thread_with_a_client_of_its_own_goes_on_too(server: Server) -> None:
    scripts, client = Scripts(), connect_blocking(server.url)
    server.stop()
    with pytest.raises(StoreUnavailable):
        run_blocking(client, scripts.create(new_run("0-a")))
    server.start()

    assert run_blocking(client, scripts.create(new_run("0-a"))).code == "created"
    client.close()


def test_a_replica_takes_no_writes_until_it_is_a_primary(server: Server) -> None:
    scripts = Scripts()

    async def scene() -> None:
        client = connect(server.url)
        await run(client, scripts.create(new_run("0-a")))
        await ask(client, ("REPLICAOF", "127.0.0.1", "1"))
        with pytest.raises(StoreUnavailable, match="primary"):
            await run(client, scripts.create(new_run("0-b")))
        await ask(client, ("REPLICAOF", "NO", "ONE"))
        assert (await run(client, scripts.create(new_run("0-b")))).code == "created"
        await client.aclose()

    asyncio.run(scene())


def test_a_full_memory_writes_nothing(server: Server) -> None:
    scripts = Scripts()

    async def scene() -> None:
        client = connect(server.url)
        await run(client, scripts.create(new_run("0-a")))
        await ask(client, ("CONFIG", "SET", "maxmemory", "1"))
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await run(client, scripts.create(new_run("0-b")))
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await run(client, scripts.cancel("0-a", sid="c1", event=b"{}"))
        await ask(client, ("CONFIG", "SET", "maxmemory", "0"))
        store = Store(client, scripts)
        with pytest.raises(RunNotFound):
            await store.info("0-b")
        record = await store.info("0-a")
        assert (record.status, record.seq) == ("queued", 1)
        await client.aclose()

    asyncio.run(scene())


def test_a_caller_that_gives_up_leaves_no_reply_to_the_next(server: Server) -> None:
    scripts = Scripts()

    async def scene() -> None:
        client = connect(server.url, connections=4)
        store = Store(client, scripts)
        for run_id in ("0-a", "0-b"):
            await store.create(new_run(run_id))
        for delay in range(300):
            given_up = asyncio.ensure_future(store.info("0-a"))
            for _ in range(delay % 12):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            assert (await store.info("0-b")).id == "0-b"
        await client.aclose()

    asyncio.run(scene())


def test_callers_wait_for_a_connection_rather_than_fail(server: Server) -> None:
    async def scene() -> None:
        client = connect(server.url, connections=4)
        store = Store(client, Scripts())
        await store.create(new_run("0-a"))
        records = await asyncio.gather(*(store.info("0-a") for _ in range(200)))
        assert {record.id for record in records} == {"0-a"}
        await client.aclose()

    asyncio.run(scene())
