"""The events of one run, replayed and followed without loss. Every reader has a cursor of its own and takes from nobody.

Events are read from the stored stream at the reader's own pace; the watcher only says when there is more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from agent.errors import ConfigurationError
from agent.events import Recorded, decode
from scheduler.client.outages import patiently
from scheduler.client.services import Services
from scheduler.client.sight import Sight, read_sight, sight_command
from scheduler.lifecycle import ENDED
from scheduler.records import read_event
from scheduler.wire import array, ask

PAGE: Final = 200
_MOST_DIGITS: Final = 18  # of the number of an event; more of them may be too large for Redis


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place behind event `seq`. `epoch` tells whether the events that were read are still those that are stored."""

    seq: int = 0
    epoch: str | None = None

    def __str__(self) -> str:
        return str(self.seq) if self.epoch is None else f"{self.seq}@{self.epoch}"

    @classmethod
    def of(cls, value: int | str) -> Cursor:
        """The place that a number or a cursor's text means.

        Raises:
            ConfigurationError: It is neither.
        """
        seq, at, epoch = str(value).partition("@")
        if not seq.isdecimal() or len(seq) > _MOST_DIGITS:
            raise ConfigurationError(f"after={value!r} is neither the number of an event nor a cursor.")
        return cls(int(seq), epoch if at else None)


class EventReader(AsyncIterator[Recorded]):
    """Reads events behind a place. Iterate over it with `async for`.

    If Redis lost events that were read already (a failover), they are read again from the first on: their numbers go back.

    Args:
        follow: Wait for more until the run has ended; else end with what is there.
    """

    def __init__(
        self, services: Callable[[], Awaitable[Services]], run_id: str, *, after: int | str, follow: bool
    ) -> None:
        self._services = services
        self._run_id = run_id
        self._follow = follow
        self._cursor = Cursor.of(after)
        self._read: deque[Recorded] = deque()
        self._read_up_to = self._cursor
        self._over = False

    @property
    def cursor(self) -> str:
        """The place behind the event that was given out last: pass it as `after` to go on from there, in any process."""
        return str(self._cursor)

    async def __anext__(self) -> Recorded:
        """The next event.

        Raises:
            RunNotFound: There is no such run, or its retention is over.
            StoreUnavailable: Redis is away.
        """
        while not self._read:
            if self._over:
                raise StopAsyncIteration
            await self._read_on()
        recorded = self._read.popleft()
        self._cursor = Cursor(recorded.seq, self._read_up_to.epoch)
        return recorded

    async def _read_on(self) -> None:
        sight, events = await (patiently(self._page) if self._follow else self._page())
        place = self._read_up_to
        if place.epoch is not None and (sight.epoch != place.epoch or sight.seq < place.seq):
            self._read_up_to = Cursor(0, sight.epoch)
        elif events:
            self._read.extend(events)
            self._read_up_to = Cursor(events[-1].seq, sight.epoch)
            self._over = not self._follow and len(events) < PAGE
        elif not self._follow or sight.status in ENDED:
            self._over = True
        else:
            self._read_up_to = place = Cursor(place.seq, sight.epoch)
            await (await self._services()).watcher.until(self._run_id, lambda now: _has_news(now, place))

    async def _page(self) -> tuple[Sight, list[Recorded]]:
        """Where the run stands, and then events: what ended it is among them if it had ended before."""
        services = await self._services()
        fields, entries = await ask(
            services.redis,
            sight_command(services.keys, self._run_id),
            ("XRANGE", services.keys.events(self._run_id), f"({self._read_up_to.seq}-0", "+", "COUNT", PAGE),
        )
        sight = read_sight(self._run_id, fields)
        stored = [read_event(self._run_id, entry) for entry in array(entries)]
        events = [Recorded(seq=one.seq, at=one.at, event=decode(one.body)) for one in stored]
        return sight, events


def _has_news(sight: Sight, place: Cursor) -> bool:
    return sight.seq != place.seq or sight.epoch != place.epoch or sight.status in ENDED
