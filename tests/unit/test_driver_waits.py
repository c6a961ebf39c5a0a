"""Waits and effects: a question parks the run, its wall time ends the wait, an effect waits until its record is safe."""

import asyncio
from collections.abc import Mapping

from agent.agent import Agent
from agent.budget import Budget
from agent.context import ActionContext, ToolContext
from agent.driver import Driver
from agent.environment import Environment
from agent.errors import ModelUnavailable
from agent.events import BudgetChanged, RequestOpened, RunBudgetExceeded, RunCreated, ToolReturned, encode
from agent.journal import News
from agent.mailbox import Departure, Look
from agent.models.scripted import ScriptedModel, call, calls, say
from agent.requests import Answer, question_tool
from agent.tools import Tool, tool
from tests.support import virtual_time
from tests.support.engine import Record, RecordingJournal, activate


@tool
async def pay() -> str:
    """Pays."""
    return "paid"


@tool(idempotent=True)
async def look() -> str:
    """Looks."""
    return "seen"


def asking(budget: Budget | None = None) -> Agent[str]:
    replies = [call("ask_user", question="Which?"), say("done")]
    return Agent("Ask.", tools=[question_tool()], model=ScriptedModel(replies), budget=budget or Budget())


def test_a_question_parks_the_run_and_the_answer_lets_it_go_on_once():
    record = Record.created()
    assert virtual_time.run(activate(asking(), record)).status == "waiting"
    parked = record.commits[-1]
    assert (parked.to, parked.wait, parked.delay_ms) == ("waiting", "reply", None)
    assert [request.question for commit in record.commits for request in commit.requests] == ["Which?"]

    news = News(arrived=[Answer("1.0", "reply", "this one"), Answer("1.0", "reply", "too late")])
    journal = RecordingJournal(record)
    assert virtual_time.run(activate(asking(), record, journal=journal, news=news)).status == "completed"
    assert [event.content for event in record.all_of(ToolReturned)] == ["this one"]
    assert sum(commit.acknowledged for commit in record.commits) == 2


def test_the_wall_time_of_a_waiting_run_ends_it():
    limits = Budget(max_wall_seconds=60)
    record = Record.created(budget=limits)
    journal = RecordingJournal(record)
    journal.wall = 20_000
    virtual_time.run(activate(asking(limits), record, journal=journal))
    assert record.commits[-1].delay_ms == 40_000, "due when the wall time is over"

    journal = RecordingJournal(record)
    journal.wall = 60_000
    assert virtual_time.run(activate(asking(limits), record, journal=journal)) == Departure("budget_exceeded")
    (end,) = record.all_of(RunBudgetExceeded)
    assert (end.limit, end.used, end.allowed) == ("max_wall_seconds", "60", "60")
    assert len(record.all_of(RequestOpened)) == 1


def test_a_wait_before_another_attempt_ends_with_the_active_time():
    limits = Budget(max_active_seconds=1.5)
    busy = ModelUnavailable("busy", retry_after=1.9)
    agent = Agent("Go on.", model=ScriptedModel([say("done")], failures={(1, 1): busy}), budget=limits)
    record = Record.created(budget=limits)

    async def scenario() -> tuple[Departure, float]:
        started = virtual_time.now()
        return await activate(agent, record), virtual_time.now() - started

    departure, seconds = virtual_time.run(scenario())

    assert (departure.status, seconds) == ("budget_exceeded", 1.5)
    (end,) = record.all_of(RunBudgetExceeded)
    assert end.limit == "max_active_seconds"


def test_only_an_effect_that_must_not_be_repeated_waits_until_its_record_is_safe():
    record = Record.created()
    agent = Agent("Pay.", tools=[pay, look], model=ScriptedModel([calls(call("pay"), call("look")), say("done")]))
    journal = RecordingJournal(record)
    assert virtual_time.run(activate(agent, record, journal=journal)) == Departure("completed")
    assert journal.secured == 1


class LateJournal(RecordingJournal):
    """The lease is over after so long a wait for the disk, and is renewed a second later."""

    def __init__(self, record: Record, order: list[str]) -> None:
        super().__init__(record)
        self.order = order
        self.owned = True

    def owns_run(self) -> bool:
        return self.owned

    async def secure(self) -> None:
        self.order.append("secure")

    async def permit(self) -> None:
        self.order.append("permit" if self.owned else "permit, late")
        self.owned = True


def test_a_tool_is_permitted_last_and_again_where_a_thread_was_long_in_coming():
    """Between the permit and the call there may be a wait for a thread, and the run may be another worker's by then."""
    order: list[str] = []

    @tool
    def post(text: str) -> str:
        """Posts."""
        order.append(f"{text} posted")
        return text

    record = Record.created()
    journal = LateJournal(record, order)

    class SlowThreads(Environment):
        async def execute_action(
            self,
            tool: Tool,
            arguments: Mapping[str, object],
            action_context: ActionContext | None = None,
            call: ToolContext | None = None,
        ) -> object:
            journal.owned = order.count("secure") > 1
            return await super().execute_action(tool, arguments, action_context, call)

    replies = [call("post", text="a word"), say("done")]
    agent = Agent("Post.", tools=[post], model=ScriptedModel(replies), environment=SlowThreads())
    assert asyncio.run(activate(agent, record, journal=journal)) == Departure("completed")
    assert order == ["permit", "secure", "permit", "secure", "permit, late", "a word posted", "permit"]


def test_an_answer_is_heard_while_a_tool_runs():
    record, drivers = Record.created(), list[Driver]()
    allowed = asyncio.Event()

    @tool
    async def work() -> str:
        """Works until the other call is made."""
        drivers[0].post(Look(1))
        await allowed.wait()
        return "worked"

    @tool(approval=True)
    async def pay() -> str:
        """Pays."""
        allowed.set()
        return "paid"

    agent = Agent("Do it.", tools=[work, pay], model=ScriptedModel([calls(call("work"), call("pay")), say("done")]))
    journal = RecordingJournal(record, news=[News(), News(), News(arrived=[Answer("1.1", "approve")])])
    departure = virtual_time.run(activate(agent, record, journal, started=drivers.append))

    assert departure.status == "completed"
    assert [event.content for event in record.all_of(ToolReturned)] == ["paid", "worked"]
    assert record.commits[2].events == (), "nothing had happened: the commit was made to look"


def test_a_run_that_came_without_limits_gets_those_of_the_agent():
    """Submitted by name before any worker had published the agent."""
    record = Record([encode(RunCreated(agent="a", task="go"))])
    agent = Agent("Pay.", tools=[look], model=ScriptedModel([call("look")] * 9), budget=Budget(max_steps=2))
    assert virtual_time.run(activate(agent, record)) == Departure("budget_exceeded")
    assert [event.budget.max_steps for event in record.all_of(BudgetChanged)] == [2]
    assert record.commits[0].budget == Budget(max_steps=2)
