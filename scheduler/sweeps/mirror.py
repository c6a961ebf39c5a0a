"""RQ's books: they follow the record. What a person asked for through RQ's tools is a wish, and is carried out."""

import uuid
from datetime import UTC, datetime

import structlog
from redis.asyncio import Redis

from agent.errors import BrokenRecord, RunNotFound
from agent.events import RunCancelled, RunResumed, encode
from agent.redaction import redact
from scheduler.lifecycle import Status
from scheduler.records import RunRecord
from scheduler.replies import Outcome
from scheduler.rq_bridge import Mirrored, Standing, cancelled_through_rq, forget_cancelled, mirror
from scheduler.scripting import run
from scheduler.store import Store
from scheduler.sweeps.rings import Ringer


class Mender:
    """Mends RQ's books after our records, one run at a time."""

    def __init__(self, redis: Redis, store: Store, ringer: Ringer) -> None:
        self._redis = redis
        self._store = store
        self._ringer = ringer
        self._log = structlog.get_logger("pawl.mirror")

    async def mend(self, run_id: str) -> None:
        """RQ shows where the run stands, unless it holds a wish; that is then carried out.

        Raises:
            StoreUnavailable: Redis did not answer; a sweep mends later.
        """
        try:
            record = await self._store.info(run_id)
        except RunNotFound:
            return
        except BrokenRecord as broken:
            self._log.error("record_broken", run=run_id, error=str(broken))
            return
        if record.status is Status.RUNNING:
            return  # its worker tells RQ, with the execution that only it knows
        retention = self._store.scripts.policy.run_retention_ms // 1000
        await self.fulfil(run_id, await run(self._redis, mirror(self._store.keys, standing_of(record, retention))))

    async def fulfil(self, run_id: str, answer: Mirrored) -> None:
        """Carries out what a person asked for through RQ's tools."""
        if answer is Mirrored.CANCEL_WISHED:
            await self.cancel(run_id)
        elif answer is Mirrored.RESUME_WISHED:
            event = encode(RunResumed())
            reply = await run(
                self._redis, self._store.scripts.resume(run_id, sid=f"rq-{uuid.uuid4().hex}", event=event)
            )
            self._log.info("resumed_through_rq", run=run_id, outcome=reply.code)
            if reply.code == "resumed":
                await self._ringer.ring_next(run_id)
        elif answer is Mirrored.NO_JOB:
            await self._ringer.ring_next(run_id)

    async def cancel(self, run_id: str) -> None:
        """Cancels a run whose job was cancelled or stopped through RQ."""
        call = self._store.scripts.cancel(run_id, sid=f"rq-{uuid.uuid4().hex}", event=encode(RunCancelled(reason="rq")))
        reply = await run(self._redis, call)
        self._log.info("cancelled_through_rq", run=run_id, outcome=reply.code)
        if isinstance(reply, Outcome) and reply.promoted:
            await self._ringer.ring_next(reply.promoted)

    async def hear_cancels(self, queue: str) -> None:
        """Cancels the runs whose jobs a person cancelled in RQ's tools."""
        listed = await cancelled_through_rq(self._redis, queue)
        if not listed:
            return
        records = await self._store.infos(listed)
        over: list[str] = []
        for run_id, record in zip(listed, records, strict=True):
            if isinstance(record, RunRecord) and not record.ended:
                await self.cancel(run_id)
            elif not isinstance(record, RunRecord) or record.status is not Status.CANCELLED:
                over.append(run_id)
        await forget_cancelled(self._redis, queue, over)


def standing_of(record: RunRecord, retention_seconds: int) -> Standing:
    """Where a run stands, in the words of the RQ bridge."""
    return Standing(
        run_id=record.id,
        queue=record.queue,
        status=record.status,
        fence=record.fence,
        since=datetime.fromtimestamp(record.status_at / 1000, UTC),
        retention_seconds=retention_seconds,
        due=None if record.not_before is None else record.not_before / 1000,
        behind=record.behind,
        reason=redact(record.reason),
    )
