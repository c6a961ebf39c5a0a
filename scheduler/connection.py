"""Clients of Redis with everything stated that redis-py would decide for us.

- Its own retries are off: it would send a script up to eleven times over a minute. Whoever sends knows how long to try.
- Protocol, timeouts and pool sizes are set. A full pool makes callers wait instead of failing.
- No read blocks for longer than `BLOCK_SECONDS`, and no socket timeout is shorter than that with room to spare.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from agent.errors import ConfigurationError
from agent.redaction import redact

BLOCK_SECONDS = 1.0
"""The longest block of a blocking read or move."""

SHORTEST_SOCKET_TIMEOUT = BLOCK_SECONDS + 1.0
SHORTEST_CONNECT_TIMEOUT = 0.1
LONGEST_TIMEOUT = 60.0

_OPTIONS = ("db", "client_name", "health_check_interval")
_TIMEOUTS = ("socket_timeout", "socket_connect_timeout")


def connect(
    url: str, *, connections: int = 32, socket_timeout: float = 5.0, connect_timeout: float = 3.0
) -> redis.asyncio.Redis:
    """A client for the event loop that uses it first. Connects on the first command. Timeouts in seconds.

    Raises:
        ConfigurationError: The URL has an option that contradicts how Pawl uses Redis; names the option.
    """
    retry = AsyncRetry(NoBackoff(), 0)
    stated = _stated(url, connections, socket_timeout, connect_timeout)
    with _wrong_options_named():
        pool = redis.asyncio.BlockingConnectionPool.from_url(url, retry=retry, **stated)  # pyright: ignore[reportUnknownMemberType]
        pool.make_connection()
    return redis.asyncio.Redis.from_pool(pool)


def connect_blocking(
    url: str, *, connections: int = 8, socket_timeout: float = 5.0, connect_timeout: float = 3.0
) -> redis.Redis:
    """A client for threads; see `connect`."""
    retry = Retry(NoBackoff(), 0)
    stated = _stated(url, connections, socket_timeout, connect_timeout)
    with _wrong_options_named():
        pool = redis.BlockingConnectionPool.from_url(url, retry=retry, **stated)  # pyright: ignore[reportUnknownMemberType]
        pool.connection_class(**pool.connection_kwargs)
    return redis.Redis.from_pool(pool)


@contextmanager
def _wrong_options_named() -> Generator[None]:
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The Redis URL has an option that cannot be used: {redact(str(error))}") from None


def _stated(url: str, connections: int, socket_timeout: float, connect_timeout: float) -> Mapping[str, Any]:
    check_url(url)
    of_tcp = {} if url.startswith("unix:") else {"socket_keepalive": True}
    return of_tcp | {
        "max_connections": connections,
        "timeout": socket_timeout,
        "socket_timeout": socket_timeout,
        "socket_connect_timeout": connect_timeout,
        "protocol": 2,
        "decode_responses": False,
        "client_name": "pawl",
    }


def check_url(url: str) -> None:
    """Refuses what redis-py would take from the URL and what would break Pawl.

    Raises:
        ConfigurationError: Names the option, never a password.
    """
    for option, value in parse_qsl(urlsplit(url).query):
        if option in _TIMEOUTS:
            _check_timeout(option, value)
        elif option == "max_connections":
            if not value.isdecimal() or int(value) < 4:
                raise ConfigurationError("The Redis URL's max_connections must be a number of at least 4.")
        elif option == "protocol":
            if value != "2":
                raise ConfigurationError("The Redis URL must not set protocol: Pawl speaks RESP2.")
        elif option not in _OPTIONS and not option.startswith("ssl_"):
            raise ConfigurationError(
                f"The Redis URL has the option {option!r}, which Pawl sets itself or does not know. Possible are "
                f"{', '.join((*_OPTIONS, *_TIMEOUTS, 'max_connections'))} and ssl_…; a password stands before the host."
            )


def socket_timeout_problem(seconds: float) -> str:
    """What is wrong with a limit of time for an answer, to be read behind its name; '' where it fits."""
    why = f"reads block for {BLOCK_SECONDS:g} second, and without a limit a dead connection would never be noticed"
    return _timeout_problem(seconds, SHORTEST_SOCKET_TIMEOUT, why)


def connect_timeout_problem(seconds: float) -> str:
    """What is wrong with a limit of time for connecting, to be read behind its name; '' where it fits."""
    return _timeout_problem(seconds, SHORTEST_CONNECT_TIMEOUT, "a host that does not answer has to be noticed")


def _timeout_problem(seconds: float, shortest: float, why: str) -> str:
    fits = shortest <= seconds <= LONGEST_TIMEOUT
    return "" if fits else f"must be {shortest:g} to {LONGEST_TIMEOUT:g} seconds: {why}"


def _check_timeout(option: str, value: str) -> None:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    problem = socket_timeout_problem(seconds) if option == "socket_timeout" else connect_timeout_problem(seconds)
    if problem:
        raise ConfigurationError(f"The Redis URL's {option} {problem}.")
