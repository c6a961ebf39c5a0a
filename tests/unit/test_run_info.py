"""What is said of a run, and why it waits."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from agent.budget import Budget, Reservation, Usage
from agent.errors import BrokenRecord, ConfigurationError
from agent.events import Event, RunBudgetExceeded, RunCancelled, RunCompleted, RunFailed
from agent.state import Checkpoint
from scheduler.client.limits import additions_of
from scheduler.client.run_info import Facts, Request, RunInfo, Surroundings, info_of
from scheduler.lifecycle import Status
from scheduler.records import RunRecord
from scheduler.replies import Ask

CREATED = 1_800_000_000_000
NOW = CREATED + 60_000

QUEUED = RunRecord(
    id="0-1", status=Status.QUEUED, schema=1, agent="support", session="s", tenant="t", queue="default",
    idempotency_key="", digest="", metadata=b'{"mail": 42}', created_at=CREATED, wait="", reason="", moves=1,
    status_at=CREATED, expires_at=None, fence=0, token="", worker="", rev=0, last="", seq=1, step=0, state=b"", open=b"", hold=(),
    over=None, limits=b'{"max_steps": 10}', cancel="", forgotten=False, behind=False, crashes=0, crashes_total=0, rings=0,
    not_before=None, deferrals=0, mirror_status="", epoch="",
)  # fmt: skip


def seen(facts: Facts | None = None, surroundings: Surroundings | None = None, **changes: Any) -> RunInfo:
    return info_of(replace(QUEUED, **changes), facts or Facts(), surroundings or Surroundings(NOW))


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def test_a_fresh_run_has_used_nothing() -> None:
    info = seen()

    assert (info.id, info.status, info.agent, info.session, info.tenant) == ("0-1", "queued", "support", "s", "t")
    assert info.metadata == {"mail": 42}
    assert (info.usage, info.step, info.cost_usd) == (Usage(), 0, Decimal(0))
    assert (info.budget, dict(info.budget_left)) == (Budget(max_steps=10), {"max_steps": 10})
    assert (info.created_at, info.started_at, info.ended_at, info.ended) == (moment(CREATED), None, None, False)


def test_usage_and_steps_come_from_the_checkpoint_and_limits_from_the_record() -> None:
    used = Usage(model_calls=3, input_tokens=100, output_tokens=20, cost_nanousd=5_000_000, active_ms=1_500)
    head = Checkpoint(seq=9, step=3, usage=used, budget=Budget(max_steps=5))
    limits = Budget(max_steps=8, max_cost_usd=Decimal("0.02"), max_wall_seconds=100).model_dump_json().encode()

    info = seen(
        Facts(claimed_at=CREATED + 10), state=head.to_bytes(), limits=limits, status=Status.RUNNING, worker="w1"
    )

    assert (info.step, info.usage, info.cost_usd, info.worker) == (3, used, Decimal("0.005"), "w1")
    assert dict(info.budget_left) == {"max_steps": 5, "max_cost_usd": Decimal("0.015"), "max_wall_seconds": 40.0}
    assert info.started_at == moment(CREATED + 10)


def test_a_call_that_was_cut_off_counts_as_reserved_until_the_next_owner_charges_it() -> None:
    reserved = Reservation(input_tokens=50, output_tokens=4096)
    opened = b"1:a " + reserved.to_bytes()

    assert seen(open=opened, status=Status.RUNNING).usage == Usage()
    after = seen(open=opened)
    assert (after.usage.model_calls, after.usage.output_tokens, after.cost_usd) == (1, 4096, None)


@pytest.mark.parametrize(
    ("ending", "status", "expected"),
    [
        (RunCompleted(output={"total": 7}), Status.COMPLETED, ({"total": 7}, "", None)),
        (
            RunFailed(reason="refused", error="It said no.", partial="Well"),
            Status.FAILED,
            (None, "refused: It said no.", "Well"),
        ),
        (
            RunBudgetExceeded(limit="max_steps", used="10", allowed="10", partial="so far"),
            Status.BUDGET_EXCEEDED,
            (None, "max_steps: used 10 of 10", "so far"),
        ),
        (RunCancelled(reason="user"), Status.CANCELLED, (None, "cancelled (user)", None)),
    ],
)
def test_an_ended_run_says_what_it_came_to(
    ending: Event, status: Status, expected: tuple[object, str, str | None]
) -> None:
    info = seen(Facts(last_event=ending), status=status, status_at=CREATED + 5_000, limits=b'{"max_wall_seconds": 60}')

    assert (info.output, info.error, info.partial) == expected
    assert (info.ended, info.ended_at) == (True, moment(CREATED + 5_000))
    assert dict(info.budget_left)["max_wall_seconds"] == 55.0


@pytest.mark.parametrize(
    ("changes", "surroundings", "words"),
    [
        ({}, {}, "waits for a free worker of queue 'default'"),
        ({}, {"served": {"sales"}}, "no worker has the agent 'support': start one with `pawl worker"),
        ({}, {"served": {"support"}}, "waits for a free worker"),
        ({}, {"served": {"support"}, "suspended": True}, "workers are suspended: `rq resume`"),
        ({"behind": True}, {"active": "0-0"}, "behind run 0-0 of its session"),
        ({"not_before": NOW + 1000}, {}, "starts at 2027-01-15 08:01:01 UTC"),
        ({"not_before": NOW + 1000, "deferrals": 2, "reason": "no such agent"}, {}, "no such agent"),
        ({"reason": "yield"}, {"served": {"support"}}, r"waits for a free worker \(yield\)"),
        ({"status": Status.RUNNING}, {}, "^$"),
        ({"status": Status.RUNNING, "cancel": "user"}, {}, "was asked to end"),
        ({"status": Status.WAITING, "wait": "reply"}, {}, "waits for a reply: `pawl reply 0-1 TEXT`"),
        ({"status": Status.WAITING, "wait": "approval"}, {}, "`pawl approve 0-1` or `pawl reject 0-1`"),
        ({"status": Status.WAITING, "wait": "timer"}, {}, "waits for timer until 2027-01-15 08:02:00 UTC"),
        ({"status": Status.FAILED, "reason": "refused: no"}, {}, "^refused: no$"),
        ({"status": Status.COMPLETED, "reason": "completed"}, {}, "^$"),
        ({"status": Status.CANCELLED, "reason": "cancelled", "cancel": "user"}, {}, "^$"),
        ({"status": Status.CANCELLED, "reason": "cancelled", "cancel": "interrupt"}, {}, "interrupted it"),
        ({"status": Status.CANCELLED, "reason": "rollback", "cancel": "rollback"}, {}, "its memory is rolled back"),
    ],
)
def test_it_says_why_it_stands_where_it_stands(
    changes: dict[str, Any], surroundings: dict[str, Any], words: str
) -> None:
    due = NOW + 60_000 if changes.get("wait") == "timer" else None
    info = seen(Facts(due_at=due), Surroundings(NOW, **surroundings), **changes)

    assert_matches(words, info.reason)


def assert_matches(pattern: str, text: str) -> None:
    import re

    assert re.search(pattern, text), text


def test_it_says_until_when_it_waits_and_what_it_asks() -> None:
    facts = Facts(due_at=NOW + 9_000, asks={"q1": Ask("reply", NOW + 9_000), "q2": Ask("reply", None)})

    info = seen(facts, status=Status.WAITING, wait="reply")
    assert info.due_at == moment(NOW + 9_000)
    assert info.requests == (Request("q1", "reply", moment(NOW + 9_000)), Request("q2", "reply"))
    assert seen(facts, not_before=NOW + 1).due_at == moment(NOW + 1)
    assert seen(facts).due_at is None


@pytest.mark.parametrize("broken", [{"state": b"{"}, {"limits": b"[]"}, {"metadata": b"x"}, {"open": b"1:a {"}])
def test_what_cannot_be_read_is_a_broken_record(broken: dict[str, Any]) -> None:
    with pytest.raises(BrokenRecord):
        seen(**broken)


def test_as_json_it_holds_its_cost() -> None:
    assert seen().to_json()["cost_usd"] == "0"
    assert seen(open=b"1:a " + Reservation(input_tokens=1, output_tokens=1).to_bytes()).to_json()[
        "cost_usd"
    ] is None  # fmt: skip


def test_only_the_limits_that_were_given_are_added() -> None:
    added = additions_of({"max_tool_calls": 5})

    assert Budget(max_steps=10, max_tool_calls=1).raised(added) == Budget(max_steps=10, max_tool_calls=6)
    again = Budget.model_validate_json(added.model_dump_json(exclude_unset=True))
    assert Budget(max_steps=10, max_tool_calls=1).raised(again) == Budget(max_steps=10, max_tool_calls=6)
    with pytest.raises(ConfigurationError, match="Say what to add: max_steps"):
        additions_of({})
    with pytest.raises(ConfigurationError, match="max_stepz"):
        additions_of({"max_stepz": 1})  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="max_steps: Input should be greater than or equal to 0"):
        additions_of({"max_steps": -1})


def test_one_of_several_requests_is_answered_by_its_id() -> None:
    asks = {"1.0": Ask("approval", None), "1.1": Ask("reply", None)}
    reason = seen(Facts(asks=asks), status=Status.WAITING, wait="reply").reason
    assert reason == (
        "waits for 2 answers: `pawl reply 0-1 TEXT --request REQUEST`, "
        "`pawl approve 0-1 REQUEST` or `pawl reject 0-1 REQUEST`"
    )
    only = {"1.0": Ask("approval", None), "1.1": Ask("approval", None)}
    assert "pawl reply" not in seen(Facts(asks=only), status=Status.WAITING, wait="approval").reason
