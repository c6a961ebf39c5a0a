"""What goes over the wire together, and what comes back for it."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from redis.exceptions import ResponseError

from agent.errors import StoreUnavailable
from scheduler.wire import send

MEGA = 1024 * 1024


class Connection:
    """In place of a connection, and of the pool that it comes from: answers each command with its size."""

    def __init__(self, *, refuses: int = -1, hangs: bool = False) -> None:
        self.socket_timeout = 0.01 if hangs else 5.0
        self.connection_pool = self
        self.portions: list[list[int]] = []
        self.disconnected = False
        self._refuses = refuses
        self._hangs = hangs
        self._unread: list[int] = []

    async def get_connection(self) -> "Connection":
        return self

    async def release(self, connection: "Connection") -> None:
        assert connection is self

    async def send_packed_command(self, portion: Sequence[bytes]) -> None:
        assert not self._unread, "the replies of before are read first"
        self.portions.append([len(command) // MEGA for command in portion])
        self._unread = [len(command) // MEGA for command in portion]

    async def read_response(self, timeout: float) -> int:
        if self._hangs:
            await asyncio.sleep(60)
        size = self._unread.pop(0)
        if size == self._refuses:
            raise ResponseError("no")
        return size

    async def disconnect(self, nowait: bool = False) -> None:
        self.disconnected = True


def replies_to(connection: Connection, sizes: Sequence[int]) -> list[Any]:
    commands = [("ECHO", b"x" * (size * MEGA)) for size in sizes]
    return list(asyncio.run(send(cast("Any", connection), commands)))


def test_what_is_sent_before_its_replies_are_read_has_an_end_in_bytes() -> None:
    """PROTOCOL C3: at most 4 MB, but one command in any case."""
    connection = Connection()
    assert replies_to(connection, [1, 1, 1, 2, 6, 0, 1]) == [1, 1, 1, 2, 6, 0, 1]
    assert connection.portions == [[1, 1, 1], [2], [6], [0, 1]]


def test_a_refusal_is_the_reply_to_its_command_alone() -> None:
    first, refused, last = replies_to(Connection(refuses=2), [1, 2, 3])
    assert (first, type(refused), last) == (1, ResponseError, 3)


def test_a_server_that_does_not_answer_in_time_is_not_there() -> None:
    connection = Connection(hangs=True)
    with pytest.raises(StoreUnavailable, match="TimeoutError"):
        replies_to(connection, [1])
    assert connection.disconnected, "its late reply must not be taken for another's"
