"""The few fields of a record that tell whether there is news of a run."""

from __future__ import annotations

from typing import NamedTuple

from redis.exceptions import ResponseError

from agent.errors import BrokenRecord, RunNotFound
from scheduler.keys import Keys
from scheduler.lifecycle import Status
from scheduler.unavailable import mapped
from scheduler.wire import Value, array, number, text


class Sight(NamedTuple):
    """Where a run stands: `seq` is its last event, `epoch` changes where Redis lost events."""

    status: Status
    wait: str
    seq: int
    epoch: str


def sight_command(keys: Keys, run_id: str) -> tuple[str, ...]:
    """What to ask Redis for."""
    return ("HMGET", keys.run(run_id), *Sight._fields)


def read_sight(run_id: str, reply: Value | ResponseError) -> Sight:
    """What Redis answered.

    Raises:
        RunNotFound: There is no such run, or no longer.
        BrokenRecord: It cannot be read.
        StoreUnavailable: Redis refuses for now.
    """
    if isinstance(reply, ResponseError):
        raise mapped(reply) from reply
    status, wait, seq, epoch = array(reply)
    if status is None:
        raise RunNotFound(f"There is no run {run_id!r}: it never existed, or its retention is over.")
    try:
        return Sight(Status(text(status)), text(wait or b""), number(seq), text(epoch or b""))
    except ValueError as error:
        raise BrokenRecord(f"The record of run {run_id!r} cannot be read: {error}") from error
