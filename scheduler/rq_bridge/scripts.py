"""The scripts about RQ's keys, which stand alone, and their arguments."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rq.scripts import UNIQUE_ENQUEUE_SCRIPT

from scheduler.scripting import LUA, Script
from scheduler.wire import Argument


def _script(name: str) -> Script:
    return Script(name, (LUA / f"{name}.lua").read_text())


POP: Final = _script("rq_pop")
MIRROR: Final = _script("rq_mirror")
MAKE_JOB: Final = Script(
    "rq_make_job",
    "if redis.call('EXISTS', KEYS[4]) == 0 then return 0 end\n"
    f"redis.call('SADD', KEYS[3], KEYS[2])\n{UNIQUE_ENQUEUE_SCRIPT}",
)


def flat(fields: Mapping[str, Any]) -> Iterator[Argument]:
    """The fields of a hash as arguments, without those that are None."""
    for field, value in fields.items():
        if value is not None:
            yield field
            yield value if isinstance(value, str | bytes) else str(value)
