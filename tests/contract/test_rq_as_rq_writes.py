"""The mirror beside RQ's own code: for each transition both leave the same data, but for the differences named here.

If a new version of RQ writes other keys or fields, this fails.
"""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
import redis
from rq import Queue
from rq.executions import Execution
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from scheduler.lifecycle import Status
from scheduler.rq_bridge import Mirrored, describe
from tests.support.rq_books import FACE, RETENTION, WORKER, Books, rq_data
from tests.support.runs import Desk

RUN = "0-0199aa"
DUE = datetime(2090, 1, 1, tzinfo=UTC)

Data = dict[str, tuple[str, Any]]


class Stock:
    """RQ itself, with the same worker and the same job."""

    def __init__(self, client: Any) -> None:
        client.flushall()
        self.redis = client
        self.worker = BaseWorker(["default"], name=WORKER, connection=client, serializer=JSONSerializer)
        self.worker.register_birth()
        self.queue = Queue("default", connection=client, serializer=JSONSerializer)
        self.job: Job = cast(Any, self.queue).enqueue_call(
            "worker.rq_entry.run",
            (RUN,),
            job_id=RUN,
            timeout=-1,
            result_ttl=RETENTION,
            failure_ttl=RETENTION,
            description=describe("calculator", "Add 2 and 3", RUN),
            meta={"agent": "calculator", "session": "", "tenant": ""},
            unique=True,
        )
        self.execution: Execution | None = None

    def start(self) -> Execution:
        Queue.lmove(self.redis, self.queue.key, None)
        self.execution = self.worker.prepare_execution(self.job)
        self.worker.prepare_job_execution(self.job, remove_from_intermediate_queue=True)
        return self.execution

    def finish(self) -> None:
        execution = self.start()
        self.worker.handle_execution_ended(self.job, self.queue, 60)
        self.worker.handle_job_success(self.job, self.queue, self.queue.started_job_registry, execution)

    def fail(self) -> None:
        execution = self.start()
        self.worker.handle_execution_ended(self.job, self.queue, 60)
        cast(Any, self.worker).handle_job_failure(self.job, self.queue, exc_string="boom", execution=execution)

    def schedule(self) -> None:
        execution = self.start()
        with self.redis.pipeline() as pipeline:
            self.worker.cleanup_execution(self.job, pipeline, execution)
            self.queue.schedule_job(self.job, DUE, pipeline=pipeline)
            pipeline.execute()

    def cancel(self) -> None:
        self.job.cancel()


class Ours:
    """The same by the mirror."""

    def __init__(self, client: Any, execution_id: str) -> None:
        self.execution_id = execution_id
        self.books = Books(Desk(client))
        self.books.create(RUN)

    def start(self) -> None:
        self.books.claim(RUN, self.execution_id)

    def end(self, status: Status, **fields: Any) -> None:
        owner, execution = self.books.claim(RUN, self.execution_id)
        owner.commit(to=status)
        assert self.books.mirror(RUN, execution, FACE, **fields) is Mirrored.DONE

    def finish(self) -> None:
        self.end(Status.COMPLETED)

    def fail(self) -> None:
        self.end(Status.FAILED, reason="boom")

    def schedule(self) -> None:
        self.end(Status.WAITING, due=DUE.timestamp())

    def cancel(self) -> None:
        self.books.desk.cancel(RUN)
        assert self.books.mirror(RUN) is Mirrored.DONE


def both(client: redis.Redis, step: str) -> tuple[Data, Data]:
    """RQ's data after RQ's own step and after ours."""
    stock = Stock(client)
    if step:
        getattr(stock, step)()
    theirs = of_the_run(client)
    ours = Ours(client, stock.execution.id if stock.execution else "")
    if step:
        getattr(ours, step)()
    return theirs, of_the_run(client)


def of_the_run(client: redis.Redis) -> Data:
    """RQ's data but for the worker's registration; of the worker itself what runs change."""
    data = {key: value for key, value in rq_data(client).items() if not key.startswith("rq:workers")}
    life, worker = data[FACE.key]
    changing = (b"state", b"successful_job_count", b"failed_job_count")
    return data | {FACE.key: (life, {name: worker[name] for name in changing if name in worker})}


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    return cast(Any, redis.Redis).from_url(redis_url, protocol=2)


def test_a_new_job(client: redis.Redis) -> None:
    theirs, ours = both(client, "")
    assert ours == theirs


def test_a_start(client: redis.Redis) -> None:
    theirs, ours = both(client, "start")

    # The list of executions outlives the executions, so that a later owner still knows what to clear away.
    assert theirs.pop(f"rq:executions:{RUN}")[1] == ours.pop(f"rq:executions:{RUN}")[1]
    assert ours == theirs


def test_an_end_in_success(client: redis.Redis) -> None:
    theirs, ours = both(client, "finish")
    assert ours == theirs


def test_an_end_in_failure(client: redis.Redis) -> None:
    theirs, ours = both(client, "fail")
    assert ours == theirs


def test_a_wait(client: redis.Redis) -> None:
    theirs, ours = both(client, "schedule")

    # Nobody works on a waiting run, so RQ's command to stop its job goes to nobody.
    theirs[f"rq:job:{RUN}"][1][b"worker_name"] = b""
    assert ours == theirs


def test_a_cancel(client: redis.Redis) -> None:
    theirs, ours = both(client, "cancel")

    # RQ lets a cancelled job stay for ever.
    job = f"rq:job:{RUN}"
    assert (theirs[job][0], ours[job][0]) == ("stays", "expires")
    theirs[job] = ("expires", theirs[job][1] | {b"ended_at": b"then", b"last_heartbeat": b"then"})
    assert ours == theirs


def test_every_status_that_rq_has_is_known_here() -> None:
    used = {"queued", "started", "scheduled", "deferred", "finished", "failed", "canceled"}
    read = {"stopped"}  # a wish
    unused = {"created", "rate_limited", "ready_to_enqueue"}
    assert {status.value for status in JobStatus} == used | read | unused
