"""What a submission becomes, before anything is sent."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import pytest

from agent import Agent, Budget, Price, ScriptedModel
from agent.errors import AgentDefinitionError, ConfigurationError, UnknownPriceError
from agent.events import RunCreated, decode
from scheduler.cards import AgentCard
from scheduler.client.submission import LATEST, Priority, Submission, Target, digest_of, new_run
from scheduler.inputs import NewRun
from scheduler.sessions import OnBusy

TARGET = Target("support")
PRICED = ScriptedModel([], price=Price(Decimal(1), Decimal(2)))


NAMES = ("session", "tenant", "idempotency_key")


class Nowhere(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None


def run_of(submission: Submission, target: Target = TARGET) -> NewRun:
    return new_run("0-1", target, submission)


def test_the_first_event_says_what_was_submitted() -> None:
    new = run_of(Submission(task="Refund", session="s", tenant="t", metadata={"mail": 42}))

    event = decode(new.event)
    assert isinstance(event, RunCreated)
    assert (event.agent, event.task, event.session, event.tenant) == ("support", "Refund", "s", "t")
    assert event.metadata == {"mail": 42} == json.loads(new.metadata)
    assert event.budget is None, "the agent's own holds, once a worker says it"
    assert Budget.model_validate_json(new.limits) == Budget()


def test_a_budget_that_was_given_stands_in_place_of_the_agents() -> None:
    target = Target("support", budget=Budget(max_steps=3, max_tool_calls=4))

    assert Budget.model_validate_json(run_of(Submission(task="x"), target).limits) == target.budget
    given = Budget(max_steps=7)
    assert Budget.model_validate_json(run_of(Submission(task="x", budget=given), target).limits) == given


@pytest.mark.parametrize(
    ("queue", "priority", "expected"),
    [
        ("default", "default", "default"),
        ("default", "high", "high"),
        ("default", "low", "low"),
        ("high", "default", "high"),
        ("gpu", "high", "gpu"),
        ("gpu", "default", "gpu"),
    ],
)
def test_a_priority_is_a_queue_unless_the_agent_has_one_of_its_own(
    queue: str, priority: Priority, expected: str
) -> None:
    assert Target("support", queue).queue_for(priority) == expected


@pytest.mark.parametrize(
    "other",
    [
        {"task": "y"},
        {"session": "s"},
        {"tenant": "t"},
        {"metadata": {"a": 1}},
        {"budget": Budget()},
        {"budget": Budget(max_steps=1)},
    ],
)
def test_another_submission_has_another_digest(other: dict[str, Any]) -> None:
    one = Submission(task="x")

    assert run_of(one).digest == run_of(one).digest
    assert run_of(replace(one, **other)).digest != run_of(one).digest
    assert run_of(one, Target("sales")).digest != run_of(one).digest


def test_what_does_not_change_the_task_does_not_change_the_digest() -> None:
    one = Submission(task="x", metadata={"a": 1, "b": 2})
    again = replace(one, metadata={"b": 2, "a": 1}, priority="high", delay=5, on_busy=OnBusy.REJECT)

    assert run_of(again).digest == run_of(one).digest
    other_default = Target("support", budget=Budget(max_steps=99))
    assert run_of(one, other_default).digest == run_of(one).digest
    assert digest_of("support", "x", one, one.metadata) == run_of(one).digest


def test_a_delay_and_a_moment_are_milliseconds() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)

    assert (run_of(Submission(task="x", delay=1.5)).delay_ms, run_of(Submission(task="x")).delay_ms) == (1500, None)
    assert run_of(Submission(task="x", delay=0)).delay_ms is None
    assert run_of(Submission(task="x", delay=Decimal("0.5"))).delay_ms == 500  # pyright: ignore[reportArgumentType]
    for moment in (
        at,
        LATEST - timedelta(seconds=1),
        datetime(1, 1, 1, tzinfo=UTC),
        at.astimezone(timezone(timedelta(hours=14))),
    ):
        at_ms = run_of(Submission(task="x", at=moment)).at_ms
        assert at_ms is not None
        assert datetime.fromtimestamp(at_ms / 1000, UTC) == moment, "what reads it understands it"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"delay": -1}, "delay=-1"),
        ({"delay": float("nan")}, "delay=nan"),
        ({"at": datetime(2030, 1, 1)}, "time zone"),
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1}, "not both"),
        ({"metadata": {"order": object()}}, r"metadata\['order'\]"),
        ({"metadata": {"rate": float("nan")}}, r"metadata\['rate'\]"),
        ({"metadata": {1: "x"}}, "keys of metadata must be texts, and 1 is none"),
        ({"metadata": ["x"]}, "metadata must be a mapping, not list"),
        ({"task": 7}, "task must be a text, not int"),
        ({"task": b"x"}, "task must be a text, not bytes"),
        ({"session": 5}, "session must be a text, not int"),
        ({"tenant": None}, "tenant must be a text, not NoneType"),
        ({"idempotency_key": None}, "idempotency key must be a text, not NoneType"),
        *(
            ({one: text}, f"The {one.replace('_', ' ')} ")
            for one in NAMES
            for text in ("\x00", "a\nb", "\ud800", "é" * 129)
        ),
        ({"delay": "3"}, "delay must be a number of seconds, not str"),
        ({"delay": timedelta(seconds=3)}, "delay must be a number of seconds, not timedelta"),
        ({"delay": True}, "delay must be a number of seconds, not bool"),
        ({"delay": float("inf")}, "delay=inf"),
        ({"at": "2030-01-01"}, "at must be a datetime with a time zone, not str"),
        ({"at": date(2030, 1, 1)}, "at must be a datetime with a time zone, not date"),
        ({"at": datetime(2030, 1, 1, tzinfo=Nowhere())}, "time zone"),
        ({"at": datetime.max.replace(tzinfo=UTC)}, "must be before 9999-01-01"),
        ({"budget": {"max_steps": 3}}, "budget must be a Budget, not dict"),
    ],
)
def test_what_cannot_be_stored_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        run_of(replace(Submission(task="x"), **wrong))


def test_half_of_an_emoji_is_replaced_wherever_it_stands() -> None:
    """case-074"""
    new = run_of(Submission(task="x \ud83d y", metadata={"note": "a\udc9d", "\ud83d": 1}))

    event = decode(new.event)
    assert isinstance(event, RunCreated)
    assert event.task == "x � y"
    assert event.metadata == {"note": "a�", "�": 1}


def test_only_a_run_that_may_interrupt_brings_the_event_of_an_interruption() -> None:
    assert run_of(Submission(task="x")).overtaken_event == b""
    assert b"run_cancelled" in run_of(Submission(task="x", on_busy=OnBusy.ROLLBACK)).overtaken_event


def test_a_limit_of_cost_needs_a_price() -> None:
    """case-114"""
    card = AgentCard(name="support", model="openai:new", priced=False)
    costly = Submission(task="x", budget=Budget(max_cost_usd=Decimal("0.02")))

    assert Target.of_card(card, Submission(task="x")).name == "support"
    with pytest.raises(UnknownPriceError, match="no price is known for openai:new"):
        Target.of_card(card, costly)
    with pytest.raises(UnknownPriceError, match="no price is known for scripted"):
        Target.of_agent(Agent("x", name="support", model=ScriptedModel([])), costly)
    assert Target.of_agent(Agent("x", name="support", model=PRICED), costly).name == "support"


def test_an_agent_in_code_needs_a_name_and_nothing_else() -> None:
    assert Target.of_agent(Agent("x", name="a", queue="gpu"), Submission(task="x")) == Target("a", "gpu", Budget())
    with pytest.raises(AgentDefinitionError, match="needs a name"):
        Target.of_agent(Agent("x"), Submission(task="x"))
