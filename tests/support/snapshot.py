"""All that a server holds, taken and put back in few round trips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

_READ = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"list": ("LRANGE", 0, -1),
    b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    b"stream": ("XRANGE", "-", "+"),
}


@dataclass(frozen=True)
class Held:
    """A key: its type, when it expires (ms; -1: never), and what it holds."""

    kind: bytes
    expires_at: int
    content: Any


class Snapshot:
    """What a server held at one moment."""

    def __init__(self, keys: dict[str, Held]) -> None:
        self.keys = keys

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self.keys == other.keys

    def __hash__(self) -> int:
        return hash(tuple(self.keys))

    def named(self, prefix: str) -> Iterator[str]:
        return (key for key in self.keys if key.startswith(prefix))

    def expiry(self, key: str) -> int:
        return self.keys[key].expires_at

    def hash(self, key: str) -> dict[bytes, bytes]:
        return self._content(key, {})

    def text(self, key: str, field: str) -> str:
        return self.hash(key).get(field.encode(), b"").decode()

    def list(self, key: str) -> list[bytes]:
        return self._content(key, [])

    def scores(self, key: str) -> dict[str, float]:
        return {member.decode(): score for member, score in self._content(key, [])}

    def entries(self, key: str) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return self._content(key, [])

    def _content(self, key: str, empty: Any) -> Any:
        held = self.keys.get(key)
        return empty if held is None else held.content

    def without(self, *keys: str) -> Snapshot:
        return Snapshot({key: held for key, held in self.keys.items() if key not in keys})


def take(client: Any, pattern: str = "*") -> Snapshot:
    """Reads everything, or the keys of a pattern."""
    names = sorted(cast("list[bytes]", client.keys(pattern)))
    kinds = _all(client, [("TYPE", name) for name in names])
    reads = [(_READ[kind][0], name, *_READ[kind][1:]) for name, kind in zip(names, kinds, strict=True)]
    contents = _all(client, reads)
    expiries = _all(client, [("PEXPIRETIME", name) for name in names])
    found = zip(names, kinds, expiries, contents, strict=True)
    return Snapshot({name.decode(): Held(kind, at, _plain(kind, content)) for name, kind, at, content in found})


def put_back(client: Any, snapshot: Snapshot) -> None:
    """Makes the server hold this and nothing else."""
    commands: list[tuple[Any, ...]] = [("FLUSHALL",)]
    for key, held in snapshot.keys.items():
        commands += _writes(key, held)
        if held.expires_at >= 0:
            commands.append(("PEXPIREAT", key, held.expires_at))
    _all(client, commands)


def _writes(key: str, held: Held) -> Iterator[tuple[Any, ...]]:
    match held.kind:
        case b"string":
            yield "SET", key, held.content
        case b"hash":
            yield "HSET", key, *(part for pair in held.content.items() for part in pair)
        case b"list":
            yield "RPUSH", key, *held.content
        case b"set":
            yield "SADD", key, *held.content
        case b"zset":
            yield "ZADD", key, *(part for member, score in held.content for part in (repr(score), member))
        case _:
            for entry_id, fields in held.content:
                yield "XADD", key, entry_id, *(part for pair in fields.items() for part in pair)


def _plain(kind: bytes, content: Any) -> Any:
    if kind == b"zset":
        return [(member, float(score)) for member, score in zip(content[::2], content[1::2], strict=True)]
    return content


def _all(client: Any, commands: list[tuple[Any, ...]]) -> list[Any]:
    with client.pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)
        return pipeline.execute()
