"""Everything at once: workers are killed, stopped and drained, connections cut, Redis restarted, while runs are made.

When the storm is over, every run has ended as it has to, and nothing was paid or done twice.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.budget import Usage
from agent.events import ModelReplied, Recorded, ToolReturned
from agent.state import Checkpoint, RunState
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.plays import Step, note, put, say, task, use
from tests.support.servers import Server
from tests.support.site import Site, WorkerProcess, server_program

STORM_SECONDS = 12.0
RUNS = 60
WORKERS = 3
METRICS = ("model_calls", "input_tokens", "output_tokens", "cost_nanousd")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Server(server_program(), appendonly=True) as server:
        opened = Site(server, tmp_path)
        yield opened
        opened.close()
        print(opened.logs())


class Storm:
    """Does one harm after another."""

    def __init__(self, site: Site, chance: random.Random) -> None:
        self._site = site
        self._chance = chance
        self._workers = [site.worker("--grace=0.3") for _ in range(WORKERS)]

    def rage(self, seconds: float) -> None:
        """Until the time is over; then all is well again."""
        until = time.monotonic() + seconds
        harms = [self._kill, self._kill, self._stop, self._drain, self._cut, self._cut_listeners, self._restart]
        while time.monotonic() < until:
            self._chance.choice(harms)()
            self._site.passes_time(self._chance.uniform(0.1, 0.8))
            self._fill()

    def _fill(self) -> None:
        self._workers = [worker for worker in self._workers if worker.alive]
        while len(self._workers) < WORKERS:
            self._workers.append(self._site.worker("--grace=0.3", ready=False))

    def _one(self) -> WorkerProcess:
        return self._chance.choice(self._workers)

    def _kill(self) -> None:
        self._one().kill()

    def _stop(self) -> None:
        worker = self._one()
        worker.signal(signal.SIGSTOP)
        self._site.passes_time(self._chance.uniform(0.5, 2.0) * self._site.lease_seconds)
        worker.signal(signal.SIGCONT)

    def _drain(self) -> None:
        self._one().signal(signal.SIGTERM)

    def _cut(self) -> None:
        self._site.redis.client_kill_filter(_type="normal", skipme=True)

    def _cut_listeners(self) -> None:
        self._site.redis.client_kill_filter(_type="pubsub")

    def _restart(self) -> None:
        self._chance.choice((Server.stop, Server.kill))(self._site.server)
        self._site.passes_time(self._chance.uniform(0.0, 1.0))
        self._site.server.start()


def _play(chance: random.Random) -> list[Step]:
    steps: list[Step] = []
    for number in range(chance.randint(1, 6)):
        uses = [chance.choice((note, put))(f"{number}.{n}") for n in range(chance.randint(1, 3))]
        steps.append(use(*uses, seconds=chance.uniform(0, 0.4)))
    return [*steps, say("done", seconds=chance.uniform(0, 0.4))]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    storm = Storm(site, chance)
    plays = [_play(chance) for _ in range(RUNS)]
    sessions = [f"s{number % 10}" if number < RUNS // 2 else "" for number in range(RUNS)]
    runs = [site.submit(task(*play), session=session) for play, session in zip(plays, sessions, strict=True)]
    storm.rage(STORM_SECONDS)

    for run, play in zip(runs, plays, strict=True):
        record = site.reaches(run.id, Status.COMPLETED, Status.FAILED, seconds=60)
        if record.status is Status.FAILED:
            assert record.reason.startswith("worker_lost"), "only crash after crash may end a run"
        _is_whole(site, run, play)
    _ledgers_agree(site, runs)
    site.check()


def _is_whole(site: Site, run: RunHandle[str], play: list[Step]) -> None:
    events = site.events(run.id)
    told = {event.call: event.outcome for event in events if isinstance(event, ToolReturned)}
    replies = [event.step for event in events if isinstance(event, ModelReplied)]
    record = site.record(run.id)
    if record.status is Status.COMPLETED:
        assert replies == list(range(1, len(play) + 1)), "every reply was committed once"
        assert len(told) == sum(len(step.uses) for step in play)
    done = Counter((trace.what, trace.key.rpartition(":")[2]) for trace in site.traces.found(run=run.id) if trace.text)
    for (what, call), times in done.items():
        assert what == "put" or times == 1, f"{run.id}: {call} was executed {times} times"
    for call, outcome in told.items():
        if outcome == "ok":
            assert done["note", call] + done["put", call] >= 1
    recorded = [Recorded(seq=seq, at=0, event=event) for seq, event in enumerate(events, 1)]
    assert _paid(Checkpoint.of(record.state).usage) == _paid(RunState.restore(Checkpoint(), recorded).head.usage)


def _paid(usage: Usage) -> list[int]:
    return [getattr(usage, metric) for metric in METRICS]


def _ledgers_agree(site: Site, runs: list[RunHandle[str]]) -> None:
    ledger = site.redis.hgetall(site.keys.usage(datetime.now(UTC).date()).key)
    booked = [
        sum(int(value) for field, value in ledger.items() if field.endswith(f'"{metric}"]'.encode()))
        for metric in METRICS
    ]
    paid = [_paid(Checkpoint.of(site.record(run.id).state).usage) for run in runs]
    assert booked == [sum(amounts) for amounts in zip(*paid, strict=True)]
