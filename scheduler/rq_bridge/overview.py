"""What RQ's books say of workers and queues, to be shown to people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from rq.executions import WORKER_EXECUTIONS_KEY_TEMPLATE
from rq.queue import Queue
from rq.suspension import WORKERS_SUSPENDED
from rq.utils import utcparse
from rq.worker import BaseWorker

from scheduler.rq_bridge.names import job_keys, queue_keys
from scheduler.wire import ask, number, pairs, text, texts

if TYPE_CHECKING:
    from redis.asyncio import Redis

PREFIX_FIELD: Final = "pawl_keys"
"""In a worker's hash: what begins the keys of its deployment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker process that RQ knows.

    Attributes:
        state: idle, busy or suspended.
        runs: Runs that it moves now.
        completed, failed: Activations in which a run ended, since it was started.
        prefix: What begins the keys of its deployment; empty for a worker that is not Pawl's.
    """

    name: str
    host: str
    process_id: int
    queues: tuple[str, ...]
    state: str
    runs: int
    completed: int
    failed: int
    started_at: datetime | None
    seen_at: datetime | None
    prefix: str = ""


async def workers(redis: Redis) -> list[WorkerInfo]:
    """All workers, by name. One that died is forgotten by RQ after a minute.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    (members,) = await ask(redis, ("SMEMBERS", BaseWorker.redis_workers_keys))
    keys = sorted(texts(members))
    prefix = BaseWorker.redis_worker_namespace_prefix
    books = await ask(redis, *(("HGETALL", key) for key in keys))
    held = await ask(
        redis, *(("SCARD", WORKER_EXECUTIONS_KEY_TEMPLATE.format(key.removeprefix(prefix))) for key in keys)
    )
    found: list[WorkerInfo] = []
    for key, book, runs in zip(keys, books, held, strict=True):
        fields = {text(name): text(value) for name, value in pairs(book)}
        if not fields or "death" in fields:
            continue  # RQ drops it from its list the next time that a worker comes or goes
        found.append(
            WorkerInfo(
                name=key.removeprefix(prefix),
                host=fields.get("hostname", ""),
                process_id=int(fields.get("pid") or 0),
                queues=tuple(fields.get("queues", "").split(",")),
                state=fields.get("state", ""),
                runs=number(runs),
                completed=int(fields.get("successful_job_count") or 0),
                failed=int(fields.get("failed_job_count") or 0),
                started_at=_time(fields.get("birth")),
                seen_at=_time(fields.get("last_heartbeat")),
                prefix=fields.get(PREFIX_FIELD, ""),
            )
        )
    return found


async def suspended(redis: Redis) -> bool:
    """Whether `rq suspend` stands.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    (found,) = await ask(redis, ("EXISTS", WORKERS_SUSPENDED))
    return bool(found)


async def queue_lengths(redis: Redis) -> dict[str, int]:
    """The queues that RQ knows, and how many runs ring in each.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    (members,) = await ask(redis, ("SMEMBERS", Queue.redis_queues_keys))
    keys = sorted(texts(members))
    lengths = await ask(redis, *(("LLEN", key) for key in keys))
    return {
        key.removeprefix(Queue.redis_queue_namespace_prefix): number(length)
        for key, length in zip(keys, lengths, strict=True)
    }


async def forget_job(redis: Redis, run_id: str, queue: str) -> None:
    """Takes the job of a deleted run out of RQ's books.

    Raises:
        StoreUnavailable: Redis cannot be reached; RQ forgets it when its retention is over.
    """
    keys = queue_keys(queue)
    listed = [("ZREM", key, run_id) for key in keys[2:]]
    rung = [("LREM", key, 0, run_id) for key in keys[:2]]
    await ask(redis, ("DEL", *job_keys(run_id)), *rung, *listed)


def _time(value: str | None) -> datetime | None:
    return utcparse(value) if value else None
