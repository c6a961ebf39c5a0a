"""RQ, as far as Pawl uses it: the one job of a run, the queues that ring, and what RQ's tools show. Only here is rq imported.

RQ follows the record of a run and never leads. `mirror` makes RQ show what the record says, in one script that looks at
the record in the same moment; what a person changed through RQ comes back as a wish and is not overwritten.
"""

from scheduler.rq_bridge.jobs import ENTRY_POINT, RunJob, describe, enqueue, restore_job
from scheduler.rq_bridge.lists import Popped, cancelled_through_rq, forget_cancelled, forget_expired, pop
from scheduler.rq_bridge.mirror import (
    EXECUTION_SECONDS,
    NO_DEADLINE,
    Mirrored,
    Standing,
    WorkerFace,
    execution_of,
    mirror,
)
from scheduler.rq_bridge.names import QueueKeys, queue_keys, ring_keys, ring_words
from scheduler.rq_bridge.overview import PREFIX_FIELD, WorkerInfo, forget_job, queue_lengths, suspended, workers

__all__ = [
    "ENTRY_POINT",
    "EXECUTION_SECONDS",
    "NO_DEADLINE",
    "PREFIX_FIELD",
    "Mirrored",
    "Popped",
    "QueueKeys",
    "RunJob",
    "Standing",
    "WorkerFace",
    "WorkerInfo",
    "cancelled_through_rq",
    "describe",
    "enqueue",
    "execution_of",
    "forget_cancelled",
    "forget_expired",
    "forget_job",
    "mirror",
    "pop",
    "queue_keys",
    "queue_lengths",
    "restore_job",
    "ring_keys",
    "ring_words",
    "suspended",
    "workers",
]
