"""A desk whose runs have jobs in RQ: what the mirror makes of them, and what RQ's own code makes of jobs of its own."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast

from rq import Queue
from rq.executions import Execution
from rq.job import Job
from rq.serializers import JSONSerializer

from scheduler.rq_bridge import Mirrored, RunJob, Standing, WorkerFace, enqueue, execution_of, mirror
from tests.support.runs import Desk, Owner
from tests.support.snapshot import take

RETENTION = 3600
WORKER = "host:1:aa"
FACE = WorkerFace(f"rq:worker:{WORKER}", f"rq:worker:{WORKER}:executions", "busy")

_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z|[1-9]\d{9}(\.\d+)?")


def run_job(run: str, **fields: Any) -> RunJob:
    """What a client says of a run."""
    given: dict[str, Any] = {"queue": "default", "agent": "calculator", "task": "Add 2 and 3"}
    return RunJob(run_id=run, retention_seconds=RETENTION, **(given | fields))


class Books:
    """RQ's data beside the records of a desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.redis = desk.redis
        self.queue = Queue("default", connection=desk.redis, serializer=JSONSerializer)
        self.redis.hset(FACE.key, "birth", "2026-01-01T00:00:00.000000Z")
        self.redis.expire(FACE.key, 60)

    def create(self, run: str, **fields: Any) -> None:
        """A queued run that has rung."""
        self.desk.create(run, **fields)
        assert self.desk.do(enqueue(self.desk.keys, run_job(run)))

    def claim(self, run: str, activation: str = "A") -> tuple[Owner, Execution]:
        """A running run, taken from its queue, of which RQ knows."""
        self.redis.lmove(self.queue.key, self.queue.intermediate_queue_key)
        owner = self.desk.claim(run, activation)
        execution = execution_of(run, activation, WORKER, datetime.now(UTC))
        assert self.mirror(run, execution, FACE) is Mirrored.DONE
        return owner, execution

    def standing(self, run: str, **fields: Any) -> Standing:
        """Where the record says that a run stands."""
        record = self.desk.record(run)
        known: dict[str, Any] = {
            "queue": record.queue,
            "status": record.status,
            "fence": record.fence,
            "since": datetime.now(UTC),
            "behind": record.behind,
            "retention_seconds": RETENTION,
        }
        return Standing(run_id=run, **(known | fields))

    def mirror(
        self, run: str, execution: Execution | None = None, worker: WorkerFace | None = None, **fields: Any
    ) -> Mirrored:
        return self.send(self.standing(run, **fields), execution, worker)

    def send(
        self, standing: Standing, execution: Execution | None = None, worker: WorkerFace | None = None
    ) -> Mirrored:
        return self.desk.do(mirror(self.desk.keys, standing, execution, worker))

    def job(self, run: str) -> Job:
        return cast(Any, Job).fetch(run, connection=self.redis, serializer=JSONSerializer)

    def listed(self, run: str) -> set[str]:
        """Where RQ lists a run: its queue, its intermediate list, its registries."""
        queue = self.queue
        lists = {"queue": queue.key, "intermediate": queue.intermediate_queue_key}
        found = {name for name, key in lists.items() if run.encode() in self.redis.lrange(key, 0, -1)}
        started = [member.partition(b":")[0] for member in self.redis.zrange("rq:wip:default", 0, -1)]
        if run.encode() in started:
            found.add("started")
        for name in ("scheduled", "deferred", "finished", "failed", "canceled"):
            if self.redis.zscore(f"rq:{name}:default", run) is not None:
                found.add(name)
        return found

    def data(self) -> dict[str, tuple[str, Any]]:
        return rq_data(self.redis)


def rq_data(client: Any) -> dict[str, tuple[str, Any]]:
    """Of each key of RQ, whether it expires, and what it holds; every moment in that reads "then"."""
    held = take(client, "rq:*").keys
    return {key: ("expires" if one.expires_at >= 0 else "stays", _timeless(one.content)) for key, one in held.items()}


def _timeless(value: Any) -> Any:
    """In the shape that the key's content has."""
    match value:
        case bytes():
            return b"then" if _MOMENT.fullmatch(value) else value
        case float():
            return "then" if value > 1e9 else value
        case dict():
            return {name: _timeless(item) for name, item in cast("dict[bytes, bytes]", value).items()}
        case [(_, dict()), *_]:
            return [_timeless(fields) for _, fields in cast("list[tuple[bytes, Any]]", value)]
        case list() | tuple():
            return [_timeless(item) for item in cast("list[Any]", value)]
        case _:
            return value
