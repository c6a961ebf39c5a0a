"""What workers publish of their agents, so that clients need none of their code. A card is opaque here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from redis.asyncio import Redis

from agent.errors import BrokenRecord
from scheduler.keys import Keys, name
from scheduler.wire import array, ask, blob, number, pairs, text


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

    async def publish(self, agent: str, card: bytes, *, worker: str, life_ms: int) -> None:
        """Publishes a card anew; the last one counts."""
        now, _ = await self._now_and_cards()
        value = b"%d %s\n%s" % (now + life_ms, name("worker", worker).encode(), card)
        await ask(self._redis, ("HSET", self._keys.cards, name("agent", agent), value))

    async def all(self) -> Mapping[str, Published]:
        """All cards that still count, by agent. Takes away those that do not."""
        now, cards = await self._now_and_cards()
        expired = [agent for agent, published in cards.items() if published.expires_at <= now]
        if expired:
            await ask(self._redis, ("HDEL", self._keys.cards, *expired))
        return {agent: published for agent, published in cards.items() if published.expires_at > now}

    async def counts(self, agent: str) -> bool:
        """Whether a worker published this agent and is there to publish it again, as far as can be read."""
        time, found = await ask(self._redis, ("TIME",), ("HGET", self._keys.cards, name("agent", agent)))
        if found is None:
            return False
        try:
            return _published(agent, blob(found)).expires_at > number(array(time)[0]) * 1000
        except BrokenRecord:
            return False

    async def _now_and_cards(self) -> tuple[int, dict[str, Published]]:
        time, found = await ask(self._redis, ("TIME",), ("HGETALL", self._keys.cards))
        return number(array(time)[0]) * 1000, {
            text(agent): _published(text(agent), blob(v)) for agent, v in pairs(found)
        }


def _published(agent: str, value: bytes) -> Published:
    head, _, card = value.partition(b"\n")
    try:
        expires_at, _, worker = head.decode().partition(" ")
        return Published(card, worker, int(expires_at))
    except ValueError as error:
        raise BrokenRecord(f"The card of agent {agent!r} cannot be read.") from error
