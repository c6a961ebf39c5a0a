"""RQ's books: they follow the record. What a person asked for through RQ's tools is a wish, and is carried out."""

import uuid
from datetime import UTC, datetime

from redis.asyncio import Redis

from agent.errors import BrokenRecord, RunNotFound
from agent.events import RunResumed, encode
from agent.redaction import redact
from scheduler.lifecycle import Status
from scheduler.loggers import get_logger
from scheduler.records import RunRecord
from scheduler.replies import ToRing
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
        self._retention = store.scripts.policy.run_retention_ms // 1000
        self._log = get_logger("pawl.mirror")

    async def mend(self, run_id: str) -> None:
        """RQ shows where the run stands, unless it holds a wish; that is then carried out. Passes over what cannot be read.

        Raises:
            StoreUnavailable: Redis did not answer; a sweep mends later.
        """
        try:
            record = await self._store.info(run_id)
            if record.status is not Status.RUNNING:  # its worker tells RQ, with the execution that only it knows
                await self.fulfil(run_id, await self._mirror(record))
        except RunNotFound:
            return
        except BrokenRecord as broken:
            self._log.error("record_broken", run=run_id, error=str(broken))

    async def fulfil(self, run_id: str, answer: Mirrored) -> None:
        """Carries out what a person asked for through RQ's tools."""
        if answer is Mirrored.CANCEL_WISHED:
            await self._ringer.cancel(run_id)
        elif answer is Mirrored.RESUME_WISHED:
            event = encode(RunResumed())
            reply = await run(
                self._redis, self._store.scripts.resume(run_id, sid=f"rq-{uuid.uuid4().hex}", event=event)
            )
            self._log.info("resumed_through_rq", run=run_id, outcome=reply.code)
            if reply.code == "resumed":
                await self._ringer.ring_next(run_id)
        elif answer is Mirrored.NO_JOB:
            await self._restore(run_id)

    async def _mirror(self, record: RunRecord) -> Mirrored:
        return await run(self._redis, mirror(self._store.keys, standing_of(record, self._retention)))

    async def _restore(self, run_id: str) -> None:
        """Makes the job of a live run again, which somebody deleted, and shows in it where the run stands."""
        record = await self._store.info(run_id)
        if record.ended:
            return
        await self._ringer.restore(record)
        if record.status is Status.QUEUED:
            await self._ringer.ring([ToRing(run_id, record.queue)])
        elif record.status is Status.WAITING:
            await self._mirror(record)

    async def hear_cancels(self, queue: str) -> None:
        """Cancels the runs whose jobs a person cancelled in RQ's tools."""
        listed = await cancelled_through_rq(self._redis, queue)
        if not listed:
            return
        gone: list[str] = []
        for run_id, record in zip(listed, await self._store.infos(listed), strict=True):
            if not isinstance(record, RunRecord):
                gone.append(run_id)
            elif record.ended:
                await self._mirror(record)  # listed where it belongs, until its retention is over
            else:
                await self._ringer.cancel(run_id)
        await forget_cancelled(self._redis, queue, gone)


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
