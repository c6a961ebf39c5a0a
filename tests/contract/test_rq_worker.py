"""The worker that RQ's tools know: what it takes, what it shows, what it hears."""

import asyncio
import time
from typing import Any, cast

import pytest
import redis
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.suspension import resume, suspend

from scheduler.health import Finding, shared_queues
from scheduler.keys import Keys
from scheduler.rq_bridge import EXECUTION_SECONDS, Mirrored, Popped
from scheduler.store import Store
from scheduler.vitals import read_vitals
from tests.support.rq_face import NAME, SEND, Face, until, working
from tests.support.servers import Server, programs
from worker.rq_worker import AgentWorker, forget_worker

# ---- being known ----------------------------------------------------------------------------------------------------


def test_rq_knows_it_from_its_registration_to_its_leaving(redis_url: str) -> None:
    async def scenario() -> Face:
        async with working(redis_url, "high", "default") as face:
            seen = face.seen()
            assert seen is not None
            assert (seen.get_state(), seen.queue_names()) == ("idle", ["high", "default"])
            assert 0 < face.redis.ttl(f"rq:worker:{NAME}") <= 60
        return face

    face = asyncio.run(scenario())

    assert face.seen() is None
    assert face.redis.hexists(f"rq:worker:{NAME}", "death")


def test_the_doctor_sees_that_two_deployments_share_their_queues(redis_url: str) -> None:
    """Two namespaces, and one prefix of RQ: each takes the other's runs, which it does not know."""

    async def scenario() -> None:
        async with working(redis_url) as face:
            other = AgentWorker(
                ["default"], "other", connection=face.redis, redis=face.worker.redis, keys=Keys("other")
            )
            assert await seen_by_the_doctor(face.worker.redis) == []
            await other.register()
            (found,) = await seen_by_the_doctor(face.worker.redis)
            assert found.level == "problem"
            assert "workers of {other} use the same keys of RQ as {pawl}" in found.what
            await face.worker.beat()
            face.redis.delete("rq:worker:other")
            await other.beat()
            assert len(await seen_by_the_doctor(face.worker.redis)) == 1
            await other.unregister()
            assert await seen_by_the_doctor(face.worker.redis) == []

    async def seen_by_the_doctor(client: Redis) -> list[Finding]:
        return list(shared_queues(await read_vitals(client, Store(client))))

    asyncio.run(scenario())


def test_rq_forgets_a_worker_that_does_not_beat_and_knows_it_again_when_it_does(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.redis.delete(f"rq:worker:{NAME}")
            assert face.seen() is None

            await face.worker.beat()
            seen = face.seen()
            assert seen is not None
            assert seen.queue_names() == ["default"]

    asyncio.run(scenario())


def test_a_parent_lets_rq_forget_a_dead_worker_at_once(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            forget_worker(face.redis, NAME)
            assert face.seen() is None
            forget_worker(face.redis, "never-lived")

    asyncio.run(scenario())


def test_rqs_own_command_says_what_to_start_instead(redis_url: str) -> None:
    worker = AgentWorker(["high", "default"], connection=cast(Any, redis.Redis).from_url(redis_url))

    with pytest.raises(SystemExit, match=r"pawl worker yourapp\.agents --queues high,default"):
        worker.work(burst=True)


# ---- activations ----------------------------------------------------------------------------------------------------


def test_rq_shows_every_run_that_it_moves(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            runs = [f"0-{number}" for number in range(300)]
            for run_id in runs:
                face.begin(run_id, activation=run_id)
            await until(lambda: StartedJobRegistry(queue=face.books.queue).count == 300, "all are started")
            seen = face.seen()
            assert seen is not None
            assert seen.get_state() == "busy"
            assert {one.job_id for one in seen.get_current_executions()} == set(runs)

            for run_id in runs:
                face.finish(run_id)
            ends = [face.worker.ended(face.books.standing(run_id), run_id) for run_id in runs]
            assert set(await asyncio.gather(*ends)) == {Mirrored.DONE}
            seen = face.seen()
            assert seen is not None
            assert (seen.get_state(), seen.successful_job_count, seen.current_execution_count) == ("idle", 300, 0)
            assert face.books.queue.finished_job_registry.count == 300
            assert not face.redis.keys("rq:execution*")

    asyncio.run(scenario())


def test_a_beat_never_brings_back_what_has_ended(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            runs = [f"0-{number}" for number in range(100)]
            for run_id in runs:
                face.begin(run_id, activation=run_id)

            async def end(run_id: str) -> None:
                await asyncio.sleep(0)
                face.finish(run_id)
                await face.worker.ended(face.books.standing(run_id), run_id)

            await asyncio.gather(face.worker.beat(), *(end(run_id) for run_id in runs), face.worker.beat())
            await face.worker.beat()
            assert face.redis.zcard("rq:wip:default") == 0
            assert not face.redis.keys("rq:execution*")

    asyncio.run(scenario())


def test_a_beat_keeps_executions_and_puts_right_what_a_reader_gave_up(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a")
            await until(lambda: face.books.listed("0-a") == {"started"}, "it is started")
            cast(Any, StartedJobRegistry(queue=face.books.queue)).cleanup(time.time() + EXECUTION_SECONDS + 1)
            face.redis.expire("rq:execution:0-a:A", 1)
            assert face.books.listed("0-a") == {"failed"}

            await face.worker.beat()
            await until(lambda: face.books.listed("0-a") == {"started"}, "it is started again")
            assert face.redis.ttl("rq:execution:0-a:A") > 1

    asyncio.run(scenario())


def test_a_cancel_in_rqs_tools_is_heard_at_the_next_beat(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a")
            await until(lambda: face.books.listed("0-a") == {"started"}, "it is started")
            face.books.job("0-a").cancel()

            await face.worker.beat()
            await until(lambda: face.stopped == ["0-a"], "the stop is passed on")

    asyncio.run(scenario())


def test_the_end_of_an_earlier_activation_leaves_the_next_one_alone(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a", "A")
            reaped = face.books.desk.record("0-a").token
            face.books.desk.reap("0-a", reaped, dead=True)
            before = face.books.standing("0-a")
            face.books.desk.claim("0-a", "B")
            face.worker.started(face.books.standing("0-a"), "B")

            assert await face.worker.ended(before, "A") is Mirrored.AGAIN
            assert list(face.worker.executions) == ["B"]
            assert face.redis.zrange("rq:wip:default", 0, -1) == [b"0-a:B"]

    asyncio.run(scenario())


def test_of_a_lost_run_only_the_own_execution_goes(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a")
            await until(lambda: face.books.listed("0-a") == {"started"}, "it is started")

            await face.worker.lost("0-unknown")
            await face.worker.lost("A")
            assert not face.redis.keys("rq:execution*")
            assert face.books.listed("0-a") == set()
            assert face.books.job("0-a").get_status() == "started", "its new owner tells"
            assert not face.worker.executions

    asyncio.run(scenario())


# ---- taking runs ----------------------------------------------------------------------------------------------------


def test_it_takes_as_many_as_asked_the_first_queue_first(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url, "high", "default") as face:
            for run_id in ("0-1", "0-2"):
                face.put(run_id)
            face.put("0-urgent", "high")

            assert await face.worker.pop(2) == [Popped("0-urgent", "high"), Popped("0-1", "default")]
            assert (face.taken("high"), face.taken(), face.queued()) == ([b"0-urgent"], [b"0-1"], [b"0-2"])
            assert await face.worker.pop(2) == [Popped("0-2", "default")]
            assert await face.worker.pop(2) == []

    asyncio.run(scenario())


def test_workers_that_take_turns_come_to_equal_shares(redis_url: str) -> None:
    async def scenario() -> list[int]:
        async with working(redis_url) as face:
            for number in range(50):
                face.put(f"0-{number}")
            return [len(await face.worker.pop(10)) for _ in range(9)]

    taken = asyncio.run(scenario())

    assert taken == [10, 10, 10, 10, 5, 3, 1, 1, 0]
    assert abs(sum(taken[::2]) - sum(taken[1::2])) <= 2


def test_what_is_left_of_an_urgent_queue_comes_before_the_next_queue(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url, "high", "default") as face:
            for number in range(3):
                face.put(f"0-urgent-{number}", "high")
            face.put("0-1")

            assert await face.worker.pop(10) == [Popped("0-urgent-0", "high"), Popped("0-urgent-1", "high")]
            assert await face.worker.pop(10) == [Popped("0-urgent-2", "high"), Popped("0-1", "default")]

    asyncio.run(scenario())


def test_what_it_cannot_claim_is_dropped_or_put_back_in_order(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            for run_id in ("0-1", "0-2", "0-3"):
                face.put(run_id)
            first, *others = await face.worker.pop(3)

            await face.worker.drop([first])
            await face.worker.put_back(others)
            assert (face.taken(), face.queued()) == ([], [b"0-2", b"0-3"])

    asyncio.run(scenario())


@pytest.mark.parametrize("queue", ["high", "default", "low"])
def test_it_hears_at_once_what_comes_into_any_queue(redis_url: str, queue: str) -> None:
    async def scenario() -> None:
        async with working(redis_url, "high", "default", "low") as face:
            waiting = asyncio.create_task(face.worker.wait_for_work(5))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 3, "it waits at three queues")
            started = time.monotonic()
            face.put("0-1", queue)

            assert await waiting == [Popped("0-1", queue)]
            assert time.monotonic() - started < 0.5
            assert face.redis.info("clients")["blocked_clients"] == 0, "nothing waits that could take a run unseen"
            assert face.taken(queue) == [b"0-1"]

    asyncio.run(scenario())


def test_it_waits_as_long_as_asked_and_can_be_interrupted(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            started = time.monotonic()
            assert await face.worker.wait_for_work(0.2) == []
            assert 0.15 < time.monotonic() - started < 1

            waiting = asyncio.create_task(face.worker.wait_for_work(30))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 1, "it waits")
            await face.worker.interrupt()
            assert await asyncio.wait_for(waiting, 1) == []

    asyncio.run(scenario())


def test_an_interrupt_between_two_waits_is_not_forgotten(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            await face.worker.interrupt()
            assert await asyncio.wait_for(face.worker.wait_for_work(30), 1) == []
            assert await face.worker.wait_for_work(0.1) == []

    asyncio.run(scenario())


def test_a_worker_of_many_queues_leaves_connections_for_all_else(redis_url: str) -> None:
    queues = [f"queue-{number}" for number in range(60)]

    async def scenario() -> None:
        async with working(redis_url, *queues) as face:
            waiting = asyncio.create_task(face.worker.wait_for_work(30))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 60, "it waits at all of them")
            await asyncio.gather(*(Store(face.worker.redis).now() for _ in range(30)))
            face.put("0-1", queues[-1])
            assert await asyncio.wait_for(waiting, 5) == [Popped("0-1", queues[-1])]

    asyncio.run(scenario())


def test_a_cancelled_wait_swallows_no_run(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url, "default", "low") as face:
            for number in range(60):
                waiting = asyncio.create_task(face.worker.wait_for_work(5))
                await asyncio.sleep(0.002 * (number % 4))
                putting = asyncio.create_task(asyncio.to_thread(face.put, f"0-{number}", "low"))
                await asyncio.sleep(0.0005 * (number % 3))
                waiting.cancel()
                (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
                await putting
                if not isinstance(outcome, asyncio.CancelledError):
                    await face.worker.put_back(cast(list[Popped], outcome))
            assert face.taken("low") == []
            assert sorted(face.queued("low")) == sorted(f"0-{number}".encode() for number in range(60))

    asyncio.run(scenario())


def test_while_workers_are_suspended_it_takes_nothing(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            waiting = asyncio.create_task(face.worker.wait_for_work(5))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 1, "it waits")
            suspend(face.redis)
            face.put("0-1")

            assert await waiting == [], "it came after the suspension"
            assert (face.queued(), face.taken()) == ([b"0-1"], [])
            assert await face.worker.pop(5) == []
            assert await face.worker.wait_for_work(0.1) == []
            assert await face.worker.suspended()
            seen = face.seen()
            assert seen is not None
            assert seen.get_state() == "suspended"

            resume(face.redis)
            assert await face.worker.pop(5) == [Popped("0-1", "default")]
            seen = face.seen()
            assert seen is not None
            assert seen.get_state() == "idle"

    asyncio.run(scenario())


def test_it_waits_on_after_redis_was_away() -> None:
    async def scenario(server: Server) -> None:
        async with working(server.url) as face:
            waiting = asyncio.create_task(face.worker.wait_for_work(30))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 1, "it waits")
            server.kill()
            with pytest.raises(RedisError):
                await waiting

            server.start()
            waiting = asyncio.create_task(face.worker.wait_for_work(30))
            await until(lambda: face.redis.info("clients")["blocked_clients"] == 1, "it waits again")
            face.put("0-1")
            assert await waiting == [Popped("0-1", "default")]
            await until(
                lambda: SEND.send_shutdown_command(face.redis, NAME) or face.shutdowns, "commands are heard again"
            )

    with Server(programs()["valkey"]) as server:
        asyncio.run(scenario(server))


def test_an_idle_worker_asks_little_of_redis(redis_url: str) -> None:
    async def scenario() -> float:
        async with working(redis_url, "high", "default", "low") as face:
            assert await face.worker.pop(1) + await face.worker.wait_for_work(0.1) == []  # it has its connections
            before, started = face.redis.info("stats")["total_commands_processed"], time.monotonic()
            for _ in range(2):
                assert await face.worker.pop(100) == []
                assert await face.worker.wait_for_work(3) == []
            after, ended = face.redis.info("stats")["total_commands_processed"], time.monotonic()
            return (after - before - 1) / (ended - started)  # but for the question itself

    assert asyncio.run(scenario()) <= 3


# ---- commands -------------------------------------------------------------------------------------------------------


def test_rqs_commands_are_passed_on(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a", "A")
            face.begin("0-b", "B")
            await until(lambda: face.books.listed("0-b") == {"started"}, "both are started")
            await asyncio.to_thread(SEND.send_stop_job_command, face.redis, "0-a", serializer=JSONSerializer)
            await asyncio.to_thread(SEND.send_stop_execution_command, face.redis, "0-b", "B")
            await until(lambda: face.stopped == ["0-a", "0-b"], "both are to stop")

            SEND.send_shutdown_command(face.redis, NAME)
            await until(lambda: face.shutdowns == 1, "it is to shut down")

    asyncio.run(scenario())


def test_commands_that_cannot_be_meant_are_ignored(redis_url: str) -> None:
    async def scenario() -> None:
        async with working(redis_url) as face:
            face.begin("0-a", "A")
            SEND.send_kill_horse_command(face.redis, NAME)
            SEND.send_command(face.redis, NAME, "stop-job", job_id="0-elsewhere")
            SEND.send_command(face.redis, NAME, "dance")
            for text in ("{", "[]", '{"command": 7}', "\\xff"):
                face.redis.publish(f"rq:pubsub:{NAME}", text)
            SEND.send_shutdown_command(face.redis, NAME)

            await until(lambda: face.shutdowns == 1, "the last command is heard")
            assert face.stopped == []
            assert list(face.worker.executions) == ["A"]

    asyncio.run(scenario())
