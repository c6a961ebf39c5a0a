"""The one RQ job of a run. It carries the run's id, and a few words for people."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from rq.job import Job, JobStatus
from rq.queue import Queue
from rq.serializers import JSONSerializer
from rq.utils import now

from agent.redaction import redact
from agent.text import bounded
from scheduler.rq_bridge.names import queue_keys
from scheduler.rq_bridge.scripts import MAKE_JOB, flat
from scheduler.scripting import ScriptCall

if TYPE_CHECKING:
    from scheduler.keys import Keys

ENTRY_POINT: Final = "worker.rq_entry.run"
"""The function that a job names. Only a stock worker of RQ would call it."""

_NO_CONNECTION: Final[Any] = object()  # RQ's job asks for one; here it only writes itself down


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """What RQ's tools can read about a run. Of the task only its first plain words."""

    run_id: str
    queue: str
    agent: str
    task: str
    session: str = ""
    tenant: str = ""
    retention_seconds: int


def enqueue(keys: Keys, job: RunJob) -> ScriptCall[bool]:
    """Makes the job of a run and rings once. False, and nothing is done, if the job is there or the run is not."""
    return _make(keys, job, push="R")


def restore_job(keys: Keys, job: RunJob) -> ScriptCall[bool]:
    """Makes the job of a run where it is missing, and does not ring. False, and nothing is done, as with `enqueue`."""
    return _make(keys, job, push="N")


def _make(pawl: Keys, job: RunJob, push: Literal["R", "N"]) -> ScriptCall[bool]:
    """RQ's own script looks whether the job is there, writes it and pushes it."""
    keys = (Job.key_for(job.run_id), queue_keys(job.queue).queue, Queue.redis_queues_keys, pawl.run(job.run_id))
    arguments = (job.run_id, push, -1, *flat(_fields_of(job)))
    return ScriptCall(MAKE_JOB, keys, arguments, bool)


def _fields_of(job: RunJob) -> dict[str, Any]:
    made: Any = copy(_pattern(job.queue, job.retention_seconds))
    made.id, made.args = job.run_id, (job.run_id,)
    made.description = describe(job.agent, job.task, job.run_id)
    made.meta = {"agent": _plain(job.agent), "session": _plain(job.session), "tenant": _plain(job.tenant)}
    made.created_at = made.enqueued_at = now()
    return made.to_dict()


@lru_cache(maxsize=100)  # RQ takes longer to make a job than all else that a submission does
def _pattern(queue: str, retention_seconds: int) -> Job:
    return cast("Any", Job).create(
        ENTRY_POINT,
        connection=_NO_CONNECTION,
        origin=queue,
        status=JobStatus.QUEUED,
        timeout=-1,  # a lease says whether a run lives, never a limit of time
        result_ttl=retention_seconds,
        failure_ttl=retention_seconds,
        serializer=JSONSerializer,
    )


_DESCRIPTION_LENGTH: Final = 40
_LABEL_LENGTH: Final = 64
_LOOKED_AT: Final = 200
_UNPLAIN: Final = re.compile(r"[^\w .,:;!?+*/=%()#@’-]")


def describe(agent: str, task: str, run_id: str) -> str:
    """The job's description: "calculator: Add 200 and 10…".

    RQ's dashboards put it into their pages as it is. So the task is cut at the first character that a page could take
    for markup; where no word is left, the run's id stands instead.
    """
    words = " ".join(redact(task[:_LOOKED_AT]).replace("'", "’").split())
    plain = _UNPLAIN.split(words, maxsplit=1)[0].rstrip()
    if plain and len(plain) < len(words):
        plain += "…"
    return f"{_plain(agent)}: {bounded(plain, _DESCRIPTION_LENGTH) or run_id}"


def _plain(label: str) -> str:
    return bounded(_UNPLAIN.sub("", label), _LABEL_LENGTH)
