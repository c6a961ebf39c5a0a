"""RQ's lists of runs: the queues that workers take from, and the registries that sweeps look through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rq.suspension import WORKERS_SUSPENDED
from rq.utils import now

from scheduler.rq_bridge.names import queue_keys
from scheduler.rq_bridge.scripts import POP
from scheduler.scripting import ScriptCall
from scheduler.wire import Reply, ask, number, text, texts

if TYPE_CHECKING:
    from redis.asyncio import Redis


class Popped(NamedTuple):
    """A run id taken from a queue. It stays in the queue's intermediate list until its run is claimed or it is dropped."""

    run_id: str
    queue: str


def pop(queues: Sequence[str], at_most: int) -> ScriptCall[list[Popped] | None]:
    """Takes runs from the queues, the first queue first; None while workers are suspended. Not to be sent twice."""
    keys = [key for queue in queues for key in queue_keys(queue)[:2]]

    def read(reply: Reply) -> list[Popped] | None:
        if text(reply[0]) == "suspended":
            return None
        return [
            Popped(text(run), queues[number(place) - 1]) for place, run in zip(reply[1::2], reply[2::2], strict=True)
        ]

    return ScriptCall(POP, (WORKERS_SUSPENDED, *keys), (at_most,), read)


async def cancelled_through_rq(redis: Redis, queue: str, at_most: int = 100) -> list[str]:
    """Runs whose jobs were cancelled in RQ's tools, oldest first, and some that are long over.

    RQ lists a job that it cancels at the time of the cancel; the mirror lists one at the end of its retention. So the
    live ones among these are to be cancelled, the others to be given to `forget_cancelled`.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    key, until = queue_keys(queue).canceled, str(now().timestamp())
    (members,) = await ask(redis, ("ZRANGEBYSCORE", key, "-inf", until, "LIMIT", 0, at_most))
    return list(texts(members))


async def forget_cancelled(redis: Redis, queue: str, run_ids: Sequence[str]) -> None:
    """Takes runs that are over or gone out of RQ's list of cancelled jobs.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    if run_ids:
        await ask(redis, ("ZREM", queue_keys(queue).canceled, *run_ids))


async def forget_expired(redis: Redis, queue: str) -> None:
    """Takes runs whose retention is over out of RQ's lists. RQ does so itself, but only when someone looks.

    Raises:
        StoreUnavailable: Redis cannot be reached.
    """
    keys, until = queue_keys(queue), str(now().timestamp())
    await ask(redis, *(("ZREMRANGEBYSCORE", key, "-inf", until) for key in (keys.finished, keys.failed)))
