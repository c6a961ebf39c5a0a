"""What a run asks of a person: questions, approvals, calls in doubt."""

import asyncio
from collections.abc import Mapping

import pytest

from agent import Agent, Budget, RunWaiting, ScriptedModel, tool
from agent.budget import Elapsed
from agent.events import Event, Recorded, RequestAnswered, RequestOpened, RunCreated, ToolReturned
from agent.intents import AskModel, AwaitPerson, Happen, StartTools
from agent.messages import Role
from agent.models.base import ModelReply
from agent.models.scripted import call, calls, say
from agent.outcomes import doubtful, reply_events
from agent.requests import Answer, answer_events, needs_person, question_tool
from agent.state import Checkpoint, Mark, RunState
from agent.step import decide
from agent.tools import Approval
from tests.support import virtual_time

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid_yet() -> None:
    paid.clear()


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    paid.append(amount)
    return f"{amount} paid"


def is_large(arguments: Mapping[str, object]) -> bool:
    amount = arguments["amount"]
    return isinstance(amount, int) and amount > 100


@tool(approval=is_large)
async def tip(amount: int) -> str:
    """Tips."""
    paid.append(amount)
    return f"{amount} tipped"


@tool(approval=Approval(timeout=60, default="approve"))
async def post(text: str) -> str:
    """Posts."""
    return f"posted {text}"


@tool(on_unknown="ask")
async def launch() -> str:
    """Launches."""
    return "launched"


def agent_of(*replies: ModelReply) -> Agent[str]:
    tools = [pay, tip, post, launch, question_tool()]
    return Agent("Pays.", tools=tools, model=ScriptedModel(replies), budget=Budget(max_steps=9))


def answering(*answers: Answer):
    left = list(answers)

    async def answer(request: RequestOpened) -> Answer:
        found = next(one for one in left if one.request == request.request)
        left.remove(found)
        return found

    return answer


def contents(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.outcome, event.content) for event in events if isinstance(event, ToolReturned)]


def test_a_question_is_answered_by_the_reply():
    agent = agent_of(call("ask_user", question="Which colour?"), say("Red it is."))
    result = asyncio.run(agent.run("Paint.", answer=answering(Answer("1.0", "reply", "red"))))

    assert result.output == "Red it is."
    assert contents([one.event for one in result.events]) == [("ok", "red")]
    opened = [one.event for one in result.events if isinstance(one.event, RequestOpened)]
    assert [(one.kind, one.question) for one in opened] == [("clarification", "Which colour?")]


def test_without_anybody_to_ask_the_run_says_what_it_asks():
    with pytest.raises(RunWaiting, match="Which colour") as waiting:
        asyncio.run(agent_of(call("ask_user", question="Which colour?")).run("Paint."))
    assert waiting.value.requests == ("1.0",)


def test_an_approved_call_is_executed_once_with_the_arguments_of_the_person():
    agent = agent_of(call("pay", amount=7), say("Done."))
    result = asyncio.run(agent.run("Pay.", answer=answering(Answer("1.0", "approve", arguments={"amount": 5}))))

    assert paid == [5]
    assert contents([one.event for one in result.events]) == [("ok", "5 paid")]


def test_the_model_reads_what_was_executed_not_what_it_had_asked_for():
    agent = agent_of(call("pay", amount=7), say("Done."))
    result = asyncio.run(agent.run("Pay.", answer=answering(Answer("1.0", "approve", arguments={"amount": 5}))))
    state = RunState.restore(Checkpoint(), result.events)

    asked = next(message for message in state.history if message.role is Role.ASSISTANT and message.tool_calls)
    assert asked.tool_calls[0].arguments == '{"amount": 5}'


def test_that_a_person_says_no_again_and_again_is_no_fault_of_the_model():
    refused = [call("pay", amount=number) for number in range(6)]
    agent = Agent("Pay.", tools=[pay], model=ScriptedModel([*refused, say("I give up.")]))
    result = asyncio.run(agent.run("Pay.", answer=answering_no))
    assert (result.output, paid) == ("I give up.", [])


async def answering_no(request: RequestOpened) -> Answer:
    return Answer(request.request, "reject", "no")


def test_a_rejected_call_is_not_executed_and_the_model_reads_why():
    agent = agent_of(call("pay", amount=7), say("Then not."))
    result = asyncio.run(agent.run("Pay.", answer=answering(Answer("1.0", "reject", "too much"))))

    assert paid == []
    ((outcome, content),) = contents([one.event for one in result.events])
    assert outcome == "rejected"
    assert "too much" in content


def test_a_condition_lets_small_calls_through_and_a_broken_one_none():
    agent = agent_of(calls(call("tip", amount=5), call("tip", amount=500)), say("Done."))
    result = asyncio.run(agent.run("Tip.", answer=answering(Answer("1.1", "approve"))))
    assert result.output == "Done."
    assert sorted(paid) == [5, 500]
    opened = [one.event for one in result.events if isinstance(one.event, RequestOpened)]
    assert [one.request for one in opened] == ["1.1"]

    @tool(approval=lambda arguments: bool(arguments["missing"]))
    async def broken(amount: int) -> str:
        """Breaks."""
        return "?"

    state = _state_with(agent_with := Agent("g", tools=[broken], model=ScriptedModel([])), call("broken", amount=1))
    assert state.exchange is not None
    assert needs_person(state.exchange.calls["1.0"], agent_with.registry.tools["broken"])


def test_several_requests_wait_together_and_siblings_run_once():
    """case-141: each answer reaches its call, in any order; what needs nobody runs once."""
    agent = agent_of(
        calls(call("ask_user", question="colour?"), call("ask_user", question="size?"), call("tip", amount=1)),
        say("Ordered."),
    )
    result = asyncio.run(
        agent.run("Order.", answer=answering(Answer("1.1", "reply", "L"), Answer("1.0", "reply", "red")))
    )
    assert paid == [1]
    returned = [one.event for one in result.events if isinstance(one.event, ToolReturned)]
    assert {(one.call, one.content) for one in returned} == {("1.0", "red"), ("1.1", "L"), ("1.2", "1 tipped")}


def test_unusable_arguments_ask_nobody():
    agent = agent_of(call("pay", amount="many"), say("Sorry."))
    result = asyncio.run(agent.run("Pay."))
    assert [one[0] for one in contents([each.event for each in result.events])] == ["invalid"]


def test_nobody_in_time_means_the_default():
    agent = agent_of(call("post", text="hi"), say("Done."))
    result = asyncio.run(agent.run("Post.", answer=answering(Answer("1.0", "expired"))))
    assert contents([one.event for one in result.events]) == [("ok", "posted hi")]

    waiting = _state_with(agent_of(), call("pay", amount=1))
    _open(waiting, agent_of())
    answered, returned = answer_events(waiting.exchange, Answer("1.0", "expired"), active_ms=0)
    assert isinstance(answered, RequestAnswered)
    assert isinstance(returned, ToolReturned)
    assert returned.outcome == "rejected"


def test_in_process_a_deadline_passes_while_a_person_thinks():
    """The deadlines of all requests count from when they were asked, however long the first answer takes."""
    agent = agent_of(
        calls(call("ask_user", question="Which colour?"), call("post", text="hi"), call("pay", amount=1)), say("Done.")
    )

    async def slowly(request: RequestOpened) -> Answer:
        await asyncio.sleep(45)
        return Answer(request.request, "reply" if request.kind == "clarification" else "reject", "red")

    result = virtual_time.run(agent.run("Paint.", answer=slowly))
    assert contents([one.event for one in result.events]) == [
        ("ok", "red"),
        ("rejected", "A person did not allow this call: red"),
        ("ok", "posted hi"),
    ]
    assert paid == []


def test_a_person_whose_answer_fails_is_no_deadline():
    async def out_of_order(_: RequestOpened) -> Answer:
        raise TimeoutError("the door is locked")

    with pytest.raises(TimeoutError, match="the door is locked"):
        virtual_time.run(agent_of(call("post", text="hi"), say("Done.")).run("Post.", answer=out_of_order))


def test_an_answer_to_nothing_means_nothing():
    state = _state_with(agent_of(), call("pay", amount=1))
    assert answer_events(state.exchange, Answer("1.0", "approve"), active_ms=0) == []
    _open(state, agent_of())
    assert answer_events(state.exchange, Answer("9.9", "approve"), active_ms=0) == []


def test_a_call_in_doubt_asks_whether_it_may_be_executed_again():
    agent = agent_of()
    state = _state_with(agent, call("launch"))
    assert state.exchange is not None
    state.exchange.calls["1.0"].mark = Mark.DOUBTFUL
    events, again = doubtful(state.exchange, agent.program(), active_ms=0)
    assert again == []
    _fold(state, events)
    assert decide(state, agent.program(), "r", Elapsed(0, 0)) == AwaitPerson("approval")

    _fold(state, answer_events(state.exchange, Answer("1.0", "approve"), active_ms=0))
    plan = decide(state, agent.program(), "r", Elapsed(0, 0))
    assert isinstance(plan, StartTools)
    assert plan.calls[0].attempt == 2


def test_a_call_in_doubt_that_may_not_be_repeated_stays_unknown():
    agent = agent_of()
    state = _state_with(agent, call("launch"))
    assert state.exchange is not None
    state.exchange.calls["1.0"].mark = Mark.DOUBTFUL
    _fold(state, doubtful(state.exchange, agent.program(), active_ms=0)[0])
    _, returned = answer_events(state.exchange, Answer("1.0", "reject", "it flew"), active_ms=0)
    assert isinstance(returned, ToolReturned)
    assert returned.outcome == "unknown"
    assert "it flew" in returned.content


def _state_with(agent: Agent[str], reply: ModelReply) -> RunState:
    """A run whose model has just made this reply."""

    state = RunState()
    _fold(state, [RunCreated(agent="a", task="t", budget=Budget())])
    asked = decide(state, agent.program(), "r", Elapsed(0, 0))
    assert isinstance(asked, AskModel)
    _fold(state, reply_events(state, agent.program(), asked, reply, ms=0, active_ms=0))
    return state


def _open(state: RunState, agent: Agent[str]) -> None:

    plan = decide(state, agent.program(), "r", Elapsed(0, 0))
    assert isinstance(plan, Happen)
    _fold(state, list(plan.events))


def _fold(state: RunState, events: list[Event]) -> None:
    for event in events:
        state.apply(Recorded(seq=state.head.seq + 1, at=0, event=event))
