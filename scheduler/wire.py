"""Commands and replies as they go over the wire, in one pipeline.

redis-py's own pipeline packs each argument in Python, which costs more than all else in a commit; this one lets hiredis do it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, cast

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import MasterDownError, ReadOnlyError, RedisError, ResponseError

from scheduler.unavailable import mapped

Value: TypeAlias = "bytes | int | list[Value] | None"
Reply: TypeAlias = list[Value]
Argument: TypeAlias = str | bytes | int
Command: TypeAlias = Iterable[Argument]
Packed: TypeAlias = bytes
"""A command as it goes over the wire."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""What is sent before the replies to it are read. What takes longer than a socket's time-out would be sent again and again."""

_pack = cast("Callable[[tuple[Argument, ...]], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]


def pack(command: Command) -> Packed:
    """The command in RESP: `*<number of arguments>`, then each argument behind its length."""
    return _pack(tuple(command))


async def send(to: Redis | Line, commands: Sequence[Command]) -> list[Value | ResponseError]:
    """Sends commands together and reads all replies; what Redis answers to one command concerns that one alone.

    Raises StoreUnavailable if the connection failed: any of the commands may have run.
    """
    packed = [pack(command) for command in commands]
    try:
        if isinstance(to, Line):
            return await to.exchange(packed)
        pool = to.connection_pool
        connection = await pool.get_connection()
        try:
            return await _exchange(connection, packed, connection.socket_timeout)
        finally:
            await pool.release(connection)
    except (RedisError, OSError) as error:
        raise mapped(error) from error


class Line:
    """A connection of one's own, for whoever sends again and again.

    To take a connection from a pool and to give it back costs nearly as much as a commit; redis-py's own limit of time around
    each command comes on top. Whoever comes while the line is taken waits for his turn.

    Args:
        redis: Whose address, credentials and limits of time it has. It is not of its pool.
    """

    def __init__(self, redis: Redis) -> None:
        self._connection = redis.connection_pool.make_connection()
        self._seconds, self._connection.socket_timeout = self._connection.socket_timeout, None
        self._turn = asyncio.Lock()

    async def exchange(self, packed: Sequence[Packed]) -> list[Value | ResponseError]:
        """Sends commands and reads their replies; connects where the server has closed the connection.

        Raises:
            redis.RedisError: The connection failed.
        """
        async with self._turn:
            if self._connection.is_connected and await self._connection.can_read():
                await self._connection.disconnect()
            return await _exchange(self._connection, packed, self._seconds)

    async def close(self) -> None:
        """Closes the connection. It may be used again."""
        await self._connection.disconnect()


async def _exchange(
    connection: AbstractConnection, packed: Sequence[Packed], seconds: float | None
) -> list[Value | ResponseError]:
    """Sends portions of commands and reads the replies to each; one limit of time for all of a portion."""
    replies: list[Value | ResponseError] = []
    is_primary = True
    try:
        for portion in _portions(packed):
            async with asyncio.timeout(seconds):
                await connection.send_packed_command(portion)
                for _ in portion:
                    try:
                        replies.append(cast(Value, await connection.read_response(timeout=math.inf)))
                    except ResponseError as error:
                        replies.append(error)
                        is_primary = is_primary and not isinstance(error, (ReadOnlyError, MasterDownError))
        if not is_primary:
            await connection.disconnect()  # the next one may find the new primary
    except BaseException:
        # Replies may be on their way that belong to nobody.
        await connection.disconnect(nowait=True)
        raise
    return replies


def _portions(packed: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Commands in lists of at most so many bytes, each of one command at least."""
    portion: list[bytes] = []
    size = 0
    for command in packed:
        size += len(command)
        if portion and size > MOST_BYTES:
            yield portion
            portion, size = [], len(command)
        portion.append(command)
    if portion:
        yield portion


async def ask(to: Redis | Line, *commands: Command) -> Reply:
    """`send`, for commands that all must succeed. Raises what the first error means."""
    replies = await send(to, commands)
    for reply in replies:
        if isinstance(reply, ResponseError):
            raise mapped(reply) from reply
    return cast(Reply, replies)


def text(value: Value) -> str:
    """A reply's string."""
    return value.decode() if isinstance(value, bytes) else str(value)


def number(value: Value) -> int:
    """A reply's integer; 0 for '' and for nothing."""
    return int(cast("bytes | int | None", value) or 0)


def blob(value: Value) -> bytes:
    """A reply's opaque bytes."""
    return cast(bytes, value)


def array(value: Value) -> Reply:
    """A reply's array."""
    return cast(Reply, value)


def texts(value: Value) -> tuple[str, ...]:
    """A reply's array of strings."""
    return tuple(text(item) for item in array(value))


def groups(value: Value, size: int) -> list[Reply]:
    """A flat array in groups of `size`."""
    flat = array(value)
    return [flat[start : start + size] for start in range(0, len(flat), size)]


def pairs(value: Value) -> list[tuple[Value, Value]]:
    """A flat array of names and values."""
    flat = array(value)
    return list(zip(flat[::2], flat[1::2], strict=True))
