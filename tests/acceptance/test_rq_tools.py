"""RQ's own command line beside a worker: what it shows is true, and what it commands is heard."""

import asyncio
import re
import subprocess
import sys
from typing import Any, cast

import redis
from rq.job import JobStatus

from scheduler.lifecycle import Status
from scheduler.rq_bridge import Mirrored, Popped
from tests.support.rq_books import FACE, Books
from tests.support.rq_face import NAME, until, working
from tests.support.runs import Desk


def rq(url: str, command: str, *arguments: str, expected: int = 0) -> str:
    """Runs RQ's command line in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "rq.cli", command, "--url", url, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


def books_at(url: str) -> Books:
    return Books(Desk(cast(Any, redis.Redis).from_url(url)))


def test_rq_info_counts_what_there_is(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            ends = {"0-done": Status.COMPLETED, "0-failed": Status.FAILED, "0-waits": Status.WAITING}
            for run_id in ends:
                face.begin(run_id, run_id)
            for number in range(250):
                face.begin(f"0-{number}", f"A{number}")
            for run_id, status in ends.items():
                face.owners[run_id].commit(to=status)
                assert await face.worker.ended(face.books.standing(run_id), run_id) is Mirrored.DONE
            face.books.create("0-queued")
            await until(lambda: face.redis.zcard("rq:wip:default") == 250, "all are started")

            shown = await asyncio.to_thread(rq, redis_url, "info", "--raw")
            assert "queue default 1, 250 executing, 1 finished, 1 failed" in shown
            assert re.search(rf"worker {NAME} \(.*\) busy default\. jobs: 1 finished, 1 failed", shown)
            assert face.redis.zcard("rq:wip:default") == 250, "whoever looks reaps nobody"
            assert face.books.listed("0-waits") == {"scheduled"}

    asyncio.run(scenario())


def test_rq_suspend_and_resume_stop_and_start_the_taking_of_runs(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            waiting = asyncio.create_task(face.worker.wait_for_work(20))
            await asyncio.to_thread(rq, redis_url, "suspend")
            face.put("0-1")
            assert await waiting == []
            assert await face.worker.pop(10) == []
            assert f"worker {NAME}" in (shown := await asyncio.to_thread(rq, redis_url, "info", "--raw"))
            assert "suspended default" in shown

            await asyncio.to_thread(rq, redis_url, "resume")
            assert await face.worker.pop(10) == [Popped("0-1", "default")]

    asyncio.run(scenario())


def test_rq_requeue_of_a_failed_run_asks_to_resume_it(redis_url: str) -> None:
    books = books_at(redis_url)
    books.create("0-a")
    owner, execution = books.claim("0-a")
    owner.commit(to=Status.FAILED)
    books.mirror("0-a", execution, FACE, reason="model_unavailable")

    rq(redis_url, "requeue", "--queue", "default", "--serializer", "json", "0-a")

    assert books.listed("0-a") == {"queue"}
    assert books.mirror("0-a") is Mirrored.RESUME_WISHED
    assert books.desk.resume("0-a").code == "resumed"
    assert books.mirror("0-a") is Mirrored.DONE
    assert books.redis.ttl("rq:job:0-a") == -1


def test_rq_empty_is_no_cancel(redis_url: str) -> None:
    books = books_at(redis_url)
    books.create("0-a")

    rq(redis_url, "empty", "default")

    assert books.desk.record("0-a").status is Status.QUEUED
    assert books.mirror("0-a") is Mirrored.NO_JOB
    assert books.desk.ring("0-a").code == "no_job", "a sweep makes it again"


def test_a_stock_worker_says_what_is_wrong_and_harms_no_record(redis_url: str) -> None:
    books = books_at(redis_url)
    books.create("0-a")
    before = books.redis.hgetall(books.desk.keys.run("0-a"))

    rq(redis_url, "worker", "--burst", "--serializer", "json", "default")

    failed = books.job("0-a")
    assert failed.get_status() is JobStatus.FAILED
    result = failed.latest_result()
    assert result is not None
    assert result.exc_string is not None
    assert "taken by a stock worker of RQ" in result.exc_string
    assert books.redis.hgetall(books.desk.keys.run("0-a")) == before

    books.desk.pass_time(60_000)
    assert books.desk.ring("0-a").code == "rung"
    books.claim("0-a")
    assert books.listed("0-a") == {"started"}


def test_rqs_worker_command_names_the_one_to_use(redis_url: str) -> None:
    shown = rq(redis_url, "worker", "--worker-class", "worker.rq_worker.AgentWorker", "high", "default", expected=1)

    assert "pawl worker yourapp.agents --queues high,default" in shown
    assert "Traceback" not in shown
