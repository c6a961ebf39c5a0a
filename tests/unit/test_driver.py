"""The driver: announced, acknowledged, performed; and what a cancel or a hand-over makes of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from agent.agent import Agent
from agent.budget import Breach, Budget, Usage
from agent.context import RunIdentity
from agent.driver import Driver
from agent.errors import LeaseLost, ModelUnavailable
from agent.events import (
    BudgetChanged,
    ModelFailed,
    RunBudgetExceeded,
    RunFailed,
    RunReleased,
    ToolReturned,
)
from agent.journal import Commit, News
from agent.mailbox import Cancel, Departure, Leave
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, calls, say
from agent.report import StepReport
from agent.state import Mark
from agent.tools import tool
from tests.support import virtual_time
from tests.support.engine import RUN, Crashed, Record, RecordingJournal, activate, assert_valid, folded
from tests.support.world import SCRIPT, World, assert_survived, live, world_of


def test_undisturbed():
    world, agent = world_of(SCRIPT)
    assert live(world, agent) == Departure("completed")
    assert world.violations == []
    assert world.asked == [1, 2, 3, 4]
    assert [name for name, _, _ in world.effects] == ["note", "pay", "note", "pay", "pay", "fetch", "pay"]
    assert world.record.types()[-1] == "run_completed"
    assert world.record.marks == {}
    assert world.record.open is None
    assert_valid(folded(world.record.facts).history)


def test_every_opened_call_is_charged_in_the_commit_that_ends_it():
    world, agent = world_of(SCRIPT, failures={(2, 1): ModelUnavailable("cut", billed=True)})
    live(world, agent)
    opened: list[Commit] = [commit for commit in world.record.commits if commit.opening is not None]
    charges = [commit.charge for commit in world.record.commits if commit.charge is not None]
    assert len({id(commit.opening) for commit in opened}) == len(charges) == 5
    total = Usage()
    for charge in charges:
        total = total.plus(charge, active_ms=0)
    usage = folded(world.record.facts).head.usage
    assert (total.model_calls, total.total_tokens) == (usage.model_calls, usage.total_tokens)


class SlowJournal(RecordingJournal):
    """Acknowledges a second after it has stored."""

    async def commit(self, commit: Commit) -> News:
        news = await super().commit(commit)
        await asyncio.sleep(1)
        return news


def test_nothing_is_performed_before_the_acknowledgement():
    world, agent = world_of([call("pay"), say("done")])
    moments: list[tuple[str, float]] = []

    async def scene() -> None:
        world.journal = journal = SlowJournal(world.record)
        effects = asyncio.create_task(watched(world, moments))
        await activate(agent, world.record, journal)
        effects.cancel()

    virtual_time.run(scene())
    assert world.violations == []
    # opened at 0, acknowledged at 1; replied at 2, acknowledged at 3
    assert moments == [("asked", 1.0), ("pay", 3.0), ("asked", 5.0)]


async def watched(world: World, moments: list[tuple[str, float]]) -> None:
    seen = (0, 0)
    while True:
        now = (len(world.asked), len(world.effects))
        if now[0] > seen[0]:
            moments.append(("asked", round(virtual_time.now(), 1)))
        if now[1] > seen[1]:
            moments.append((world.effects[-1][0], round(virtual_time.now(), 1)))
        seen = now
        await asyncio.sleep(0.01)


def at(second: float, do: Callable[[Driver], None]) -> Callable[[Driver], None]:
    """Does something with the driver, so many seconds after it started."""
    return lambda driver: asyncio.get_running_loop().call_later(second, do, driver) and None


def drive(agent: Agent[Any], record: Record, **options: Any) -> Departure:
    return virtual_time.run(activate(agent, record, **options))


def test_a_cancel_ends_a_model_call_at_once_and_charges_it():
    async def never(request: ModelRequest) -> str:
        await asyncio.sleep(100)
        raise AssertionError("it goes on")

    record = Record.created()
    agent = Agent("Do it.", model=FunctionModel(never))

    async def scene() -> tuple[Departure, float]:
        departure = await activate(agent, record, started=at(5, lambda driver: driver.post(Cancel("user"))))
        return departure, virtual_time.now()

    assert virtual_time.run(scene()) == (Departure("cancelled"), 5.0)
    assert record.types() == ["run_created", "model_failed", "run_cancelled"]
    last, opening = record.commits[-1], record.commits[0].opening
    assert opening is not None
    assert (last.charge, last.opening, last.to) == (opening.as_usage(), None, "cancelled")


def test_a_cancel_interrupts_tools_that_run_and_starts_no_other():
    world, agent = world_of([calls(call("note"), call("pay"), call("fetch"))])
    departure = drive(agent, world.record, started=at(2.5, lambda driver: driver.post(Cancel("user"))))
    assert departure == Departure("cancelled")
    assert [(event.name, event.outcome) for event in world.record.all_of(ToolReturned)] == [
        ("pay", "ok"),
        ("note", "interrupted"),
    ]
    assert "fetch" not in [name for name, _, _ in world.effects]
    assert_valid(folded(world.record.facts).messages())


def test_a_cancel_in_the_answer_of_a_commit_comes_before_what_it_announced():
    world, agent = world_of([call("pay"), say("done")])
    news = [News(), News(cancel="user")]
    assert drive(agent, world.record, journal=RecordingJournal(world.record, news=news)) == Departure("cancelled")
    assert world.effects == []
    world, agent = world_of([say("done")])
    journal = RecordingJournal(world.record, news=[News(cancel="user")])
    assert drive(agent, world.record, journal=journal) == Departure("cancelled")
    assert world.asked == []
    assert world.record.commits[-1].charge is None, "it was never asked, so it costs nothing"


def test_a_cancel_behind_the_answer_is_too_late():
    drivers: list[Driver] = []

    async def answer(request: ModelRequest) -> str:
        asyncio.get_running_loop().call_soon(drivers[0].post, Cancel("user"))
        return "done"

    record = Record.created()
    agent = Agent("Do it.", model=FunctionModel(answer))
    assert drive(agent, record, started=drivers.append) == Departure("completed")
    assert record.types() == ["run_created", "model_replied", "run_completed"]


def test_a_drain_waits_for_the_border_of_the_step():
    world, agent = world_of(SCRIPT)
    departure = drive(agent, world.record, started=at(0.5, lambda driver: driver.post(Leave("drain"))))
    assert departure == Departure("queued", "drain")
    assert world.asked == [1]
    assert len(world.effects) == 3, "the tools of the step are finished"
    assert world.record.all_of(RunReleased)[-1].why == "drain"
    assert (world.record.marks, world.record.open) == ({}, None)
    assert_survived(world, live(world, agent))


def test_a_drain_that_cannot_wait_charges_the_open_call_and_leaves_the_tools_in_doubt():
    world, agent = world_of(SCRIPT)
    at_once = at(0.5, lambda driver: driver.post(Leave("drain", at_once=True)))
    assert drive(agent, world.record, started=at_once) == Departure("queued", "drain")
    last, opening = world.record.commits[-1], world.record.commits[0].opening
    assert opening is not None
    assert (last.charge, last.opening) == (opening.as_usage(), None)
    assert [event.usage for event in world.record.all_of(ModelFailed)] == [opening.as_usage()]
    in_tools = at(1.5, lambda driver: driver.post(Leave("drain", at_once=True)))
    assert drive(agent, world.record, started=in_tools) == Departure("queued", "drain")
    assert set(world.record.marks.values()) == {Mark.STARTED}
    assert_survived(world, live(world, agent))


def test_an_activation_ends_after_its_steps():
    world, agent = world_of(SCRIPT)
    assert drive(agent, world.record, max_steps=1) == Departure("queued", "yield")
    assert world.asked == [1]
    assert drive(agent, world.record, max_steps=2) == Departure("queued", "yield")
    assert world.asked == [1, 2, 3]
    assert_survived(world, live(world, agent))


def test_a_short_wait_is_spent_here_and_a_long_one_parks_the_run():
    """case-024"""
    failures = {(1, 1): ModelUnavailable("busy", retry_after=2), (1, 2): ModelUnavailable("busy", retry_after=60)}
    world, agent = world_of([say("done")], failures=dict(failures))

    async def scene() -> tuple[Departure, float]:
        return await activate(agent, world.record), virtual_time.now()

    departure, seconds = virtual_time.run(scene())
    assert (departure.status, departure.why) == ("waiting", "waiting")
    assert 59_000 <= departure.delay_ms <= 60_000
    assert seconds == pytest.approx(1 + 2 + 1, abs=0.01)
    last = world.record.commits[-1]
    assert (last.to, last.wait, last.opening) == ("waiting", "rate_limit", None)
    assert live(world, agent).status == "completed"
    assert world.asked == [1, 1, 1]


def test_a_cancel_reaches_a_run_that_waits_here():
    world, agent = world_of([say("done")], failures={(1, 1): ModelUnavailable("busy", retry_after=2)})
    departure = drive(agent, world.record, started=at(1.5, lambda driver: driver.post(Cancel("user"))))
    assert departure == Departure("cancelled")


def test_a_drain_during_a_wait_parks_the_run_for_the_rest_of_it():
    world, agent = world_of([say("done")], failures={(1, 1): ModelUnavailable("busy", retry_after=2)})
    departure = drive(agent, world.record, started=at(1.5, lambda driver: driver.post(Leave("drain"))))
    assert (departure.status, departure.why) == ("waiting", "waiting")
    assert departure.delay_ms == pytest.approx(1500, abs=2)


def test_a_top_up_is_folded_in_and_acknowledged_once():
    world, agent = world_of([call("pay"), say("done")], budget=Budget(max_steps=1))
    journal = RecordingJournal(world.record, news=[News(arrived=[Budget(max_steps=4)])])
    assert drive(agent, world.record, journal=journal).status == "completed"
    assert [commit.acknowledged for commit in world.record.commits].count(1) == 1
    (changed,) = world.record.all_of(BudgetChanged)
    assert changed.budget.max_steps == 5
    assert [commit.budget for commit in world.record.commits if commit.budget] == [Budget(max_steps=5)]


def test_a_top_up_that_comes_with_the_announcement_of_the_last_call_makes_it_one_of_several():
    offered: list[int] = []

    def answer(request: ModelRequest) -> ModelReply:
        offered.append(len(request.tools))
        return call("pay") if request.step < 3 else say("done")

    agent = Agent("Do it.", tools=[unpaid], model=FunctionModel(answer))
    record = Record.created(budget=Budget(max_steps=1))
    journal = RecordingJournal(record, news=[News(arrived=[Budget(max_steps=4)])])
    assert drive(agent, record, journal=journal) == Departure("completed")
    assert offered == [2, 2, 2], "not the exit alone"
    first, second = record.commits[:2]
    assert (first.charge, second.charge) == (None, None), "the call was not made twice"
    assert [commit.opening is not None and commit.opening.last for commit in (first, second)] == [True, False]


@tool(name="pay")
async def unpaid() -> str:
    """Pays nothing."""
    return "ok"


def test_a_top_up_that_meets_the_end_takes_it_back():
    world, agent = world_of([call("pay"), say("done")], budget=Budget(max_steps=1))
    raised = News(arrived=[Budget(max_steps=4)], stayed=True)
    journal = RecordingJournal(world.record, news=[News(), News(), raised])
    assert drive(agent, world.record, journal=journal) == Departure("completed")
    assert len(world.record.all_of(RunBudgetExceeded)) == 1


def test_a_cancel_that_meets_a_parking_run_wins():
    world, agent = world_of([say("done")], failures={(1, 1): ModelUnavailable("busy", retry_after=60)})
    journal = RecordingJournal(world.record, news=[News(), News(cancel="user", stayed=True)])
    assert drive(agent, world.record, journal=journal) == Departure("cancelled")


def test_a_ledger_without_room_ends_the_run_before_the_call():
    world, agent = world_of([call("pay"), say("done")])
    breach = Breach("max_total_tokens of tenant acme", "9000", "10000")
    journal = RecordingJournal(world.record, news=[News(), News(), News(over=breach)])
    assert drive(agent, world.record, journal=journal) == Departure("budget_exceeded")
    assert world.asked == [1]
    (end,) = world.record.all_of(RunBudgetExceeded)
    assert (end.limit, end.used, end.allowed) == ("max_total_tokens of tenant acme", "9000", "10000")


def test_news_from_before_the_activation_are_dealt_with_first():
    async def scene(news: News, world: World, agent: Agent[str]) -> Departure:
        driver = Driver(
            RunIdentity(run_id=RUN), agent.program(), world.record.restored(), RecordingJournal(world.record), None
        )
        return await driver.drive(news=news)

    world, agent = world_of([say("done")])
    assert virtual_time.run(scene(News(cancel="user"), world, agent)) == Departure("cancelled")
    assert world.asked == []
    world, agent = world_of([say("done")], budget=Budget(max_steps=0))
    assert virtual_time.run(scene(News(arrived=[Budget(max_steps=1)]), world, agent)) == Departure("completed")
    assert world.record.commits[0].acknowledged == 1


def test_a_model_that_does_not_answer_in_time_is_asked_again():
    async def slow_once(request: ModelRequest) -> str:
        await asyncio.sleep(100 if request.attempt == 1 else 1)
        return "done"

    record = Record.created()
    agent = Agent("Do it.", model=FunctionModel(slow_once), model_timeout=10)
    assert drive(agent, record) == Departure("completed")
    (failed,) = record.all_of(ModelFailed)
    assert failed.error == "no reply within 10 s"
    assert failed.usage.model_calls == 1, "it may have been billed"


@pytest.mark.parametrize("error", [ValueError("odd"), asyncio.CancelledError(), TimeoutError()])
def test_whatever_a_model_client_raises_is_an_answer(error: BaseException):
    async def breaks(request: ModelRequest) -> str:
        raise error

    record = Record.created()
    agent = Agent("Do it.", model=FunctionModel(breaks), max_attempts=1)
    assert drive(agent, record) == Departure("failed")
    assert record.all_of(ModelFailed)[0].usage.model_calls == 1
    assert len(record.all_of(RunFailed)) == 1


class LosingJournal(RecordingJournal):
    """The run belongs to somebody else by the time its work would start."""

    async def permit(self) -> None:
        raise LeaseLost("another worker has it")


def test_a_lost_run_is_dropped():
    world, agent = world_of([say("done")])
    with pytest.raises(LeaseLost):
        drive(agent, world.record, journal=LosingJournal(world.record))
    assert world.asked == []
    assert len(world.record.commits) == 1


def test_a_tool_that_is_gone_since_it_was_planned_is_answered():
    world, agent = world_of([call("pay"), say("done")])
    with pytest.raises(Crashed):  # behind the reply, before the tool starts
        drive(agent, world.record, journal=RecordingJournal(world.record, crash_after=2))
    world.record.marks.clear()
    later = Agent("Do it.", model=ScriptedModel([say("never"), say("done")]))
    assert drive(later, world.record) == Departure("completed")
    (returned,) = world.record.all_of(ToolReturned)
    assert (returned.outcome, returned.content) == ("invalid", "Tool 'pay' not found. The tools are: terminate.")


class Listening:
    """Keeps the reports."""

    def __init__(self) -> None:
        self.reports: list[StepReport] = []

    def step(self, report: StepReport) -> None:
        self.reports.append(report)


def reported(work: Callable[[Listening], Coroutine[Any, Any, object]]) -> list[StepReport]:
    listening = Listening()
    virtual_time.run(work(listening))
    return listening.reports


def test_every_step_and_every_failed_attempt_is_reported_once():
    _, agent = world_of(
        [calls(call("fetch"), call("nothing")), say("done")], failures={(2, 1): ModelUnavailable("busy", billed=True)}
    )

    async def scene(listening: Listening) -> None:
        record = Record.created()
        driver = Driver(
            RunIdentity(run_id=RUN),
            agent.program(),
            record.restored(),
            RecordingJournal(record),
            None,
            observer=listening,
            queued_ms=7,
        )
        await driver.drive()

    first, failed, second = reported(scene)
    assert (first.step, first.attempt, first.outcome, first.queued_ms) == (1, 1, "tools", 7)
    assert [(run.name, run.outcome) for run in first.tools] == [("nothing", "invalid"), ("fetch", "error")]
    assert first.model_ms == pytest.approx(1000, abs=2)
    assert first.tools_ms == pytest.approx(1000, abs=2)
    assert (failed.step, failed.attempt, failed.outcome, failed.error) == (2, 1, "retry", "busy")
    assert (failed.output_tokens, failed.cost_nanousd) == (4096, None), "it may have been billed"
    assert (second.step, second.attempt, second.outcome, second.queued_ms) == (2, 2, "completed", 0)
