"""The parent of several worker processes: restarts the dead, and frees their leases at once.

Each child is a fresh interpreter; nothing is forked. The parent moves no runs itself.
"""

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.errors import StoreError
from scheduler.deployment import Deployment
from scheduler.store import Store
from scheduler.sweeps.leases import Reaper
from scheduler.sweeps.rings import Ringer
from worker.rq_worker import forget_worker
from worker.service import worker_name

SHORT_LIFE_SECONDS: Final = 5.0
LONGEST_PAUSE_SECONDS: Final = 30.0
KILL_AFTER_SECONDS: Final = 15.0
"""How long a child may outlast its grace before it is killed."""

_log: Final[Any] = structlog.get_logger("pawl.processes")


class Processes:
    """Keeps a number of worker processes alive.

    Args:
        command: The command line of a worker with the given mark in its name.
        count: How many there shall be.
        grace: Seconds that a worker has for its drain.
    """

    def __init__(
        self, command: Callable[[str], Sequence[str]], count: int, deployment: Deployment, *, grace: float
    ) -> None:
        self._command = command
        self._count = count
        self._grace = grace
        self._deployment = deployment
        self._ending = asyncio.Event()
        self._children: dict[str, asyncio.subprocess.Process] = {}

    async def run(self) -> int:
        """Works until it is told to end (SIGTERM, SIGINT), and ends its children with it.

        Returns:
            0; 1 if a child could not end in good order.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        redis, blocking = self._deployment.connect(), self._deployment.connect_blocking(connections=1)
        store = Store(redis, self._deployment.scripts)
        reaper = Reaper(redis, store, Ringer(redis, store))

        async def free(name: str) -> int:
            """The runs of a dead child need not wait for their leases to run out, and RQ forgets it. Returns how many it had."""
            runs = 0
            try:
                runs = await reaper.free(name)
                _log.info("leases_freed", child=name, runs=runs)
                await asyncio.to_thread(forget_worker, blocking, name)
            except (StoreError, RedisError, OSError) as error:
                _log.warning("leases_not_freed", child=name, error=str(error))
            return runs

        try:
            codes = await asyncio.gather(*(self._keep(free) for _ in range(self._count)))
        finally:
            await redis.aclose()
            blocking.close()
        return int(any(codes))

    def _end(self) -> None:
        """Passes the wish to end on to the children; said twice, they end at once."""
        self._ending.set()
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)

    async def _keep(self, free: Callable[[str], Awaitable[int]]) -> int:
        """Keeps one place filled. Returns the last child's exit code."""
        pause = 0.0
        while True:
            started = time.monotonic()
            mark = secrets.token_hex(4)
            # A session of its own: Ctrl-C reaches the parent only, which passes it on in good order.
            child = await asyncio.create_subprocess_exec(*self._command(mark), start_new_session=True)
            name = worker_name(child.pid, mark)
            self._children[name] = child
            _log.info("process_started", child=name, process=child.pid)
            if self._ending.is_set():
                child.send_signal(signal.SIGTERM)
            code = await self._end_of(child)
            del self._children[name]
            # A tool that ends the process can give it any exit code; a worker that leaves in good order has no runs left.
            runs = await free(name)
            if self._ending.is_set():
                return code
            if code == 0 and not runs:
                _log.info("process_ended", child=name)
                return 0
            _log.error("process_died", child=name, process=child.pid, code=code, runs=runs)
            lived = time.monotonic() - started
            pause = min(max(pause * 2, 0.5), LONGEST_PAUSE_SECONDS) if lived < SHORT_LIFE_SECONDS else 0.0
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), pause)
                return 0

    async def _end_of(self, child: asyncio.subprocess.Process) -> int:
        """Waits for a child to end; one that does not, long after it was told to, is killed."""
        ended = asyncio.create_task(child.wait())
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait([ended, ending], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not ended.done():
            await asyncio.wait([ended], timeout=self._grace + KILL_AFTER_SECONDS)
        if not ended.done():
            _log.error("process_killed", process=child.pid)
            child.kill()
        return await ended
