"""What workers publish of their agents, so that clients need none of their code. A card is opaque here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.asyncio import Redis

from scheduler.keys import Keys, name
from scheduler.loggers import get_logger
from scheduler.wire import Value, array, ask, blob, number, pairs, text


@dataclass(frozen=True, slots=True)
class Published:
    """A card, who published it last, and until when it counts (ms) unless it is published again."""

    card: bytes
    worker: str
    expires_at: int


class Cards:
    """The agents' cards of one deployment."""

    def __init__(self, redis: Redis, keys: Keys) -> None:
        self._redis = redis
        self._keys = keys

    async def publish(self, agent: str, card: bytes, *, worker: str, queues: Sequence[str], life_ms: int) -> None:
        """Publishes a card anew; the last one counts.

        Args:
            queues: Those that the worker serves.
        """
        (time,) = await ask(self._redis, ("TIME",))
        expires_at = _milliseconds(time) + life_ms
        value = b"%d %s\n%s" % (expires_at, name("worker", worker).encode(), card)
        served = [word for queue in queues for word in (_pair(agent, queue), expires_at)]
        await ask(
            self._redis,
            ("HSET", self._keys.cards, name("agent", agent), value),
            ("HSET", self._keys.served, *served),
        )

    async def all(self) -> Mapping[str, Published]:
        """All cards that still count, by agent. Takes away those that do not, and those that nobody could read: a worker
        that has the agent publishes its card again.
        """
        time, found, served = await ask(
            self._redis, ("TIME",), ("HGETALL", self._keys.cards), ("HGETALL", self._keys.served)
        )
        now = _milliseconds(time)
        cards: dict[str, Published] = {}
        over: list[bytes] = []
        for agent, value in pairs(found):
            try:
                published = _published(blob(value))
                if published.expires_at > now:
                    cards[text(agent)] = published
                    continue
            except ValueError as error:
                get_logger("pawl.cards").warning("card_broken", agent=repr(blob(agent)), error=str(error))
            over.append(blob(agent))
        unserved = [blob(pair) for pair, expires_at in pairs(served) if _moment(expires_at) <= now]
        for key, fields in ((self._keys.cards, over), (self._keys.served, unserved)):
            if fields:
                await ask(self._redis, ("HDEL", key, *fields))
        return cards

    async def is_served(self, agent: str, queue: str) -> bool:
        """Whether a worker that has this agent serves this queue, and was there within the life of a card."""
        time, expires_at = await ask(self._redis, ("TIME",), ("HGET", self._keys.served, _pair(agent, queue)))
        return _moment(expires_at) > _milliseconds(time)


def _pair(agent: str, queue: str) -> str:
    """Neither has a line break: names are printable."""
    return f"{name('agent', agent)}\n{queue}"


def _milliseconds(time: Value) -> int:
    """The reply to TIME, in whole seconds."""
    return number(array(time)[0]) * 1000


def _moment(value: Value) -> int:
    """A moment in milliseconds; one that cannot be read is long past."""
    try:
        return number(value)
    except ValueError:
        return 0


def _published(value: bytes) -> Published:
    """The value of a card's field. Raises ValueError where it cannot be read."""
    head, _, card = value.partition(b"\n")
    expires_at, _, worker = head.decode().partition(" ")
    return Published(card, worker, int(expires_at))
