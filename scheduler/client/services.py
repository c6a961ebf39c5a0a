"""What a client uses on one event loop: a pool of connections and all that reads and writes through it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping
from typing import Final

from agent.errors import BrokenRecord, StoreError, StoreUnavailable
from agent.redaction import redact
from scheduler.cards import AgentCard
from scheduler.client.inspector import Inspector
from scheduler.client.session_reader import SessionReader
from scheduler.client.watcher import Watcher
from scheduler.deployment import Deployment
from scheduler.ledgers import Ledgers
from scheduler.listing import Listing
from scheduler.published import Cards, Published
from scheduler.store import Store
from scheduler.sweeps.mirror import Mender
from scheduler.sweeps.rings import Ringer

CARDS_SECONDS: Final = 2.0
"""How long cards that were read are taken for the newest."""


class Services:
    """Made on the event loop that uses it."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.keys = deployment.keys
        self.redis = deployment.connect()
        self.store = Store(self.redis, deployment.scripts)
        self.listing = Listing(self.store)
        self.ledgers = Ledgers(self.redis, self.keys)
        self.inspector = Inspector(self.redis, self.store, self.served)
        self.sessions = SessionReader(self.redis, self.keys)
        self.watcher = Watcher(self.redis, self.keys)
        self.ringer = Ringer(self.redis, self.store)
        self.mender = Mender(self.redis, self.store, self.ringer)
        self._published = Cards(self.redis, self.keys)
        self._cards: Mapping[str, Published] = {}
        self._cards_read_at = 0.0

    async def open(self) -> None:
        """Says at once where Redis cannot be used.

        Raises:
            StoreUnavailable: Names the address, without its password.
        """
        try:
            await self.store.now()
        except StoreUnavailable as error:
            await self.redis.aclose()
            raise StoreUnavailable(f"{error} ({redact(self.deployment.url)})") from error

    async def cards(self) -> Mapping[str, Published]:
        """The cards of the agents that workers have."""
        if time.monotonic() - self._cards_read_at > CARDS_SECONDS:
            return await self.newest_cards()
        return self._cards

    async def newest_cards(self) -> Mapping[str, Published]:
        """The cards as they are this moment."""
        self._cards = await self._published.all()
        self._cards_read_at = time.monotonic()
        return self._cards

    async def card(self, agent: str) -> AgentCard | None:
        """The newest card of an agent; None where no worker has it, or where a newer version wrote it in its own way."""
        published = (await self.cards()).get(agent) or (await self.newest_cards()).get(agent)
        with contextlib.suppress(BrokenRecord):
            return AgentCard.of_bytes(published.card) if published else None
        return None

    async def served(self) -> Collection[str]:
        """The agents that workers have."""
        return (await self.cards()).keys()

    async def ring(self, run_id: str) -> None:
        """Tells RQ that a run wants a worker. Where that fails, a sweep rings a little later."""
        with contextlib.suppress(StoreError):
            await self.ringer.ring_next(run_id)

    async def tell_rq(self, run_id: str) -> None:
        """Shows RQ's tools where a run stands. Where that fails, a sweep does it a little later."""
        with contextlib.suppress(StoreError):
            await self.mender.mend(run_id)

    async def close(self) -> None:
        """Closes the connections."""
        await self.watcher.close()
        await self.redis.aclose()
