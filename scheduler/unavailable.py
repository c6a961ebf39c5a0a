"""Errors of redis-py as errors of ours, with what to do. No message holds a password."""

from __future__ import annotations

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MaxConnectionsError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from agent.errors import BrokenRecord, StoreError, StoreUnavailable
from agent.redaction import redact

_REFUSALS = {
    "READONLY": "Redis is a replica that takes no writes, as after a failover: connect to the primary.",
    "LOADING": "Redis is loading its data: try again in a moment.",
    "MASTERDOWN": "Redis is a replica that has lost its primary: connect to the primary or wait for it.",
    "BUSY": "Redis is busy with a long script: try again, or see `redis-cli slowlog get`.",
    "OOM": "Redis is out of memory: raise `maxmemory`, or shorten the retention of runs.",
    "NOREPLICAS": "Redis has too few replicas to accept writes (min-replicas-to-write).",
    "MISCONF": "Redis cannot write to its disk: see its log, and whether the disk is full.",
    "NOAUTH": "Redis wants a password. Put it in the URL, redis://:<password>@host.",
    "WRONGPASS": "The password of the Redis URL is missing or wrong: put it in the URL, redis://:<password>@host.",
    "NOPERM": "The Redis user lacks a permission: it needs all commands and scripts on our keys.",
    "CLUSTERDOWN": "The Redis cluster is down: see `redis-cli cluster info`.",
    "MOVED": "This Redis is one node of a cluster; Pawl needs all keys in one slot: set RQ_KEY_PREFIX='{pawl}:rq'.",
    "CROSSSLOT": "This Redis is a cluster; Pawl needs all keys in one slot: set RQ_KEY_PREFIX='{pawl}:rq'.",
}

_BY_TYPE: tuple[tuple[type[Exception], str], ...] = (
    (AuthenticationError, "WRONGPASS"),
    (BusyLoadingError, "LOADING"),
    (OutOfMemoryError, "OOM"),
    (ReadOnlyError, "READONLY"),
    (NoPermissionError, "NOPERM"),
)


def mapped(error: Exception) -> StoreError:
    """What `error` means. Everything but a broken record may be tried again."""
    if isinstance(error, StoreError):
        return error
    for kind, word in _BY_TYPE:
        if isinstance(error, kind) or isinstance(error.__cause__, kind):  # redis-py wraps what befalls it at connecting
            return StoreUnavailable(_REFUSALS[word])
    if isinstance(error, MaxConnectionsError) or str(error) == "No connection available.":
        return StoreUnavailable("All connections to Redis are in use: raise max_connections in its URL.")
    if isinstance(error, ResponseError):
        return _refusal(error)
    words = redact(str(error)) or type(error).__name__
    return StoreUnavailable(f"Redis cannot be reached: is it running, and is its URL right? ({words})")


def mapped_if_redis(error: Exception) -> StoreError | None:
    """What an error of redis-py means; None for any other error."""
    return mapped(error) if isinstance(error, RedisError) else None


def _refusal(error: ResponseError) -> StoreError:
    message = str(error)
    for word, advice in _REFUSALS.items():
        if message.startswith(word):
            return StoreUnavailable(advice)
    if "WRONGTYPE" in message or "user_script" in message or "Error running script" in message:
        return BrokenRecord(f"A record cannot be read or written: {redact(message)}")
    return StoreUnavailable(f"Redis refused a command: {redact(message)}")
