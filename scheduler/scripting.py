"""Lua scripts as values: a call says which script, its keys, its arguments and how its reply is read.

A call can be sent alone (`run`, `run_blocking`) or together with others in one pipeline (`run_many`), and may be sent again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar, cast

import redis as blocking
from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from agent.values import value
from scheduler.keys import lua_names
from scheduler.unavailable import mapped
from scheduler.wire import Argument, Line, Reply, Value, ask, send

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

LUA = Path(__file__).parent / "lua"


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua file, with the prelude before it."""

    name: str
    text: str = field(repr=False)
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


Library: TypeAlias = Mapping[str, Script]


def read_library(folder: Path = LUA) -> Library:
    """All scripts of a folder by name, but for those of RQ's mirror, which stand alone."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.lua"))}
    prelude, records, sessions = texts.pop("prelude"), texts.pop("records"), texts.pop("sessions")
    included = {"-- include records\n": records, "-- include sessions\n": records + sessions}
    return {
        name: Script(name, _whole(prelude, text, included))
        for name, text in texts.items()
        if not name.startswith("rq_")
    }


def _whole(prelude: str, text: str, included: Mapping[str, str]) -> str:
    """A script with what it builds on. Keys that only the included text uses are made where this begins."""
    mark = next((mark for mark in included if mark in text), "")
    front, _, rest = text.partition(mark) if mark else (text, "", "")
    more = included.get(mark, "")
    names = lua_names(prelude + front + rest)
    return "".join((_GIVEN, _locals(names), prelude, front, _locals(lua_names(more, known=names)), more, rest))


_GIVEN: Final = "local own, PREFIX = ARGV[1], KEYS[1]:sub(1, -#ARGV[1] - #'run:' - 1)\n"


def _locals(names: Mapping[str, str]) -> str:
    return "".join(f"local {name} = {making}\n" for name, making in names.items())


@value
class ScriptCall(Generic[R_co]):
    """One intention. Sending it twice does no more than sending it once."""

    script: Script
    keys: Sequence[str | bytes]
    arguments: Sequence[Argument]
    read: Callable[[Reply], R_co]

    def command(self) -> tuple[Argument, ...]:
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.arguments)


async def run(to: Redis | Line, call: ScriptCall[R]) -> R:
    """Sends one call. Raises StoreUnavailable where Redis cannot be reached or refuses, BrokenRecord for a broken record."""
    (outcome,) = await run_many(to, (call,))
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def run_many(to: Redis | Line, calls: Sequence[ScriptCall[R]]) -> list[R | Exception]:
    """Sends calls in one pipeline; an error in the place of an answer is that call's alone.

    Raises StoreUnavailable if the connection failed: any of the calls may have run. Send them again.
    """
    replies = await send(to, [call.command() for call in calls])
    unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        await ask(to, *(("SCRIPT", "LOAD", script.text) for script in {calls[index].script for index in unknown}))
        again = await send(to, [calls[index].command() for index in unknown])
        for index, reply in zip(unknown, again, strict=True):
            replies[index] = reply
    return [_read(call, reply) for call, reply in zip(calls, replies, strict=True)]


def run_blocking(redis: blocking.Redis, call: ScriptCall[R]) -> R:
    """`run` for a thread with a connection of its own."""
    try:
        command = call.command()
        try:
            reply = cast(Reply, redis.execute_command(*command))  # pyright: ignore[reportUnknownMemberType]
        except NoScriptError:
            redis.script_load(call.script.text)
            reply = cast(Reply, redis.execute_command(*command))  # pyright: ignore[reportUnknownMemberType]
    except (RedisError, OSError) as error:
        raise mapped(error) from error
    return call.read(reply)


def _read(call: ScriptCall[R], reply: Value | ResponseError) -> R | Exception:
    if isinstance(reply, ResponseError):
        return mapped(reply)
    try:
        return call.read(cast(Reply, reply))
    except Exception as error:  # a reply that cannot be read concerns this call alone
        return error
