"""Rings: telling RQ that a run wants a worker. A lost or doubled ring costs time, never correctness."""

import uuid
from collections.abc import Sequence

from redis.asyncio import Redis

from agent.errors import BrokenRecord, RunNotFound
from agent.events import RunCancelled, RunCreated, decode, encode
from scheduler.loggers import get_logger
from scheduler.records import RunRecord
from scheduler.replies import Outcome, ToRing
from scheduler.rq_bridge import RunJob, enqueue, restore_job, ring_keys, ring_words
from scheduler.scripting import run, run_many
from scheduler.store import Store


class Ringer:
    """Rings for runs, and makes the job of a run again where somebody deleted it."""

    def __init__(self, redis: Redis, store: Store) -> None:
        self._redis = redis
        self._store = store
        self._scripts = store.scripts
        self._words = ring_words()
        self._log = get_logger("pawl.rings")

    async def ring(self, runs: Sequence[ToRing]) -> None:
        """Rings for runs that are due.

        Raises:
            StoreUnavailable: Redis did not answer; a sweep rings again.
        """
        if not runs:
            return
        calls = [
            self._scripts.ring(run_id, rq_keys=ring_keys(run_id, queue), rq_words=self._words) for run_id, queue in runs
        ]
        for (run_id, _), reply in zip(runs, await run_many(self._redis, calls), strict=True):
            if isinstance(reply, Exception):
                self._log.warning("ring_failed", run=run_id, error=str(reply))
            elif reply.code == "no_job":
                await self._make_job(run_id)
            elif reply.code == "cancel":
                await self.cancel(run_id)

    async def ring_next(self, run_id: str) -> None:
        """Rings for the next run of a session, whose turn has come; one that cannot be read is passed over."""
        (record,) = await self._store.infos((run_id,))
        if isinstance(record, RunRecord):
            await self.ring([ToRing(run_id, record.queue)])
        else:
            self._log.error("ring_failed", run=run_id, error=str(record))

    async def cancel(self, run_id: str) -> None:
        """Cancels a run whose job was cancelled or stopped through RQ, and rings for the one whose turn has come."""
        call = self._scripts.cancel(run_id, sid=f"rq-{uuid.uuid4().hex}", event=encode(RunCancelled(reason="rq")))
        reply = await run(self._redis, call)
        self._log.info("cancelled_through_rq", run=run_id, outcome=reply.code)
        if isinstance(reply, Outcome) and reply.promoted:
            await self.ring_next(reply.promoted)

    async def restore(self, record: RunRecord) -> None:
        """Makes the job of a run again, without a ring."""
        await run(self._redis, restore_job(self._store.keys, await self._job_of(record)))
        self._log.info("job_made_again", run=record.id)

    async def _make_job(self, run_id: str) -> None:
        """Makes the job of a run again; that rings once."""
        try:
            await run(self._redis, enqueue(self._store.keys, await self._job_of(await self._store.info(run_id))))
        except (BrokenRecord, RunNotFound) as error:
            self._log.error("job_not_made", run=run_id, error=str(error))
            return
        self._log.info("job_made_again", run=run_id)

    async def _job_of(self, record: RunRecord) -> RunJob:
        """The job of a run; where its first event cannot be read it tells no task, and the worker that takes it says so."""
        try:
            events = await self._store.events(record.id, 0, 1)
            first = decode(events[0].body) if events else None
        except BrokenRecord:
            first = None
        return RunJob(
            run_id=record.id,
            queue=record.queue,
            agent=record.agent,
            task=first.task if isinstance(first, RunCreated) else "",
            session=record.session,
            tenant=record.tenant,
            retention_seconds=self._scripts.policy.run_retention_ms // 1000,
        )
