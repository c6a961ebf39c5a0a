"""Redis stops, restarts, becomes a replica, falls silent, or forgets: runs wait, and go on."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from agent.budget import Budget
from agent.events import RecordWentBack
from scheduler.connection import connect
from scheduler.lifecycle import Status
from scheduler.store import Store
from tests.support.plays import hold, note, say, task, use
from tests.support.relay import Relay
from tests.support.servers import Server
from tests.support.site import Site
from tests.support.waiting import wait_until

OUTAGE_SECONDS = 10.0
"""Ten leases: whoever is not given the time to renew is lost."""


@pytest.mark.parametrize("end", [Server.stop, Server.kill], ids=["stopped", "killed"])
def test_redis_is_away_and_nobody_is_reaped(site: Site, end: Callable[[Server], None]) -> None:
    """A1, case-082 b: calls end while Redis is away, none is made again, and no crash is counted."""
    workers = [site.worker(), site.worker()]
    thinking = [site.submit(task(use(note("a"), gate="gate"), say("thought"))) for _ in range(5)]
    acting = [site.submit(task(use(hold("gate"), note("b")), say("acted"))) for _ in range(5)]
    site.leaves("hold", times=5)
    site.leaves("model", times=10)

    end(site.server)
    site.traces.open("gate")
    site.passes_time(OUTAGE_SECONDS)
    site.server.start()
    queued = site.submit(task(say("queued")))

    for run, output in [
        (queued, "queued"),
        *((run, "thought") for run in thinking),
        *((run, "acted") for run in acting),
    ]:
        assert run.result(timeout=20).output == output
        assert site.kinds(run.id).count("run_claimed") == 1
        assert site.record(run.id).crashes_total == 0
    assert len(site.traces.found("model")) == 21
    assert len(site.traces.found("hold")) == 5
    assert all(worker.alive for worker in workers)
    assert not [line for worker in workers for line in worker.lines("run_reaped")]


def test_a_redis_that_loads_its_data(forgetful_site: Site) -> None:
    """case-082 b: LOADING, for longer than the lease, is an outage as well."""
    site = forgetful_site
    worker = site.worker()
    others = [site.submit(task(say("later")), delay=3_600) for _ in range(100)]
    run = site.submit(task(use(note("a"), gate="gate"), say("done")))
    site.leaves("model")
    site.redis.save()
    site.server.kill()
    site.traces.open("gate")
    site.server.start(load_us=5_000)

    assert run.result(timeout=20).output == "done"
    assert any("loading its data" in line["error"] for line in worker.lines("commit_waits"))
    assert site.kinds(run.id).count("run_claimed") == 1
    assert site.record(run.id).crashes_total == 0
    assert len(site.traces.found("note")) == 1
    assert {other.info().status for other in others} == {Status.QUEUED}
    assert worker.alive
    site.check()


def test_a_primary_that_becomes_a_replica_for_a_while(site: Site) -> None:
    """case-082 a: READONLY is an outage, not a loss."""
    worker = site.worker()
    run = site.submit(task(use(note("a"), gate="gate"), say("done")))
    site.leaves("model")
    site.redis.replicaof("127.0.0.1", "1")
    site.traces.open("gate")
    worker.said("commit_waits", run=run.id)
    site.passes_time(1.5 * site.lease_seconds)
    site.redis.replicaof("NO", "ONE")

    assert run.result(timeout=20).output == "done"
    assert len(site.traces.found("note")) == 1
    assert site.submit(task(say("next"))).result(timeout=20).output == "next"
    assert "takes no writes" in worker.lines("commit_waits")[0]["error"]


def test_a_network_that_falls_silent_is_noticed(server: Server, site: Site) -> None:
    """case-082 c, case-100: every connection is half-open; the worker finds out by itself, and work is done again."""
    with Relay(server.socket) as relay:
        site.url = relay.url
        worker = site.worker(PAWL_SOCKET_TIMEOUT_SECONDS="2")
        run = site.submit(task(use(note("a"), gate="gate"), say("done")))
        site.leaves("model")
        relay.fall_silent()
        site.traces.open("gate")
        worker.said("commit_waits", run=run.id)
        relay.speak()

        assert run.result(timeout=20).output == "done"
        assert site.submit(task(say("next"))).result(timeout=20).output == "next"
        assert len(site.traces.found("note")) == 1
        worker.terminate()


def test_a_worker_that_is_cut_off_loses_its_run_to_another(server: Server, site: Site) -> None:
    """A8: it starts nothing more, and once it hears again it drops the run."""
    direct = site.url
    with Relay(server.socket) as relay:
        site.url = relay.url
        lonely = site.worker(PAWL_SOCKET_TIMEOUT_SECONDS="2")
        run = site.submit(task(use(note("a"), gate="gate"), say("done")))
        site.leaves("model")
        site.url = direct
        site.worker()
        relay.fall_silent()
        wait_until("the other has it", lambda: site.kinds(run.id).count("run_claimed") == 2)
        site.traces.open("gate")

        assert run.result(timeout=20).output == "done"
        relay.speak()
        lonely.said("run_lost", run=run.id)
        assert len(site.traces.found("note")) == 1
        assert site.kinds(run.id).count("run_completed") == 1
        assert site.record(run.id).crashes_total == 1


def test_a_worker_ends_even_where_redis_does_not(site: Site) -> None:
    """Told to end while Redis is away: it waits for a while, says what it leaves behind, and ends."""
    worker = site.worker("--grace=0")
    run = site.submit(task(say("done", gate="gate")))
    site.leaves("model")
    site.server.stop()
    worker.terminate(seconds=10)
    assert worker.lines("left_behind")

    site.server.start()
    site.traces.open("gate")
    site.worker()
    assert run.result(timeout=20).output == "done"


def test_an_idle_worker_is_well_at_the_shortest_socket_timeout(site: Site) -> None:
    """case-100: waiting for work is no error, however long it takes."""
    worker = site.worker(PAWL_SOCKET_TIMEOUT_SECONDS="2")
    site.passes_time(5)
    assert {line["level"] for line in worker.lines()} == {"info"}
    assert site.submit(task(say("done"))).result(timeout=15).output == "done"


def test_a_cancelled_command_leaves_no_reply_for_the_next(server: Server, site: Site) -> None:
    """case-084: over a slow network, with few connections."""
    runs = [site.submit(task(say(str(number)))).id for number in range(2)]

    async def scenario(url: str) -> None:
        client = connect(url, connections=4)
        store = Store(client)
        for _ in range(200):
            loading = asyncio.create_task(store.info(runs[0]))
            await asyncio.sleep(0.001)
            loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loading
            assert (await store.info(runs[1])).id == runs[1]
        await client.aclose()

    with Relay(server.socket, delay=0.002) as relay:
        asyncio.run(scenario(relay.url))


@pytest.mark.parametrize(("steps", "is_replayed"), [(2, True), (40, False)], ids=["a little", "much"])
def test_a_redis_that_forgot_what_it_had_acknowledged(forgetful_site: Site, steps: int, is_replayed: bool) -> None:
    """A4: a worker that still has the lost commits sends them again; else the run goes on from where Redis stands."""
    site = forgetful_site
    worker = site.worker()
    play = task(use(hold("one")), *(use(note(str(n))) for n in range(steps)), use(hold("two")), say("done"))
    run = site.submit(play, budget=Budget(max_steps=100))
    site.leaves("hold")
    site.redis.save()
    site.traces.open("one")
    site.leaves("hold", times=2)
    site.server.kill()
    site.server.start()
    assert site.record(run.id).step == 1
    site.traces.open("two")

    assert run.result(timeout=20).output == "done"
    went_back = [event for event in site.events(run.id) if isinstance(event, RecordWentBack)]
    assert len(went_back) == (0 if is_replayed else 1)
    assert len(site.traces.found("note")) == (steps if is_replayed else 2 * steps)
    assert len(site.traces.found("model")) == (steps + 3 if is_replayed else 2 * steps + 4)
    assert site.record(run.id).crashes_total == 0
    assert worker.alive
    site.check()
