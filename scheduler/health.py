"""PURE. What is wrong with a deployment, and what to do about it. One small function a check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from scheduler.client.run_info import RunInfo
from scheduler.lifecycle import Status
from scheduler.vitals import Vitals

Level = Literal["ok", "warning", "problem"]

OLDEST_REDIS: Final = (6, 2)
MOST_CLOCK_DIFFERENCE: Final = 2.0
LONG_WAIT_SECONDS: Final = 60.0
PRIORITY_QUEUES: Final = ("high", "low")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `advice`: what to do, where something is not well."""

    check: str
    level: Level
    what: str
    advice: str = ""


def findings(vitals: Vitals, now: datetime | None = None) -> list[Finding]:
    """All checks of a Redis that answers."""
    moment = now or datetime.now(UTC)
    checks: list[Callable[[Vitals], Iterator[Finding]]] = [
        redis_version,
        role,
        persistence,
        memory,
        replicas,
        clock,
        worker_processes,
        suspension,
        agents_without_a_worker,
        queues_without_a_worker,
        shared_queues,
        unreadable_cards,
        queue_depth,
    ]
    return [finding for check in checks for finding in check(vitals)] + list(oldest_waiting_run(vitals, moment))


def redis_version(vitals: Vitals) -> Iterator[Finding]:
    """Redis 6.2 or any Valkey."""
    name, version = "Redis", vitals.server.get("redis_version", "")
    if "valkey_version" in vitals.server:
        name, version = "Valkey", vitals.server["valkey_version"]
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if name == "Redis" and numbers < OLDEST_REDIS:
        yield Finding("version", "problem", f"{name} {version}", "upgrade to Redis 6.2 or later, or to Valkey")
    else:
        yield Finding("version", "ok", f"{name} {version}")


def role(vitals: Vitals) -> Iterator[Finding]:
    """Runs are written to a primary."""
    if vitals.server.get("role") in ("slave", "replica"):
        yield Finding(
            "role", "problem", "this is a replica, which takes no writes", "point PAWL_REDIS_URL to the primary"
        )


def persistence(vitals: Vitals) -> Iterator[Finding]:
    """What survives a restart of Redis."""
    server = vitals.server
    if server.get("aof_enabled") == "1":
        failed = server.get("aof_last_write_status", "ok") != "ok"
        how = f"append-only file, fsync {vitals.config.get('appendfsync', 'unknown')}"
        if failed:
            yield Finding(
                "persistence", "problem", f"{how}: the last write failed", "see Redis' log; is its disk full?"
            )
        elif vitals.config.get("appendfsync") == "no":
            yield Finding("persistence", "warning", how, "set appendfsync to everysec or always")
        else:
            yield Finding("persistence", "ok", how)
    elif vitals.config.get("save") == "":
        yield Finding("persistence", "problem", "none: a restart of Redis loses all runs", "set appendonly yes")
    else:
        yield Finding("persistence", "warning", "snapshots only: a crash loses minutes of work", "set appendonly yes")


def memory(vitals: Vitals) -> Iterator[Finding]:
    """Runs are not a cache: nothing of them may be evicted."""
    policy = vitals.server.get("maxmemory_policy") or vitals.config.get("maxmemory-policy", "")
    used, limit = int(vitals.server.get("used_memory", 0)), int(vitals.server.get("maxmemory", 0))
    if policy and policy != "noeviction":
        words = f"maxmemory-policy is {policy}: Redis may throw parts of runs away"
        yield Finding("memory", "problem", words, "set maxmemory-policy noeviction")
    elif limit and used > 0.9 * limit:
        words = f"{used / limit:.0%} of maxmemory is in use"
        yield Finding("memory", "warning", words, "raise maxmemory, or shorten PAWL_RUN_RETENTION_DAYS")
    else:
        yield Finding("memory", "ok", f"{used / 2**20:.1f} MiB in use, {policy or 'policy not told'}")


def replicas(vitals: Vitals) -> Iterator[Finding]:
    """An old primary that is cut off must not go on acknowledging."""
    count = int(vitals.server.get("connected_slaves", 0))
    least = vitals.config.get("min-replicas-to-write", vitals.config.get("min-slaves-to-write", "0"))
    if count and least == "0":
        words = f"{count} replicas, and min-replicas-to-write is 0: a primary that is cut off would go on acknowledging"
        yield Finding("replicas", "warning", words, "set min-replicas-to-write 1")
    elif count:
        yield Finding("replicas", "ok", f"{count}, min-replicas-to-write {least}")


def clock(vitals: Vitals) -> Iterator[Finding]:
    """Leases go by Redis' clock alone; RQ's tools go by this machine's."""
    difference = vitals.clock_difference
    words = f"{abs(difference):.1f} s {'ahead of' if difference > 0 else 'behind'} Redis'"
    if abs(difference) > MOST_CLOCK_DIFFERENCE:
        yield Finding("clock", "warning", f"this machine's clock is {words}", "synchronise the clocks (NTP)")
    else:
        yield Finding("clock", "ok", words)


def worker_processes(vitals: Vitals) -> Iterator[Finding]:
    """Whether somebody works."""
    if vitals.workers:
        runs = sum(worker.runs for worker in vitals.workers)
        yield Finding("workers", "ok", f"{len(vitals.workers)}, with {runs} runs")
    elif vitals.counts.get(Status.QUEUED):
        queued = vitals.counts[Status.QUEUED]
        yield Finding("workers", "problem", f"none, and {queued} runs wait", "start one: `pawl worker <module>`")
    else:
        yield Finding("workers", "warning", "none", "start one: `pawl worker <module>`")


def suspension(vitals: Vitals) -> Iterator[Finding]:
    """`rq suspend` stands until somebody takes it back."""
    if vitals.suspended:
        yield Finding("suspension", "problem", "workers take no runs since `rq suspend`", "let them go on: `rq resume`")


def agents_without_a_worker(vitals: Vitals) -> Iterator[Finding]:
    """Runs that wait for an agent which no worker has."""
    missing = Counter(run.agent for run in vitals.waiting_longest if run.agent not in vitals.cards)
    for agent, count in sorted(missing.items()):
        words = f"no worker has {agent!r}, and {_many(count)} for it"
        yield Finding("agents", "problem", words, "start a worker with its module, or cancel these runs")
    if not missing:
        yield Finding("agents", "ok", ", ".join(sorted(vitals.cards)) or "none published")


def queues_without_a_worker(vitals: Vitals) -> Iterator[Finding]:
    """Runs in a queue that no worker takes from."""
    taken = {queue for worker in vitals.workers for queue in worker.queues}
    if not vitals.workers:
        return
    for queue, length in sorted(vitals.queue_lengths.items()):
        if length and queue not in taken:
            words = f"no worker takes from {queue!r}, where {length} runs ring"
            yield Finding("queues", "problem", words, f"start a worker with --queues {queue}")


def shared_queues(vitals: Vitals) -> Iterator[Finding]:
    """Two deployments that take each other's rings: their runs wait until they are rung anew, again and again."""
    others = sorted({worker.prefix for worker in vitals.workers} - {"", vitals.prefix})
    if others:
        words = (
            f"workers of {', '.join(others)} use the same keys of RQ as {vitals.prefix}: each takes the other's runs"
        )
        yield Finding("queues", "problem", words, "set another RQ_KEY_PREFIX for each PAWL_NAMESPACE")


def unreadable_cards(vitals: Vitals) -> Iterator[Finding]:
    """Cards of another version."""
    for agent in sorted(agent for agent, card in vitals.cards.items() if card is None):
        words = f"the card of {agent!r} cannot be read here"
        yield Finding("cards", "warning", words, "let clients and workers have the same version of Pawl")


def queue_depth(vitals: Vitals) -> Iterator[Finding]:
    """How much there is to do; said, not judged."""
    runs = ", ".join(f"{vitals.counts[status]} {status}" for status in Status if vitals.counts.get(status))
    rings = ", ".join(f"{queue} {length}" for queue, length in sorted(vitals.queue_lengths.items()) if length)
    yield Finding("runs", "ok", f"{runs or 'none'}; in RQ's queues: {rings or 'nothing'}")


def oldest_waiting_run(vitals: Vitals, now: datetime) -> Iterator[Finding]:
    """The queued run that has waited longest although it could begin, and why."""
    due = [run for run in vitals.waiting_longest if _may_begin(run, now)]
    if not due:
        return
    waited = (now - due[0].created_at).total_seconds()
    words = f"{due[0].id} was submitted {waited:.0f} s ago: {due[0].reason}"
    if waited > LONG_WAIT_SECONDS:
        yield Finding("oldest run", "warning", words, _help_for(due[0], vitals))
    else:
        yield Finding("oldest run", "ok", words)


def _help_for(run: RunInfo, vitals: Vitals) -> str:
    """What would let a run begin that waits although it could."""
    if vitals.suspended:
        return "let workers go on: `rq resume`"
    if run.agent not in vitals.cards:
        return "start a worker with its module, or cancel it"
    return "start more workers, or raise --concurrency" if vitals.workers else "start a worker"


def _may_begin(run: RunInfo, now: datetime) -> bool:
    return run.due_at is None or run.due_at <= now


def _many(count: int) -> str:
    return "1 run waits" if count == 1 else f"{count} runs wait"
