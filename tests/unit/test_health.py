"""What the doctor finds, from what was seen; nothing is asked of a server here."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.budget import Budget, Usage
from scheduler.cards import AgentCard
from scheduler.client.run_info import RunInfo
from scheduler.health import Finding, findings
from scheduler.lifecycle import Status
from scheduler.rq_bridge import WorkerInfo
from scheduler.vitals import Vitals

NOW = datetime(2030, 1, 1, tzinfo=UTC)

WORKER = WorkerInfo(
    name="w1", host="h", process_id=1, queues=("high", "default", "low"), state="idle", runs=0, completed=0, failed=0,
    started_at=NOW, seen_at=NOW, prefix="{pawl}",
)  # fmt: skip

WELL = Vitals(
    prefix="{pawl}",
    server={
        "redis_version": "7.0.15", "role": "master", "aof_enabled": "1", "aof_last_write_status": "ok",
        "maxmemory_policy": "noeviction", "maxmemory": "0", "used_memory": "1000000", "connected_slaves": "0",
    },
    config={"appendfsync": "everysec", "save": "", "min-replicas-to-write": "0"},
    clock_difference=0.01,
    workers=(WORKER,),
    suspended=False,
    queue_lengths={"default": 0},
    cards={"support": AgentCard(name="support")},
    counts={Status.COMPLETED: 3},
    waiting_longest=(),
)  # fmt: skip


def run(agent: str = "support", *, seconds: float = 5, **fields: Any) -> RunInfo:
    created = NOW - timedelta(seconds=seconds)
    queued = RunInfo(
        id="0-1", status=Status.QUEUED, agent=agent, reason="waits", created_at=created, usage=Usage(), budget=Budget(),
        budget_left={},
    )  # fmt: skip
    return replace(queued, **fields)


def found(check: str, **changes: Any) -> Finding | None:
    """What a check says once something is changed, which no other check may find worth a word."""
    all_of_it = findings(replace(WELL, **changes), NOW)
    return next((finding for finding in all_of_it if finding.check == check), None)


def with_server(**fields: str) -> dict[str, Any]:
    return {"server": {**WELL.server, **{name.replace("__", "-"): value for name, value in fields.items()}}}


def with_config(**fields: str) -> dict[str, Any]:
    return {"config": {**WELL.config, **{name.replace("_", "-"): value for name, value in fields.items()}}}


def test_a_deployment_that_is_well_has_no_advice() -> None:
    assert {(finding.level, finding.advice) for finding in findings(WELL, NOW)} == {("ok", "")}


@pytest.mark.parametrize(
    ("check", "changes", "level", "words"),
    [
        ("version", with_server(redis_version="6.0.9"), "problem", "Redis 6.0.9"),
        ("version", with_server(redis_version="10.1.0"), "ok", "Redis 10.1.0"),
        ("version", with_server(redis_version="7.2.4", valkey_version="9.1.2"), "ok", "Valkey 9.1.2"),
        ("role", with_server(role="slave"), "problem", "replica"),
        ("persistence", with_server(aof_enabled="0"), "problem", "loses all runs"),
        ("persistence", with_server(aof_enabled="0") | with_config(save="3600 1"), "warning", "snapshots only"),
        ("persistence", with_server(aof_last_write_status="err"), "problem", "the last write failed"),
        ("persistence", with_config(appendfsync="no"), "warning", "fsync no"),
        ("persistence", {"config": {}}, "ok", "fsync unknown"),
        ("memory", with_server(maxmemory_policy="allkeys-lru"), "problem", "allkeys-lru"),
        ("memory", with_server(maxmemory="1050000"), "warning", "95% of maxmemory"),
        ("replicas", with_server(connected_slaves="2"), "warning", "min-replicas-to-write is 0"),
        ("replicas", with_server(connected_slaves="2") | with_config(min_replicas_to_write="1"), "ok", "2, min"),
        ("clock", {"clock_difference": -7.0}, "warning", "7.0 s behind Redis'"),
        ("workers", {"workers": ()}, "warning", "none"),
        ("workers", {"workers": (), "counts": {Status.QUEUED: 4}}, "problem", "none, and 4 runs wait"),
        ("suspension", {"suspended": True}, "problem", "rq suspend"),
        ("agents", {"waiting_longest": (run("sales"), run("sales"))}, "problem", "'sales', and 2 runs wait"),
        ("queues", {"queue_lengths": {"gpu": 3}}, "problem", "'gpu', where 3 runs ring"),
        (
            "queues",
            {"workers": (WORKER, replace(WORKER, prefix="{other}"))},
            "problem",
            "workers of {other} use the same keys",
        ),
        ("cards", {"cards": {"support": None}}, "warning", "'support' cannot be read"),
        ("runs", {"queue_lengths": {"default": 2}}, "ok", "3 completed; in RQ's queues: default 2"),
        ("oldest run", {"waiting_longest": (run(seconds=90),)}, "warning", "0-1 was submitted 90 s ago: waits"),
        ("oldest run", {"waiting_longest": (run(seconds=9),)}, "ok", "9 s ago"),
    ],
)
def test_each_check_finds_its_own(check: str, changes: dict[str, Any], level: str, words: str) -> None:
    finding = found(check, **changes)

    assert finding is not None
    assert (finding.level, words in finding.what) == (level, True), finding
    assert bool(finding.advice) == (level != "ok"), finding


@pytest.mark.parametrize("check", ["role", "replicas", "suspension", "queues", "cards", "oldest run"])
def test_a_check_without_a_matter_is_silent(check: str) -> None:
    assert found(check) is None


def test_a_run_that_may_not_begin_yet_is_not_late() -> None:
    later = run(seconds=500, due_at=NOW + timedelta(seconds=1))

    assert found("oldest run", waiting_longest=(later,)) is None
    behind_it = found("oldest run", waiting_longest=(later, run(seconds=70)))
    assert behind_it is not None
    assert "70 s ago" in behind_it.what


@pytest.mark.parametrize(
    ("changes", "agent", "advice"),
    [
        ({"suspended": True}, "support", "rq resume"),
        ({}, "sales", "start a worker with its module"),
        ({}, "support", "start more workers"),
        ({"workers": ()}, "support", "start a worker"),
    ],
)
def test_the_advice_for_the_oldest_run_is_what_would_let_it_begin(
    changes: dict[str, Any], agent: str, advice: str
) -> None:
    finding = found("oldest run", waiting_longest=(run(agent, seconds=90),), **changes)

    assert finding is not None
    assert advice in finding.advice
