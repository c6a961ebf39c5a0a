"""A board of the tool calls under way, in memory that another process can read while this one does not answer."""

from __future__ import annotations

from typing import Final, Protocol

SLOTS: Final = 512
"""Calls that have a place; more are not shown."""

_WIDTH: Final = 128
SIZE: Final = SLOTS * _WIDTH
"""Bytes."""


class Memory(Protocol):
    """Shared memory, such as a `mmap`."""

    def __setitem__(self, place: slice, value: bytes, /) -> None: ...


class CallBoard:
    """Says which tool calls are under way.

    Args:
        memory: `SIZE` bytes, zero at first.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._free = list(range(SLOTS - 1, -1, -1))

    def begin(self, call: str) -> int:
        """Shows a call. Returns what to `end` it with."""
        try:
            slot = self._free.pop()
        except IndexError:
            return -1
        place = slot * _WIDTH
        self._memory[place : place + _WIDTH] = call.encode("utf-8", "replace")[:_WIDTH].ljust(_WIDTH, b"\0")
        return slot

    def end(self, slot: int) -> None:
        """Takes a call from the board."""
        if slot >= 0:
            place = slot * _WIDTH
            self._memory[place : place + 1] = b"\0"
            self._free.append(slot)


def read_board(shown: bytes) -> list[str]:
    """The calls that the memory of a board shows."""
    slots = (shown[place : place + _WIDTH] for place in range(0, SIZE, _WIDTH))
    return [slot.rstrip(b"\0").decode("utf-8", "replace") for slot in slots if slot[0]]
