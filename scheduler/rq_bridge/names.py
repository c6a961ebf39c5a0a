"""What RQ calls things in Redis, asked of RQ itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

from rq.defaults import RQ_KEY_PREFIX
from rq.executions import ExecutionRegistry
from rq.intermediate_queue import IntermediateQueue
from rq.job import Job, JobStatus
from rq.queue import Queue
from rq.registry import (
    CanceledJobRegistry,
    DeferredJobRegistry,
    FailedJobRegistry,
    FinishedJobRegistry,
    ScheduledJobRegistry,
    StartedJobRegistry,
)
from rq.results import Result


class QueueKeys(NamedTuple):
    """The keys of one queue: its list, its intermediate list, its registries. The order is that of rq_mirror.lua."""

    queue: str
    intermediate: str
    started: str
    scheduled: str
    deferred: str
    finished: str
    failed: str
    canceled: str


@lru_cache(maxsize=1024)
def queue_keys(queue: str) -> QueueKeys:
    """The keys of a queue."""
    key = Queue.redis_queue_namespace_prefix + queue
    return QueueKeys(
        key,
        IntermediateQueue.get_intermediate_queue_key(key),
        StartedJobRegistry.key_template.format(queue),
        ScheduledJobRegistry.key_template.format(queue),
        DeferredJobRegistry.key_template.format(queue),
        FinishedJobRegistry.key_template.format(queue),
        FailedJobRegistry.key_template.format(queue),
        CanceledJobRegistry.key_template.format(queue),
    )


class JobKeys(NamedTuple):
    """The keys of one job: its hash, the ids of its executions, its results. The order is that of rq_mirror.lua."""

    job: str
    executions: str
    results: str


def job_keys(run_id: str) -> JobKeys:
    """The keys of a run's job."""
    results: str = cast("Any", Result).get_key(run_id)
    return JobKeys(Job.key_for(run_id), ExecutionRegistry.key_template.format(run_id), results)


def execution_prefix(run_id: str) -> str:
    """What the id of one of its executions completes to the key of that execution."""
    return f"{RQ_KEY_PREFIX}:execution:{run_id}:"


def ring_keys(run_id: str, queue: str) -> tuple[str, str, str, str]:
    """What the script `ring` touches of RQ: the queue, its intermediate list, its scheduled registry, the job."""
    keys = queue_keys(queue)
    return keys.queue, keys.intermediate, keys.scheduled, Job.key_for(run_id)


def ring_words() -> tuple[str, ...]:
    """What the script `ring` reads and writes in the job: the field of its status, queued, and the words for cancelled."""
    return "status", JobStatus.QUEUED.value, JobStatus.CANCELED.value, JobStatus.STOPPED.value
