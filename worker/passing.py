"""A run that a worker took and has no agent for is passed on: a hint tells the workers that have it.

Without the hint the run comes too: its record knows when to ring again. But that ring may go to the wrong worker as well.
"""

from collections import deque
from collections.abc import Collection
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError
from redis.asyncio import Redis

from scheduler.keys import Keys
from scheduler.published import Cards
from scheduler.rq_bridge import Popped
from scheduler.wire import ask

MOST_KEPT: Final = 1_000
"""Hints that a worker without room keeps; of more the oldest are forgotten."""


class PassedOn(BaseModel):
    """The hint."""

    model_config = ConfigDict(frozen=True)

    run: str
    queue: str
    agent: str


async def pass_on(redis: Redis, keys: Keys, passed: PassedOn) -> bool:
    """Tells all workers of a run. False, and nobody is told, where no worker has its agent and serves its queue.

    Raises:
        StoreUnavailable: Redis did not answer.
    """
    if not await Cards(redis, keys).is_served(passed.agent, passed.queue):
        return False
    await ask(redis, ("PUBLISH", keys.hints, passed.model_dump_json()))
    return True


class PassedRuns:
    """The runs that others passed on to this worker.

    Args:
        agents: The names of those that it has.
        queues: Those that it serves.
    """

    def __init__(self, agents: Collection[str], queues: Collection[str]) -> None:
        self._agents = agents
        self._queues = queues
        self._kept: deque[Popped] = deque(maxlen=MOST_KEPT)

    def __bool__(self) -> bool:
        return bool(self._kept)

    def hear(self, hint: bytes) -> bool:
        """Keeps a run if it is for this worker, and says so."""
        try:
            passed = PassedOn.model_validate_json(hint)
        except ValidationError:  # a hint of another kind
            return False
        return passed.agent in self._agents and self.keep(Popped(passed.run, passed.queue))

    def keep(self, one: Popped) -> bool:
        """Keeps a run of an agent that it has, if it is of a queue that it serves, and says so."""
        is_served = one.queue in self._queues
        if is_served:
            self._kept.append(one)
        return is_served

    def take(self, most: int) -> list[Popped]:
        """Those that have been kept for longest, and no longer are. Others may have taken them meanwhile."""
        return [self._kept.popleft() for _ in range(min(most, len(self._kept)))]
