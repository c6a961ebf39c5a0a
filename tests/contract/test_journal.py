"""What a worker may believe of its lease after a commit."""

import asyncio
from typing import Any, cast

import pytest

from agent.errors import StoreUnavailable
from agent.journal import Commit
from agent.state import Checkpoint
from scheduler.scripting import ScriptCall
from tests.support.runs import Desk
from worker.batches import Batches
from worker.durability import Durability
from worker.journal import RedisJournal
from worker.leases import Lease


class Line:
    """Sends calls; the answers to the first ones are lost."""

    def __init__(self, desk: Desk, lost: int) -> None:
        self._desk = desk
        self._lost = lost

    async def send(self, call: ScriptCall[Any]) -> Any:
        answer = self._desk.do(call)
        self._lost -= 1
        if self._lost >= 0:
            raise StoreUnavailable("the answer was lost")
        return answer


@pytest.mark.parametrize(("lost", "is_renewed"), [(0, True), (1, False)])
def test_only_a_commit_that_was_done_just_now_renews_the_lease(desk: Desk, lost: int, is_renewed: bool) -> None:
    """One that is sent again was done some time ago: nobody knows how old the lease is by now."""
    desk.create("0-a")
    claimed = desk.claim("0-a").claimed
    lease = Lease("0-a", claimed.token)

    async def commit() -> None:
        journal = RedisJournal(
            claimed,
            lease,
            desk.scripts,
            cast(Batches, Line(desk, lost)),
            model="m",
            durability=Durability(cast(Any, None), desk.keys, "off"),
            promoted=lambda run: None,
        )
        await journal.commit(Commit(events=(), checkpoint=Checkpoint()))

    asyncio.run(commit())

    assert (lease.deadline > 0) is is_renewed
