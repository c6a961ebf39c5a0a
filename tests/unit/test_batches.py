"""Group commit: what is ready goes together."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from agent.errors import StoreUnavailable
from scheduler.scripting import Script, ScriptCall
from worker import batches
from worker.batches import Batches

SCRIPT = Script("echo", "return ARGV[1]")


def call(size: int) -> ScriptCall[int]:
    return ScriptCall(SCRIPT, (), (b"x" * size,), lambda reply: size)


class Wire:
    """In place of Redis: keeps the sizes of what was sent together, and answers with them."""

    def __init__(self) -> None:
        self.sent: list[list[int]] = []
        self.fails = False

    async def run_many(self, redis: object, calls: Sequence[ScriptCall[int]]) -> list[int]:
        sizes = [len(cast("bytes", one.arguments[0])) for one in calls]
        self.sent.append(sizes)
        await asyncio.sleep(0)
        if self.fails:
            raise StoreUnavailable("away")
        return sizes


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    wire = Wire()
    monkeypatch.setattr(batches, "run_many", wire.run_many)
    return wire


def sent_together(wire: Wire, sizes: Sequence[int]) -> list[Any]:
    async def scenario() -> list[Any]:
        group = Batches(cast("Any", None))
        return await asyncio.gather(*(group.send(call(size)) for size in sizes), return_exceptions=True)

    return asyncio.run(scenario())


def test_what_is_ready_goes_together_in_order(wire: Wire) -> None:
    assert sent_together(wire, range(1, 300)) == list(range(1, 300))
    assert wire.sent == [list(range(1, 257)), list(range(257, 300))]


def test_a_failure_is_that_of_all_that_went_together(wire: Wire) -> None:
    wire.fails = True
    assert [type(outcome) for outcome in sent_together(wire, [1, 2])] == [StoreUnavailable] * 2
