"""What RQ's tools show of a run after each of its changes: PROTOCOL B2 to B5 and B16."""

import time
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from rq.job import JobStatus
from rq.registry import StartedJobRegistry

from scheduler.lifecycle import Status
from scheduler.rq_bridge import (
    EXECUTION_SECONDS,
    NO_DEADLINE,
    Mirrored,
    enqueue,
    execution_of,
    restore_job,
)
from tests.support.rq_books import FACE, RETENTION, WORKER, Books, run_job
from tests.support.runs import Desk

RUN = "0-0199aa"


@pytest.fixture
def books(desk: Desk) -> Books:
    return Books(desk)


# ---- each standing --------------------------------------------------------------------------------------------------


def test_a_new_run_is_one_queued_job_with_json_and_an_id_only(books: Books) -> None:
    books.create(RUN)

    job = books.job(RUN)
    assert (job.func_name, cast(Any, job).args, job.kwargs) == ("worker.rq_entry.run", [RUN], {})
    assert job.get_status() is JobStatus.QUEUED
    assert (job.timeout, job.result_ttl, job.failure_ttl, job.retries_left) == (-1, RETENTION, RETENTION, None)
    assert job.meta == {"agent": "calculator", "session": "", "tenant": ""}
    assert books.listed(RUN) == {"queue"}
    assert books.redis.ttl(f"rq:job:{RUN}") == -1


def test_a_job_is_made_once_and_rings_once(books: Books) -> None:
    books.create(RUN)
    books.claim(RUN)
    before = books.data()

    assert not books.desk.do(enqueue(books.desk.keys, run_job(RUN, task="another")))
    assert not books.desk.do(restore_job(books.desk.keys, run_job(RUN)))
    assert books.data() == before


def test_a_restored_job_does_not_ring(books: Books) -> None:
    books.desk.create(RUN)

    assert books.desk.do(restore_job(books.desk.keys, run_job(RUN)))
    assert books.listed(RUN) == set()


def test_a_running_run_is_started_in_an_execution_of_its_worker(books: Books) -> None:
    books.create(RUN)
    books.claim(RUN)

    job = books.job(RUN)
    assert job.get_status() is JobStatus.STARTED
    assert job.worker_name == WORKER
    assert job.started_at is not None
    assert [execution.id for execution in job.get_executions()] == ["A"]
    assert books.listed(RUN) == {"started"}
    assert books.redis.smembers(FACE.executions_key) == {f"{RUN}:A".encode()}
    assert books.redis.hget(FACE.key, "state") == b"busy"


@pytest.mark.parametrize("due", [None, 2_000_000_000.0])
def test_a_waiting_run_is_scheduled_and_without_a_deadline_for_ever(books: Books, due: float | None) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.wait(wait="reply")

    assert books.mirror(RUN, execution, FACE, due=due) is Mirrored.DONE
    assert books.job(RUN).get_status() is JobStatus.SCHEDULED
    assert books.listed(RUN) == {"scheduled"}
    assert books.redis.zscore("rq:scheduled:default", RUN) == (due or NO_DEADLINE)
    assert not books.redis.exists(FACE.executions_key)


def test_a_delayed_run_is_scheduled_and_one_behind_another_deferred(books: Books) -> None:
    books.desk.create("0-first", session="s")
    books.create(RUN, session="s")

    assert books.mirror(RUN) is Mirrored.DONE
    assert books.job(RUN).get_status() is JobStatus.DEFERRED
    assert "deferred" in books.listed(RUN)
    books.create("0-late", at_ms=books.desk.now + 1000)
    assert books.mirror("0-late", due=2_000_000_000.0) is Mirrored.DONE
    assert books.job("0-late").get_status() is JobStatus.SCHEDULED


def test_a_delayed_run_whose_time_has_come_is_queued(books: Books) -> None:
    books.create(RUN, at_ms=books.desk.now)

    assert books.mirror(RUN, due=1_000_000_000.0) is Mirrored.DONE
    assert books.job(RUN).get_status() is JobStatus.QUEUED
    assert books.listed(RUN) == {"queue"}


def test_a_run_given_back_is_queued_and_its_execution_gone(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.QUEUED)

    assert books.mirror(RUN, execution, FACE) is Mirrored.DONE
    assert books.job(RUN).get_status() is JobStatus.QUEUED
    assert books.listed(RUN) == set(), "the ring puts it into the queue"
    assert books.job(RUN).worker_name is None
    assert books.desk.ring(RUN).code == "rung"
    assert books.listed(RUN) == {"queue"}


@pytest.mark.parametrize(
    ("status", "registry", "shown"),
    [
        (Status.COMPLETED, "finished", JobStatus.FINISHED),
        (Status.FAILED, "failed", JobStatus.FAILED),
        (Status.BUDGET_EXCEEDED, "failed", JobStatus.FAILED),
        (Status.CANCELLED, "canceled", JobStatus.CANCELED),
    ],
)
def test_an_ended_run_is_in_one_registry_until_its_retention_is_over(
    books: Books, status: Status, registry: str, shown: JobStatus
) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=status)

    assert books.mirror(RUN, execution, FACE, reason="max_steps: 20 of 20") is Mirrored.DONE
    assert books.job(RUN).get_status() is shown
    assert books.listed(RUN) == {registry}
    assert books.redis.zscore(f"rq:{registry}:default", RUN) == pytest.approx(time.time() + RETENTION, abs=5)
    assert RETENTION - 5 <= books.redis.ttl(f"rq:job:{RUN}") <= RETENTION
    assert books.desk.record(RUN).mirror_status == status
    assert books.redis.zscore(books.desk.keys.mirror, RUN) is None


def test_a_failure_has_its_reason_where_rq_shows_it_and_no_markup(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.FAILED)
    books.mirror(RUN, execution, FACE, reason="tool_failed: <img src=x onerror=alert(1)>")

    result = books.job(RUN).latest_result()
    assert result is not None
    assert result.exc_string == "tool_failed: ‹img src=x onerror=alert(1)›"
    assert (result.execution_id, result.worker_name) == ("A", WORKER)
    assert books.redis.hget(FACE.key, "failed_job_count") == b"1"


# ---- sent again, late, and by several -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.WAITING, Status.QUEUED, Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_sent_again_it_changes_nothing(books: Books, status: Status) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=status)
    standing = books.standing(RUN)
    assert books.send(standing, execution, FACE) is Mirrored.DONE
    before = books.data()

    assert books.send(standing, execution, FACE) is Mirrored.DONE
    assert books.data() == before


def test_a_late_mirror_of_an_earlier_owner_tells_no_old_story(books: Books) -> None:
    books.create(RUN)
    first, execution = books.claim(RUN, "A")
    first.commit(to=Status.QUEUED)
    released = books.standing(RUN)
    books.desk.ring(RUN)
    books.claim(RUN, "B")
    before = books.redis.hgetall(f"rq:job:{RUN}")

    assert books.send(released, execution, FACE) is Mirrored.AGAIN
    assert books.redis.hgetall(f"rq:job:{RUN}") == before
    assert books.listed(RUN) == {"started"}
    assert [execution.id for execution in books.job(RUN).get_executions()] == ["B"]


def test_a_late_word_that_a_run_is_running_does_not_bring_it_back(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    running = books.standing(RUN)
    owner.commit(to=Status.COMPLETED)
    books.mirror(RUN, execution, FACE)

    assert books.send(running, execution, FACE) is Mirrored.AGAIN
    assert books.listed(RUN) == {"finished"}
    assert not books.redis.keys("rq:execution*")


def test_a_run_that_ended_before_rq_heard_of_its_start_leaves_no_entry(books: Books) -> None:
    books.create(RUN)
    books.redis.lmove(books.queue.key, books.queue.intermediate_queue_key)
    owner = books.desk.claim(RUN)
    running = books.standing(RUN)
    owner.commit(to=Status.COMPLETED)
    execution = execution_of(RUN, "A", WORKER, datetime.now(UTC))

    assert books.send(running, execution, FACE) is Mirrored.AGAIN
    books.mirror(RUN, execution, FACE)
    assert books.listed(RUN) == {"finished"}


def test_a_beat_of_an_owner_that_lost_the_run_does_not_displace_the_next(books: Books) -> None:
    books.create(RUN)
    first, execution = books.claim(RUN, "A")
    running = books.standing(RUN)
    books.desk.reap(RUN, first.token, dead=True)
    books.desk.ring(RUN)
    books.claim(RUN, "B")

    assert books.send(running, execution, FACE) is Mirrored.AGAIN
    assert [execution.id for execution in books.job(RUN).get_executions()] == ["B"]


def test_an_execution_that_is_over_goes_even_where_its_run_has_moved_on(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.QUEUED)
    released = books.standing(RUN)
    owner = books.desk.claim(RUN, "B")

    assert books.send(released, execution, FACE) is Mirrored.AGAIN
    assert not books.redis.keys("rq:execution*")
    assert not books.redis.exists(FACE.executions_key)


def test_the_next_owner_drops_the_execution_of_a_dead_one(books: Books) -> None:
    books.create(RUN)
    dead, _ = books.claim(RUN, "A")
    books.desk.reap(RUN, dead.token, dead=True)
    books.desk.ring(RUN)
    books.claim(RUN, "B")

    assert [execution.id for execution in books.job(RUN).get_executions()] == ["B"]
    assert books.redis.zrange("rq:wip:default", 0, -1) == [f"{RUN}:B".encode()]


def test_a_sweep_mends_without_knowing_the_execution(books: Books) -> None:
    books.create(RUN)
    owner, _ = books.claim(RUN)
    owner.commit(to=Status.FAILED)

    assert books.mirror(RUN, reason="crashed three times") is Mirrored.DONE
    assert books.listed(RUN) == {"failed"}
    assert not books.redis.keys("rq:execution*")
    result = books.job(RUN).latest_result()
    assert result is not None
    assert result.exc_string == "crashed three times"


def test_a_result_is_told_once_by_worker_and_sweep_together(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.COMPLETED)
    books.mirror(RUN)

    assert books.mirror(RUN, execution, FACE) is Mirrored.DONE
    assert len(books.job(RUN).results()) == 1


def test_a_resumed_run_lives_without_expiry_and_has_both_results(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.FAILED)
    books.mirror(RUN, execution, FACE, reason="first")
    books.desk.resume(RUN)

    assert books.mirror(RUN) is Mirrored.DONE
    assert books.listed(RUN) == set()
    assert [books.redis.ttl(f"rq:{kind}:{RUN}") for kind in ("job", "results")] == [-1, -1]
    books.desk.ring(RUN)
    owner, execution = books.claim(RUN, "B")
    owner.commit(to=Status.FAILED)
    books.mirror(RUN, execution, FACE, reason="second")
    assert [result.exc_string for result in books.job(RUN).results()] == ["second", "first"]


# ---- what RQ's tools did meanwhile ----------------------------------------------------------------------------------


@pytest.mark.parametrize("standing", ["queued", "running", "waiting"])
def test_a_cancel_through_rq_is_a_wish(books: Books, standing: str) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN) if standing != "queued" else (None, None)
    if owner and standing == "waiting":
        owner.wait(wait="reply")
        books.mirror(RUN, execution, FACE)
    books.job(RUN).cancel()
    before = books.data()

    assert books.mirror(RUN, execution) is Mirrored.CANCEL_WISHED
    assert books.data() == before


def test_a_run_cancelled_through_rq_as_it_is_claimed_does_not_stay_in_between(books: Books) -> None:
    books.create(RUN)
    books.redis.lmove(books.queue.key, books.queue.intermediate_queue_key)
    books.job(RUN).cancel()
    books.desk.claim(RUN)

    assert books.mirror(RUN, execution_of(RUN, "A", WORKER, datetime.now(UTC)), FACE) is Mirrored.CANCEL_WISHED
    assert books.listed(RUN) == {"canceled"}


def test_a_requeue_of_a_failure_that_rq_knew_is_a_wish(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.BUDGET_EXCEEDED)
    books.mirror(RUN, execution, FACE)
    books.job(RUN).requeue()

    assert books.mirror(RUN) is Mirrored.RESUME_WISHED
    assert books.desk.resume(RUN).code == "resumed"
    assert books.mirror(RUN) is Mirrored.DONE


def test_a_late_ring_of_a_failed_run_is_no_wish(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    books.redis.hset(f"rq:job:{RUN}", "status", "queued")  # as a stale ring left it, before RQ was told of the end
    owner.commit(to=Status.FAILED)

    assert books.mirror(RUN, execution, FACE) is Mirrored.DONE
    assert books.job(RUN).get_status() is JobStatus.FAILED


def test_a_requeue_of_a_completed_run_is_undone(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.COMPLETED)
    books.mirror(RUN, execution, FACE)
    books.redis.hset(f"rq:job:{RUN}", "status", "queued")
    books.redis.zrem("rq:finished:default", RUN)

    assert books.mirror(RUN) is Mirrored.DONE
    assert books.listed(RUN) == {"finished"}


def test_a_waiting_run_that_a_scheduler_of_rq_has_rung_waits_again(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.wait(wait="reply")
    books.mirror(RUN, execution, FACE)
    books.redis.zrem("rq:scheduled:default", RUN)
    books.redis.hset(f"rq:job:{RUN}", "status", "queued")

    assert books.mirror(RUN) is Mirrored.DONE
    assert books.listed(RUN) == {"scheduled"}
    assert books.job(RUN).get_status() is JobStatus.SCHEDULED


def test_a_running_run_that_a_reader_with_a_fast_clock_gave_up_is_running_again(books: Books) -> None:
    books.create(RUN)
    _, execution = books.claim(RUN)
    cast(Any, StartedJobRegistry(queue=books.queue)).cleanup(time.time() + EXECUTION_SECONDS + 1)
    assert books.job(RUN).get_status() is JobStatus.FAILED

    assert books.mirror(RUN, execution, FACE) is Mirrored.DONE
    assert books.listed(RUN) == {"started"}
    assert books.redis.ttl(f"rq:job:{RUN}") == -1


def test_a_deleted_job_of_a_live_run_is_missed_until_it_is_restored(books: Books) -> None:
    books.create(RUN)
    _, execution = books.claim(RUN)
    books.job(RUN).delete()

    assert books.mirror(RUN, execution, FACE) is Mirrored.NO_JOB
    assert books.redis.zscore(books.desk.keys.mirror, RUN) is not None, "the next sweep looks at it"
    assert books.desk.do(restore_job(books.desk.keys, run_job(RUN)))
    assert books.mirror(RUN, execution, FACE) is Mirrored.DONE
    assert books.listed(RUN) == {"started"}


def test_a_deleted_job_of_an_ended_run_is_not_missed(books: Books) -> None:
    books.create(RUN)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.COMPLETED)
    books.job(RUN).delete()

    assert books.mirror(RUN, execution, FACE) is Mirrored.NO_JOB
    assert books.redis.zscore(books.desk.keys.mirror, RUN) is None


def test_a_worker_that_rq_gave_up_is_not_made_up_again(books: Books) -> None:
    books.create(RUN)
    books.redis.delete(FACE.key)
    owner, execution = books.claim(RUN)
    owner.commit(to=Status.COMPLETED)
    books.mirror(RUN, execution, FACE)

    assert not books.redis.exists(FACE.key)


def test_a_running_run_is_not_mirrored_without_its_execution(books: Books) -> None:
    books.create(RUN)
    books.claim(RUN)

    with pytest.raises(ValueError, match="in which execution"):
        books.mirror(RUN)
