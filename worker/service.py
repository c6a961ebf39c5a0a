"""A worker process: takes runs from RQ's queues, moves hundreds of them at once, and leaves without losing any."""

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.agent import Agent
from agent.errors import StoreError
from agent.mailbox import Cancel
from scheduler.cards import AgentCard
from scheduler.deployment import Deployment
from scheduler.published import Cards
from scheduler.rq_bridge import Popped, queue_keys
from scheduler.store import Store
from scheduler.sweeps import Sweeper
from scheduler.wire import Line
from worker.actor import ServedAgent
from worker.batches import Batches
from worker.cancelling import cancelled
from worker.channels import messages
from worker.claims import Claimer
from worker.durability import Durability
from worker.leases import LeaseKeeper
from worker.passing import PassedRuns
from worker.recall import Recall
from worker.rq_worker import BEAT_SECONDS, AgentWorker
from worker.steplog import StepLog
from worker.supervisor import Supervisor
from worker.warden_keeper import WardenKeeper

MOST_CLAIMS: Final = 10
"""Runs that are taken in one go. Few, so that a worker which is busy with them leaves the next ones to the others."""

WAIT_SECONDS: Final = 3.0
FULL_SECONDS: Final = 1.0
CARD_SECONDS: Final = 20.0
CARD_LIFE_SECONDS: Final = 60.0
PARENT_SECONDS: Final = 1.0
PRIORITIES: Final = ("high", "low")

NEW_OBJECTS: Final = 10_000
"""New objects after which Python looks for cycles among them. A step makes hundreds that die with it, in no cycle; with
Python's own 700 the looking takes a tenth of a worker's time."""

_log: Final[Any] = structlog.get_logger("pawl.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works.

    Attributes:
        queues: RQ's queues, the most urgent first; empty: `high`, those of the agents, `low`.
        concurrency: Runs that it moves at once.
        grace: Seconds that runs get to finish their step when the worker is told to end.
        max_steps: Steps after which an activation gives its run back; None: no limit.
        burst: End when the queues are empty.
        name: Known to RQ by it; unique; empty: host, process and mark.
        mark: A random word in its name; empty: its own. A parent that gives it knows the name.
        parent: The process that keeps this one; when it is gone, this one ends too. 0: nobody.
    """

    queues: Sequence[str] = ()
    concurrency: int = 500
    grace: float = 20.0
    max_steps: int | None = None
    burst: bool = False
    name: str = ""
    mark: str = ""
    parent: int = 0


@dataclass(slots=True)
class _Ending:
    """What the signals say: end once the runs are drained; said twice, end at once."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    urged: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self) -> None:
        """Called by a signal, or by RQ's command to shut down."""
        (self.urged if self.asked.is_set() else self.asked).set()


def worker_name(process: int, mark: str) -> str:
    """A name that no other worker ever has: the host, the process, and a random mark, for process ids come back."""
    return f"{socket.gethostname()}:{process}:{mark}"


def queues_of(agents: Mapping[str, Agent[object]], queues: Sequence[str]) -> list[str]:
    """The queues to serve, the most urgent first."""
    if queues:
        return list(queues)
    own = dict.fromkeys(agent.queue for agent in agents.values())
    return [PRIORITIES[0], *(queue for queue in own if queue not in PRIORITIES), PRIORITIES[1]]


async def serve(agents: Mapping[str, Agent[object]], deployment: Deployment, options: WorkerOptions) -> None:
    """Works until it is told to end (SIGTERM, SIGINT, or RQ's command to shut down).

    Raises:
        StoreUnavailable: Redis cannot be reached at the start; later outages are waited out.
        Exception: Whatever the opening of an agent's dependencies raised.
    """
    gc.set_threshold(NEW_OBJECTS)
    name = options.name or worker_name(os.getpid(), options.mark or secrets.token_hex(4))
    structlog.contextvars.bind_contextvars(worker=name)
    ending = _Ending()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.ask)
    async with contextlib.AsyncExitStack() as stack:
        served = {name: await _opened(agent, deployment.settings.tool_threads, stack) for name, agent in agents.items()}
        worker = _Worker(served, deployment, options, name, ending)
        stack.push_async_callback(worker.close)
        await worker.work()


async def _opened(agent: Agent[object], threads: int, stack: contextlib.AsyncExitStack) -> ServedAgent:
    program = agent.program()
    if agent.environment.threads is None:
        agent.environment.threads = threads
    stack.push_async_callback(program.model.close)
    return ServedAgent(agent, program, await stack.enter_async_context(agent.provider.opened()))


class _Worker:
    """The parts of one worker process, wired together."""

    def __init__(
        self,
        served: Mapping[str, ServedAgent],
        deployment: Deployment,
        options: WorkerOptions,
        name: str,
        ending: _Ending,
    ) -> None:
        settings, scripts = deployment.settings, deployment.scripts
        self._served = served
        self._options = options
        self._ending = ending
        self._name = name
        self._redis = deployment.connect()
        self._commit_line, self._claim_line = Line(self._redis), Line(self._redis)
        self._blocking = deployment.connect_blocking()
        self._store = Store(self._redis, scripts)
        self._queues = queues_of({name: one.agent for name, one in served.items()}, options.queues)
        self._face = AgentWorker(
            self._queues,
            name,
            connection=self._blocking,
            redis=self._redis,
            keys=deployment.keys,
            on_shutdown=ending.ask,
            on_stop=lambda run: self._supervisor.tell(run, Cancel("rq")),
        )
        self._sweeper = Sweeper(self._redis, self._store, self._queues, busy=lambda: self._supervisor.running > 0)
        self._durability = Durability(self._redis, deployment.keys, settings.sync_effects)
        self._supervisor = Supervisor(
            served,
            scripts,
            Batches(self._commit_line),
            self._face,
            durability=self._durability,
            recall=Recall(self._redis, deployment.keys),
            ringer=self._sweeper.ringer,
            mender=self._sweeper.mender,
            concurrency=options.concurrency,
            observer=lambda claim: StepLog(claim, name, texts=settings.log_texts),
            max_steps=options.max_steps,
        )
        self._warden = WardenKeeper(deployment, name)
        for one in served.values():
            one.agent.environment.board = self._warden.board
        self._keeper = LeaseKeeper(
            scripts,
            deployment.connect_blocking,
            renew_seconds=settings.renew_seconds,
            stall_limit=settings.stall_limit_seconds,
            lost=self._supervisor.lost,
            flagged=self._supervisor.flagged,
            warden=self._warden,
        )
        self._supervisor.keeper = self._keeper
        self._passed = PassedRuns(served, self._queues)
        self._claimer = Claimer(self._redis, scripts, worker=name, agents=list(served), line=self._claim_line)

    async def work(self) -> None:
        """Registers, works, drains, leaves."""
        await self._store.now()  # a clear error where Redis cannot be reached
        await self._durability.check()
        await self._face.register()
        await self._publish()
        self._keeper.start()
        self._warden.start()
        _log.info(
            "worker_started", queues=self._queues, agents=list(self._served), concurrency=self._options.concurrency
        )
        await self._hasten()
        async with _together(
            self._sweeper.sweep(),
            self._every(BEAT_SECONDS, self._face.beat),
            self._every(CARD_SECONDS, self._publish),
            self._hear_hints(),
            self._every(PARENT_SECONDS, self._look_for_parent),
        ):
            taking = asyncio.create_task(self._take_runs())
            asked = asyncio.create_task(self._ending.asked.wait())
            await asyncio.wait([taking, asked], return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            if not taking.done():
                await self._face.interrupt()
            await taking
            await self._drain()

    async def close(self) -> None:
        """Hands over what is left where something went wrong, leaves RQ's books and closes the connections."""
        if not self._supervisor.draining:
            await self._supervisor.drain(0.0)
        self._keeper.close()
        self._warden.close()
        try:
            await self._face.unregister()
        except (RedisError, OSError, StoreError) as error:
            _log.warning("not_unregistered", error=str(error))
        for line in (self._commit_line, self._claim_line):
            await line.close()
        await self._redis.aclose()
        self._blocking.close()
        _log.info("worker_stopped")

    async def _drain(self) -> None:
        if not self._ending.asked.is_set():  # a burst is over
            while self._supervisor.running:
                await self._supervisor.changed()
            return
        runs = self._supervisor.running
        _log.info("draining", runs=runs, grace=self._options.grace)
        started = time.monotonic()
        draining = asyncio.create_task(self._supervisor.drain(self._options.grace))
        urged = asyncio.create_task(self._ending.urged.wait())
        await asyncio.wait([draining, urged], return_when=asyncio.FIRST_COMPLETED)
        urged.cancel()
        if not draining.done():
            draining.cancel()
            await self._supervisor.drain(0.0)
        _log.info("drained", runs=runs, seconds=round(time.monotonic() - started, 1))

    async def _take_runs(self) -> None:
        """Takes runs while there is room, until it is told to end."""
        outage = False
        while not self._ending.asked.is_set():
            try:
                if not self._supervisor.room:
                    await self._wait_for_room()
                    continue
                popped = await self._next()
                if not popped:
                    if self._options.burst and not self._supervisor.running:
                        return
                    popped = await self._face.wait_for_work(WAIT_SECONDS)
                if popped:
                    await self._claim(popped)
                outage = False
            except (StoreError, RedisError, OSError) as error:
                if not outage:
                    _log.warning("redis_unreachable", error=str(error))
                outage = True
                await asyncio.sleep(0.5)

    async def _next(self) -> list[Popped]:
        """Runs that were passed on to this worker, else what the queues hold; nothing while workers are suspended."""
        if self._passed and not await self._face.suspended():
            return self._passed.take(self._at_once())
        return await self._face.pop(self._at_once())

    def _at_once(self) -> int:
        """How many runs to take in one go."""
        return min(self._supervisor.room, MOST_CLAIMS)

    async def _claim(self, popped: list[Popped]) -> None:
        if self._ending.asked.is_set():
            await self._face.put_back(popped)
            return
        refusals = await self._claimer.claim(popped, self._supervisor.rooms, self._supervisor.start)
        if refusals.entries:
            await self._face.drop(refusals.entries)
        for run in refusals.ended:
            await self._sweeper.mender.mend(run)

    async def _wait_for_room(self) -> None:
        """Waits for an actor to end; where others wait in the queues, asks the oldest runs to give up their places."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FULL_SECONDS):
                await self._supervisor.changed()
            return
        waiting = sum([await self._redis.llen(queue_keys(queue).queue) for queue in self._queues])
        if waiting:
            self._supervisor.make_room(min(waiting, self._options.concurrency))

    async def _publish(self) -> None:
        cards = Cards(self._redis, self._store.keys)
        for name, one in self._served.items():
            card = AgentCard.of(one.agent).model_dump_json(exclude_defaults=True).encode()
            life_ms = int(CARD_LIFE_SECONDS * 1000)
            await cards.publish(name, card, worker=self._name, queues=self._queues, life_ms=life_ms)

    async def _hasten(self) -> None:
        """Runs that other workers could not run, having not had their agent, need not wait any longer."""
        for agent in self._served:
            runs = await self._store.hasten(agent)
            if runs:
                _log.info("runs_hastened", agent=agent, runs=len(runs))
            for run in runs:
                self._passed.keep(Popped(*run))

    async def _hear_hints(self) -> None:
        """Cancels and runs that others passed on arrive at once where the hint gets through, and a little later else."""
        async for message in messages(self._redis, self._store.keys.hints):
            with contextlib.suppress(
                StoreError, RedisError, OSError
            ):  # the renewal of the lease brings a cancel, a ring the run
                if not self._passed.hear(message["data"]):
                    await self._look_at(message["data"].decode(errors="replace"))
                elif not await self._face.suspended():
                    await self._face.interrupt()

    async def _look_for_parent(self) -> None:
        if self._options.parent and os.getppid() != self._options.parent and not self._ending.asked.is_set():
            _log.warning("parent_gone", parent=self._options.parent)
            self._ending.ask()

    async def _look_at(self, run: str) -> None:
        if self._supervisor.has(run):
            record = await self._store.info(run)
            if record.cancel:
                self._supervisor.tell(run, Cancel(record.cancel))

    async def _every(self, seconds: float, work: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except (StoreError, RedisError, OSError) as error:
                _log.warning("upkeep_failed", work=getattr(work, "__name__", ""), error=str(error))


@contextlib.asynccontextmanager
async def _together(*works: Any) -> AsyncGenerator[None]:
    """Runs side tasks beside the block. If one of them fails, the failure ends the process: it must not limp on."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        await cancelled(*tasks)
