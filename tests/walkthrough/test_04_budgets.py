"""A budget bites before the money is spent: a model call is reserved before it is made and settled after it."""

from decimal import Decimal

import pytest

from agent import Agent, Budget, BudgetExceeded, ModelReply, ModelRequest, Price, ScriptedModel, UnknownPriceError, tool
from agent.models.function import FunctionModel
from agent.testing import call, say, with_usage


@tool
def search(query: str) -> str:
    """Searches."""
    return f"nothing about {query}"


def searching_for_ever(request: ModelRequest) -> ModelReply:
    """Searches as long as it may, and answers when only the exit is left."""
    if [offered.name for offered in request.tools] == ["terminate"]:
        return call("terminate", result="I found nothing.")
    return call("search", query=f"attempt {request.step}")


def test_the_last_call_is_kept_for_an_answer():
    """Before the budget is used up, the model is offered nothing but the exit: it ends with the best that it has."""
    agent = Agent("Search.", tools=[search], model=FunctionModel(searching_for_ever), budget=Budget(max_steps=5))
    result = agent.run_sync("Unicorns?")

    assert result.output == "I found nothing."
    assert result.steps == 5


def test_a_model_that_does_not_come_to_an_end_is_stopped():
    stubborn = ScriptedModel([call("search", query="unicorns")] * 10)
    agent = Agent("Search.", tools=[search], model=stubborn, budget=Budget(max_steps=3))

    with pytest.raises(BudgetExceeded) as ended:
        agent.run_sync("Unicorns?")
    assert ended.value.limit == "max_steps"


def test_a_request_says_how_much_may_be_written():
    asked: list[int] = []

    def answer(request: ModelRequest) -> str:
        asked.append(request.max_tokens)
        return "done"

    agent = Agent("Write.", model=FunctionModel(answer))
    agent.run_sync("A line, please.")
    agent.run_sync("A line, please.", budget=Budget(max_output_tokens=500))

    assert asked == [4096, 450]  # a tenth is kept for the last answer


def test_money():
    price = Price(input_per_million=Decimal("2.50"), output_per_million=Decimal("10.00"))
    model = ScriptedModel([with_usage(say("done"), input_tokens=1000, output_tokens=100)], price=price)
    result = Agent("Work.", model=model, budget=Budget(max_cost_usd=Decimal("0.10"))).run_sync("Go.")

    assert result.usage.cost_usd == Decimal("0.0035")


def test_an_unknown_price_is_not_free():
    model = ScriptedModel([say("done")])

    with pytest.raises(UnknownPriceError):
        Agent("Work.", model=model, budget=Budget(max_cost_usd=Decimal("0.10"))).run_sync("Go.")
