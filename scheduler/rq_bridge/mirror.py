"""RQ shows where a run stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from rq.executions import Execution
from rq.job import JobStatus
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.utils import now, utcformat

from scheduler.lifecycle import LIVE, Status
from scheduler.rq_bridge.names import QueueKeys, execution_prefix, job_keys, queue_keys
from scheduler.rq_bridge.scripts import MIRROR, flat
from scheduler.scripting import ScriptCall
from scheduler.wire import text

if TYPE_CHECKING:
    from scheduler.keys import Keys

EXECUTION_SECONDS: Final = 60
"""How long RQ believes in an execution after its worker last spoke of it."""

NO_DEADLINE: Final = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
"""When a wait without a deadline is due in RQ's scheduled registry: never, for RQ's schedulers."""

_NO_CONNECTION: Final[Any] = object()  # RQ's objects ask for one; here they only write things down


class Mirrored(StrEnum):
    """What became of a mirroring."""

    DONE = "done"
    AGAIN = "again"
    """The record has moved on, and whoever moved it mirrors that. Nothing was written."""
    NO_JOB = "no_job"
    """Someone deleted the job. That of a live run is restored by a sweep; that of an ended one is not missed."""
    CANCEL_WISHED = "cancel"
    """The job of a live run was cancelled or stopped through RQ: cancel the run. Nothing was written."""
    RESUME_WISHED = "resume"
    """The job of a failed run, which RQ knew as failed, was requeued: resume the run. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands, as its record says.

    Args:
        fence: The record's. With the status it names one stay in that status.
        since: When the run came to the status.
        due: When its wait ends or, if it is queued with a delay, its start; Unix seconds. None: no deadline, no delay.
        behind: Queued behind another run of its session.
        reason: Why it failed, to be read by people; the caller has redacted it.
    """

    run_id: str
    queue: str
    status: Status
    fence: int
    since: datetime
    retention_seconds: int
    due: float | None = None
    behind: bool = False
    reason: str = ""


class WorkerFace(NamedTuple):
    """What RQ shows of the worker that begins or ends an execution."""

    key: str
    executions_key: str
    state: str


def execution_of(run_id: str, activation: str, worker: str, since: datetime) -> Execution:
    """An activation as RQ knows it: an execution of the same id."""
    execution = Execution(activation, run_id, connection=_NO_CONNECTION, worker_name=worker)
    execution.created_at = since
    return execution


def mirror(
    keys: Keys, standing: Standing, execution: Execution | None = None, worker: WorkerFace | None = None
) -> ScriptCall[Mirrored]:
    """RQ shows where a run stands; what contradicts it is cleared away. May be sent again at any time.

    Args:
        execution: If the run is running, its activation: RQ believes in it for another `EXECUTION_SECONDS`.
            Else the activation that the caller has just ended, if it has.
        worker: The caller, if it is a worker.

    Raises:
        ValueError: The run is running, and no execution is given.
    """
    if standing.status is Status.RUNNING:
        shown = _running(standing, execution)
    elif standing.status in LIVE:
        shown = _queued_or_waiting(standing)
    else:
        shown = _ended(standing, execution)
    worked = (standing.since - execution.created_at).total_seconds() if execution else 0.0
    of_run = keys.run(standing.run_id), keys.mirror, *job_keys(standing.run_id)
    of_queue = queue_keys(standing.queue)
    of_worker = (worker.key, worker.executions_key) if worker else ()
    arguments = (
        *(standing.run_id, standing.status.value, standing.fence),
        len(of_run) + 1 + QueueKeys._fields.index(shown.registry) if shown.registry else 0,
        str(shown.score),
        "" if standing.status in LIVE else standing.retention_seconds,
        execution_prefix(standing.run_id),
        execution.id if execution else "",
        EXECUTION_SECONDS if standing.status is Status.RUNNING else "",
        *(worker.state if worker else "", shown.counter, str(worked)),
        *(2 * len(shown.job), *flat(shown.job), *flat(shown.entry)),
    )
    return ScriptCall(MIRROR, (*of_run, *of_queue, *of_worker), arguments, lambda reply: Mirrored(text(reply[0])))


class _Shown(NamedTuple):
    """What RQ is to hold of a run.

    Args:
        job: Fields of the job that change.
        registry: The one that lists the job, by its name in `QueueKeys`.
        score: The job's score there; "" where it is the end of the retention.
        entry: The fields of the execution or of the result.
        counter: The worker's, which a result raises.
    """

    job: Mapping[str, Any]
    registry: str = ""
    score: float | str = ""
    entry: Mapping[str, Any] = {}
    counter: str = ""


def _running(standing: Standing, execution: Execution | None) -> _Shown:
    if execution is None:
        raise ValueError(f"Run {standing.run_id} is running: in which execution?")
    execution.last_heartbeat = now()
    job = {
        "status": JobStatus.STARTED,
        "started_at": utcformat(execution.created_at),
        "last_heartbeat": utcformat(execution.last_heartbeat),
        "ended_at": "",
        "worker_name": execution.worker_name,
    }
    return _Shown(job, entry=cast("Any", execution).serialize())


def _queued_or_waiting(standing: Standing) -> _Shown:
    def job(status: JobStatus) -> dict[str, Any]:
        return {"status": status, "worker_name": ""}

    if standing.behind:
        return _Shown(job(JobStatus.DEFERRED), "deferred", standing.since.timestamp())
    if standing.status is Status.WAITING or (standing.due or 0) > now().timestamp():
        return _Shown(job(JobStatus.SCHEDULED), "scheduled", standing.due or NO_DEADLINE)
    return _Shown(job(JobStatus.QUEUED))


def _ended(standing: Standing, execution: Execution | None) -> _Shown:
    job = {"ended_at": utcformat(standing.since), "last_heartbeat": utcformat(standing.since)}
    if standing.status is Status.CANCELLED:
        return _Shown({"status": JobStatus.CANCELED, **job}, "canceled")
    if standing.status is Status.COMPLETED:
        result = _result(standing, execution, Result.Type.SUCCESSFUL)
        return _Shown({"status": JobStatus.FINISHED, **job}, "finished", "", result, "successful_job_count")
    result = _result(standing, execution, Result.Type.FAILED)
    return _Shown({"status": JobStatus.FAILED, **job}, "failed", "", result, "failed_job_count")


def _result(standing: Standing, execution: Execution | None, kind: Result.Type) -> dict[str, Any]:
    result: Result = cast("Any", Result)(
        standing.run_id,
        kind,
        _NO_CONNECTION,
        exc_string=_harmless(standing.reason) if kind is Result.Type.FAILED else None,
        worker_name=execution.worker_name if execution else "",
        serializer=JSONSerializer,
        execution_id=execution.id if execution else None,
        execution_started_at=execution.created_at if execution else None,
        execution_ended_at=standing.since,
    )
    return result.serialize()


def _harmless(reason: str) -> str:
    """As it reads, but no markup: RQ's dashboards put it into their pages as it is."""
    return reason.replace("<", "‹").replace(">", "›")
