"""What a reply is charged, whatever its server reports."""

from dataclasses import replace
from decimal import Decimal

import pytest

from agent.agent import Agent
from agent.budget import Budget
from agent.errors import BudgetExceeded
from agent.events import ModelReplied
from agent.models.base import ModelReply, Price, RawToolCall
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel
from agent.prices import FREE
from tests.support.stepping import asked, program, read, replied, start

PRICE = Price(Decimal(5), Decimal(15))


def charged(reply: ModelReply, price: Price | None = None) -> ModelReplied:
    event = replied(start(), program(model=ScriptedModel([], price=price)), reply)[0]
    assert isinstance(event, ModelReplied)
    return event


@pytest.mark.parametrize("reported", [None, 0])
def test_tokens_that_nobody_counted_are_estimated(reported: int | None):
    """case-023: proxies that count nothing leave the figures out, or write 0."""
    state, machine = start(), program()
    reserved = asked(state, machine).reservation.input_tokens
    usage = charged(ModelReply(content="a few words", input_tokens=reported, output_tokens=reported)).usage
    assert usage.input_tokens == reserved
    assert usage.output_tokens > 1
    assert usage.estimated_tokens == usage.total_tokens


@pytest.mark.parametrize(
    "reply",
    [
        ModelReply(content="x"),
        ModelReply(reasoning="x"),
        ModelReply(tool_calls=[RawToolCall("read", None)]),
    ],
)
def test_whatever_was_written_has_tokens(reply: ModelReply):
    assert charged(replace(reply, input_tokens=0, output_tokens=0)).usage.output_tokens > 0


def test_an_empty_reply_may_have_none():
    usage = charged(ModelReply(input_tokens=100, output_tokens=0)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated_tokens) == (100, 0, 0)


def test_an_estimate_corrects_no_later_one():
    assert charged(ModelReply(content="x", input_tokens=0, output_tokens=7)).request_tokens == 0


@pytest.mark.parametrize(
    ("reported", "price", "nano_dollars", "unpriced"),
    [
        (None, PRICE, 1000 * 5_000 + 100 * 15_000, 0),
        (0, PRICE, 1000 * 5_000 + 100 * 15_000, 0),
        (0, FREE, 0, 0),
        (0, None, 0, 0),
        (None, None, 0, 1),
        (7, PRICE, 7, 0),
        (7, None, 7, 0),
    ],
)
def test_a_cost_of_nothing_is_believed_where_no_price_says_otherwise(
    reported: int | None, price: Price | None, nano_dollars: int, unpriced: int
):
    usage = charged(ModelReply(content="x", input_tokens=1000, output_tokens=100, cost=reported), price).usage
    assert (usage.cost_nanousd, usage.unpriced_calls) == (nano_dollars, unpriced)


@pytest.mark.parametrize("limit", [Budget(max_total_tokens=2000), Budget(max_cost_usd=Decimal("0.02"))])
def test_every_budget_bites_where_nothing_is_counted(limit: Budget):
    """The run ends where one ends whose server leaves the figures out."""
    calls: list[int] = []
    for reported in (None, 0):
        asked: list[int] = []

        def reply(request: object, reported: int | None = reported, asked: list[int] = asked) -> ModelReply:
            asked.append(1)
            calls_read = [RawToolCall("read", {})]
            return ModelReply(tool_calls=calls_read, input_tokens=reported, output_tokens=reported, cost=reported)

        with pytest.raises(BudgetExceeded) as ended:
            Agent("Do it.", tools=[read], model=FunctionModel(reply, price=PRICE), budget=limit).run_sync("go")
        assert ended.value.limit != "max_steps"
        calls.append(len(asked))
    assert calls[0] == calls[1] < 50
