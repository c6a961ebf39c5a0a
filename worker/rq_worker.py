"""The worker as RQ's tools know it. The only worker module that imports rq.

RQ sees one worker that executes many jobs at once: `rq info` and dashboards list it, `rq suspend` stops its taking of runs,
and its channel brings the commands to shut down and to stop a job. It knows nothing of agents: whoever moves the runs tells
it which activations begin and end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import structlog
from rq import worker_registration
from rq.command import parse_payload
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.suspension import WORKERS_SUSPENDED
from rq.worker import BaseWorker, WorkerStatus

from agent.errors import ConfigurationError
from scheduler.keys import Keys
from scheduler.rq_bridge import (
    PREFIX_FIELD,
    Mirrored,
    Popped,
    Standing,
    WorkerFace,
    execution_of,
    mirror,
    pop,
    queue_keys,
)
from scheduler.scripting import run
from scheduler.wire import Line, ask
from worker.batches import Batches
from worker.cancelling import cancelled
from worker.channels import messages
from worker.doorbell import Arrival, Door, Doorbell

if TYPE_CHECKING:
    import redis as blocking
    from redis.asyncio import Redis

BEAT_SECONDS: Final = 15
"""How often `beat` is to be called."""

_WORKER_SECONDS: Final = 4 * BEAT_SECONDS  # how long RQ believes in a worker that does not beat
_BEATS_IN_A_ROW: Final = 50  # then other tasks have their turn
_TELL_SECONDS: Final = 0.005
_PLACE_FIELD: Final = "pawl_place"
_LOOK_AGAIN_SECONDS: Final = 1.0  # while workers are suspended


class AgentWorker(BaseWorker):
    """Registration, heartbeat, taking of runs, bookkeeping of activations and commands of one worker process.

    Args:
        queues: Names, the most urgent first.
        name: Unique among all workers that ever live, such as host:pid:random.
        connection: For the few calls of RQ that block; used in other threads.
        redis: Without retries of its own. Without it, the worker can only be looked at, as RQ's tools do.
        keys: Of the deployment.
        on_shutdown: Called when RQ's command to shut down has come.
        on_stop: Called with the id of a run that was stopped or cancelled through RQ.
    """

    def __init__(
        self,
        queues: Sequence[str],
        name: str | None = None,
        *arguments: Any,
        redis: Redis | None = None,
        keys: Keys | None = None,
        on_shutdown: Callable[[], None] = lambda: None,
        on_stop: Callable[[str], None] = lambda run_id: None,
        **options: Any,
    ) -> None:
        options.setdefault("serializer", JSONSerializer)
        cast("Any", super()).__init__(queues, name, *arguments, **options)
        self._redis = redis
        self._keys = keys or Keys()
        self._on_shutdown = on_shutdown
        self._on_stop = on_stop
        self._standings: dict[str, Standing] = {}  # by activation, like RQ's `executions`
        self._untold: list[str] = []  # activations that have just begun
        self._suspended = False
        self._registered = False
        self._listener: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("pawl.rq")

    @property
    def redis(self) -> Redis:
        if self._redis is None:
            raise RuntimeError("This worker was read from Redis or made by RQ's tools: it can only be looked at.")
        return self._redis

    @cached_property
    def _line(self) -> Line:
        return Line(self.redis)

    @cached_property
    def _batches(self) -> Batches:
        return Batches(self.redis)

    @cached_property
    def _doorbell(self) -> Doorbell:
        return Doorbell(self.redis, [Door(*queue_keys(queue)[:2]) for queue in self.queue_names()], self.suspended)

    # ---- being known ------------------------------------------------------------------------------------------------

    async def register(self) -> None:
        """RQ's tools know the worker from here on, and its commands arrive.

        Raises:
            ConfigurationError: A worker of this name lives, as far as can be told from here.
            redis.RedisError: Redis cannot be reached.
        """
        await asyncio.to_thread(self._take_name)
        self._registered = True
        await self.beat()
        self._listener = asyncio.create_task(self._listen())

    def _take_name(self) -> None:
        """RQ keeps the name of a worker that was killed for a minute; where that can be told, nobody has to wait for it."""
        if _was_killed_here(self.connection, self.key):
            forget_worker(self.connection, self.name)
        try:
            self.register_birth()
        except ValueError:
            seconds = max(cast("Any", self.connection).ttl(self.key), 1)
            raise ConfigurationError(
                f"There is a worker named {self.name!r}: it lives, or was killed less than {_WORKER_SECONDS} seconds ago. "
                f"Choose another --name, leave --name out, or, if it was killed, try again in {seconds} s."
            ) from None

    def serialize(self) -> dict[str, Any]:
        """What RQ keeps of the worker, which deployment's it is, and where its process is looked for."""
        return cast("Any", super()).serialize() | {PREFIX_FIELD: self._keys.prefix, _PLACE_FIELD: _place()}

    async def unregister(self) -> None:
        """Tells what is still to be told, and leaves, if it ever came: the name may be another's. Nobody may wait for work.

        Raises:
            redis.RedisError: Redis cannot be reached; RQ forgets the worker by itself in a minute.
        """
        if self._listener:
            await cancelled(self._listener)
        self._tell_begun()
        await self._batches.drained()
        await self._doorbell.close()
        await self._line.close()
        if self._registered:
            await asyncio.to_thread(self.register_death)

    async def beat(self) -> None:
        """RQ believes in the worker and in its activations for another minute. To be called every `BEAT_SECONDS`.

        What RQ's tools have made of a running job meanwhile is put right, and a cancel among it is heard.

        Raises:
            redis.RedisError: Redis cannot be reached.
        """
        async with self.redis.pipeline(transaction=False) as pipeline:
            writer = cast("Any", pipeline)
            self.set_state(self._state_to_show(), pipeline=writer)
            self.heartbeat(_WORKER_SECONDS, pipeline=writer)
            writer.hexists(self.key, "birth")
            known = (await pipeline.execute())[-1]
            if not known:  # it was silent for too long
                writer.hset(self.key, mapping=cast("Any", self).serialize())
                worker_registration.register(self, writer)
                await pipeline.execute()
        for count, activation in enumerate(tuple(self.executions)):
            if activation in self.executions:  # it may have ended while others were told
                self._tell_running(activation)
            if count % _BEATS_IN_A_ROW == 0:
                await asyncio.sleep(0)

    # ---- taking runs ------------------------------------------------------------------------------------------------

    async def pop(self, at_most: int) -> list[Popped]:
        """Takes what the queues hold, in their order; nothing while workers are suspended.

        Raises:
            StoreUnavailable: What it may have taken is rung again when it is due for long.
        """
        popped = await run(self._line, pop(self.queue_names(), at_most))
        await self._remember_suspension(popped is None)
        return popped or []

    async def wait_for_work(self, seconds: float) -> list[Popped]:
        """Waits until a queue gives something: at most one run of each. Empty after `seconds`, or when `interrupt`ed.

        To be called when `pop` found nothing. While workers are suspended it only waits.

        Raises:
            redis.RedisError: What it may have taken is rung again when it is due for long.
        """
        if self._suspended:
            await asyncio.sleep(min(seconds, _LOOK_AGAIN_SECONDS))
            return []
        arrivals = await self._doorbell.wait(seconds)
        names = {queue_keys(queue).queue: queue for queue in self.queue_names()}
        return [Popped(arrived, names[door.queue]) for door, arrived in arrivals]

    async def interrupt(self) -> None:
        """Ends a `wait_for_work` at once."""
        await self._doorbell.interrupt()

    async def suspended(self) -> bool:
        """Whether `rq suspend` stands."""
        (found,) = await ask(self._line, ("EXISTS", WORKERS_SUSPENDED))
        suspended = found == 1
        await self._remember_suspension(suspended)
        return suspended

    async def drop(self, popped: Iterable[Popped]) -> None:
        """Forgets runs that were taken and could not be claimed: their records know when to ring again."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            for run_id, queue in popped:
                pipeline.lrem(queue_keys(queue).intermediate, 1, run_id)
            await pipeline.execute()

    async def put_back(self, popped: Iterable[Popped]) -> None:
        """Returns runs that were taken to the heads of their queues, for other workers."""
        await self._doorbell.put_back([Arrival(Door(*queue_keys(queue)[:2]), run_id) for run_id, queue in popped])

    # ---- activations ------------------------------------------------------------------------------------------------

    def started(self, standing: Standing, activation: str) -> None:
        """An activation of a running run has begun. RQ is told a little later, for the run's own first moves come first."""
        self.executions[activation] = execution_of(standing.run_id, activation, self.name, standing.since)
        self._standings[activation] = standing
        if not self._untold:
            asyncio.get_running_loop().call_later(_TELL_SECONDS, self._tell_begun)
        self._untold.append(activation)

    def _tell_begun(self) -> None:
        """Tells RQ what has just begun."""
        untold, self._untold = self._untold, []
        for activation in untold:
            self._tell_running(activation)

    def ended(self, standing: Standing, activation: str) -> asyncio.Future[Mirrored]:
        """An activation has ended, and the run stands elsewhere. What became of it comes as the result.

        A wish is for the caller to fulfil. If it fails with a StoreUnavailable, a sweep tells RQ later.
        """
        self._tell_begun()
        self._standings.pop(activation, None)
        execution = self.executions.pop(activation, None)
        return self._batches.send(mirror(self._keys, standing, execution, self._face()))

    async def lost(self, activation: str) -> None:
        """Another worker owns the run. Its standing is not ours to tell; our execution is over.

        Raises:
            redis.RedisError: The execution is given up by RQ in a minute.
        """
        self._tell_begun()
        standing = self._standings.pop(activation, None)
        if standing is None:
            return
        job = Job(standing.run_id, connection=self.connection)
        job.origin = standing.queue
        async with self.redis.pipeline(transaction=True) as pipeline:
            self.cleanup_execution(job, cast("Any", pipeline), self.executions.get(activation))
            await pipeline.execute()

    def _tell_running(self, activation: str) -> None:
        standing, execution = self._standings[activation], self.executions[activation]
        told = self._batches.send(mirror(self._keys, standing, execution, self._face()))
        told.add_done_callback(lambda reply: self._hear(standing.run_id, reply))

    def _hear(self, run_id: str, reply: asyncio.Future[Mirrored]) -> None:
        if reply.cancelled():
            return
        if error := reply.exception():
            self._log.warning("rq_not_told", run=run_id, status="running", error=str(error))  # the next beat tells it
        elif reply.result() is Mirrored.CANCEL_WISHED:
            self._on_stop(run_id)

    def _face(self) -> WorkerFace:
        return WorkerFace(self.key, self.executions_key, self._state_to_show().value)

    def _state_to_show(self) -> WorkerStatus:
        if self.executions:
            return WorkerStatus.BUSY
        return WorkerStatus.SUSPENDED if self._suspended else WorkerStatus.IDLE

    async def _remember_suspension(self, suspended: bool) -> None:
        if suspended == self._suspended:
            return
        self._suspended = suspended
        async with self.redis.pipeline(transaction=False) as pipeline:
            self.set_state(self._state_to_show(), pipeline=cast("Any", pipeline))
            await pipeline.execute()

    # ---- commands ---------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        async for message in messages(self.redis, self.pubsub_channel_name):
            self._obey(message)

    def _obey(self, message: dict[Any, Any]) -> None:
        try:
            self._carry_out(parse_payload(message))
        except Exception:  # whatever somebody sent: the next command is to be heard
            self._log.exception("rq_command_failed", message=message)

    def _carry_out(self, payload: object) -> None:
        match payload:
            case {"command": "shutdown"}:
                self._on_shutdown()
            case {"command": "stop-job", "job_id": str(run_id)} if self._runs(run_id):
                self._on_stop(run_id)
            case {"command": "stop-execution", "execution_id": str(activation)} if activation in self.executions:
                self._on_stop(self.executions[activation].job_id)
            case {"command": "kill-horse"}:
                self._log.warning("rq_command_ignored", command="kill-horse", why="it would end all runs here")
            case _:
                self._log.warning("rq_command_ignored", command=payload, why="unknown, or no run of this worker")

    def _runs(self, run_id: str) -> bool:
        return any(execution.job_id == run_id for execution in self.executions.values())

    # ---- what RQ's own tools call -----------------------------------------------------------------------------------

    @property
    def connection_timeout(self) -> int:
        """RQ gives its connection at least so long for one command. Nothing here blocks on it."""
        return 1

    def work(self, *arguments: Any, **options: Any) -> NoReturn:
        """RQ's command `rq worker` cannot make the steps of agents.

        Raises:
            SystemExit: Always, and says what to start instead.
        """
        raise SystemExit(
            "`rq worker` cannot run agents: it does not know where they are. Start\n\n"
            f"    pawl worker yourapp.agents --queues {','.join(self.queue_names())}\n"
        )


def forget_worker(connection: blocking.Redis, name: str) -> None:
    """RQ's tools forget a worker whose process died. Its executions go when its runs are taken over. Blocks.

    Raises:
        redis.RedisError: RQ forgets the worker by itself in a minute.
    """
    dead = AgentWorker.find_by_key(AgentWorker.redis_worker_namespace_prefix + name, connection)
    if dead:
        dead.register_death()


def _was_killed_here(connection: blocking.Redis, key: str) -> bool:
    """Whether the process that RQ has a worker of is gone. A process that only may be another one counts as there. Blocks."""
    place, process = cast("tuple[bytes | None, bytes | None]", connection.hmget(key, _PLACE_FIELD, "pid"))
    if not place or place.decode() != _place() or not (process or b"").isdigit():
        return False
    try:
        os.kill(int(process or 0), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's, or no process at all
        return False
    return False


def _place() -> str:
    """Within what the id of a process means one process: this boot of this machine, or a container; '' where nothing tells.

    A name of the host does not: containers may share it, and have processes of the same ids.
    """
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
