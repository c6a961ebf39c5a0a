"""What a client of Redis is told, and what it refuses to be told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
)

from agent.errors import BrokenRecord, ConfigurationError, StoreError, StoreUnavailable
from agent.redaction import register_secret
from scheduler.connection import BLOCK_SECONDS, check_url, connect, connect_blocking
from scheduler.unavailable import mapped
from scheduler.wire import ask

NOBODY = "redis://:hidden-password@127.0.0.1:1/0"


@pytest.mark.parametrize("open_client", [connect, connect_blocking])
def test_everything_is_stated(open_client: Callable[[str], object]) -> None:
    client = open_client("redis://host")
    stated = getattr(client, "connection_pool").connection_kwargs  # noqa: B009

    assert getattr(stated["retry"], "_retries") == 0  # noqa: B009
    assert stated["protocol"] == 2
    assert stated["decode_responses"] is False
    assert stated["socket_timeout"] > BLOCK_SECONDS
    assert stated["socket_connect_timeout"] > 0


def test_the_size_of_a_pool_is_stated() -> None:
    assert connect("redis://host", connections=7).connection_pool.max_connections == 7
    assert connect("redis://host?max_connections=9").connection_pool.max_connections == 9


@pytest.mark.parametrize(
    "url",
    [
        "redis://host",
        "rediss://user:password@host:6380/2?ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=1",
        "redis://host?socket_timeout=2&health_check_interval=30&protocol=2",
        "redis://host?socket_timeout=",
    ],
)
def test_urls_that_fit(url: str) -> None:
    connect(url)
    connect_blocking(url)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("socket_timeout=1", "socket_timeout"),
        ("socket_timeout=none", "socket_timeout"),
        ("socket_timeout=0", "socket_timeout"),
        ("socket_timeout=nan", "socket_timeout"),
        ("socket_timeout=3600", "socket_timeout"),
        ("socket_connect_timeout=0", "socket_connect_timeout"),
        ("protocol=3", "protocol"),
        ("decode_responses=true", "decode_responses"),
        ("retry_on_timeout=true", "retry_on_timeout"),
        ("max_connections=1", "max_connections"),
        ("max_connections=many", "max_connections"),
        ("password=hidden-password", "password"),
        ("ssl_nonsense=1", "ssl_nonsense"),
        ("nonsense=1", "nonsense"),
    ],
)
def test_options_that_contradict_are_refused(option: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=named) as refused:
        connect(f"redis://:hidden-password@host?{option}")

    assert "hidden-password" not in str(refused.value)


def test_a_timeout_outlasts_a_blocking_read() -> None:
    with pytest.raises(ConfigurationError, match="block"):
        check_url(f"redis://host?socket_timeout={BLOCK_SECONDS}")


def test_nobody_answers() -> None:
    register_secret("hidden-password")

    async def scene() -> None:
        client = connect(NOBODY)
        try:
            await ask(client, ("PING",))
        finally:
            await client.aclose()

    with pytest.raises(StoreUnavailable, match="is it running") as refused:
        asyncio.run(scene())

    assert "127.0.0.1:1" in str(refused.value)
    assert "hidden-password" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ReadOnlyError("You can't write against a read only replica."), "primary"),
        (BusyLoadingError("Redis is loading the dataset in memory"), "try again"),
        (MasterDownError("MASTERDOWN Link with MASTER is down"), "primary"),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), "maxmemory"),
        (AuthenticationError("invalid username-password pair"), "password"),
        (ResponseError("NOAUTH Authentication required."), "password"),
        (ResponseError("BUSY Redis is busy running a script."), "busy"),
        (ResponseError("MISCONF Errors writing to the AOF file"), "disk"),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), "replicas"),
        (ResponseError("CROSSSLOT Keys in request don't hash to the same slot"), "slot"),
        (ResponseError("something new"), "something new"),
        (ConnectionError("Error 111 connecting to host:6379. Connection refused."), "running"),
        (ConnectionError("No connection available."), "max_connections"),
        (TimeoutError("Timeout reading from host:6379"), "running"),
        (OSError("no route"), "running"),
    ],
)
def test_what_may_be_tried_again_says_what_to_do(error: Exception, advice: str) -> None:
    found = mapped(error)

    assert type(found) is StoreUnavailable
    assert advice in str(found)


@pytest.mark.parametrize(
    "message",
    [
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "ERR user_script:12: attempt to index a nil value script: 0123, on @user_script:12.",
    ],
)
def test_a_record_that_breaks_a_script_is_broken(message: str) -> None:
    assert type(mapped(ResponseError(message))) is BrokenRecord


def test_our_own_errors_stay_what_they_are() -> None:
    error = StoreError("ours")

    assert mapped(error) is error
