"""Leases: runs whose worker is gone are queued again, and a run that kills its workers is taken out of the way."""

from collections.abc import Sequence

from redis.asyncio import Redis

from agent.events import RunCancelled, RunFailed, RunRequeued, encode
from scheduler.loggers import get_logger
from scheduler.records import RunRecord
from scheduler.replies import Expired, Outcome, ToRing
from scheduler.scripting import run_many
from scheduler.scripts import PoisonEvent
from scheduler.store import Store
from scheduler.sweeps.rings import Ringer
from scheduler.wire import array, ask, text

LOST = RunFailed(
    reason="worker_lost",
    error="its workers died again and again while they worked on it; see the events, then `pawl resume` it",
)


class Reaper:
    """Takes runs from owners that are gone."""

    def __init__(self, redis: Redis, store: Store, ringer: Ringer) -> None:
        self._redis = redis
        self._store = store
        self._ringer = ringer
        self._poison = PoisonEvent(encode(LOST), f"{LOST.reason}: {LOST.error}")
        self._log = get_logger("pawl.leases")

    async def reap(self, runs: Sequence[Expired], *, why: str, dead: bool = False) -> int:
        """Reaps runs whose lease is over or, with `dead`, whose worker is known to have died. Returns how many.

        Raises:
            StoreUnavailable: Redis did not answer; the next sweep finds them again.
        """
        calls = [
            self._store.scripts.reap(
                run_id,
                token=token,
                dead=dead,
                requeued_event=encode(RunRequeued(why=why)),
                cancelled_event=encode(RunCancelled()),
                poison=self._poison,
            )
            for run_id, token in runs
        ]
        requeued: list[str] = []
        reaped = 0
        for (run_id, token), reply in zip(runs, await run_many(self._redis, calls), strict=True):
            if isinstance(reply, Exception):
                self._log.error("reap_failed", run=run_id, error=str(reply))
            elif isinstance(reply, Outcome):
                reaped += 1
                self._log.warning("run_reaped", run=run_id, token=token, why=why, outcome=reply.code)
                if reply.code == "requeued":
                    requeued.append(run_id)
                elif reply.promoted:
                    await self._ringer.ring_next(reply.promoted)
        records = await self._store.infos(requeued) if requeued else []
        await self._ringer.ring([ToRing(r.id, r.queue) for r in records if isinstance(r, RunRecord)])
        return reaped

    async def free(self, worker: str) -> int:
        """Reaps all runs of a worker that is known to have died, at once. Returns how many."""
        (leases,) = await ask(self._redis, ("ZRANGE", self._store.keys.leases, 0, -1))
        records = await self._store.infos([text(run) for run in array(leases)])
        held = [Expired(r.id, r.token) for r in records if isinstance(r, RunRecord) and r.worker == worker]
        return await self.reap(held, why=f"worker {worker} died", dead=True) if held else 0
