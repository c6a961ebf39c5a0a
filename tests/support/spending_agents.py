"""Agents that spend a known amount with every model call, for tests of limits over many runs."""

import asyncio
from decimal import Decimal

from agent import Agent
from agent.budget import Budget
from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.function import FunctionModel
from tests.support.traces import Traces

TOKENS = 2_000
"""What each call uses, and at most what is reserved for it."""

INPUT_TOKENS, OUTPUT_TOKENS = 150, 1_850
PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(1))
GATE = "spend"


async def _spend(request: ModelRequest) -> ModelReply:
    traces = Traces.of_this_process()
    traces.leave("model", request.run_id, f"{request.step}/{request.attempt}")
    while not traces.is_open(GATE):  # noqa: ASYNC110 - the gate is a file
        await asyncio.sleep(0.01)
    return ModelReply(content="spent", finish_reason="stop", input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)


def _spender(name: str, price: Price | None) -> Agent[str]:
    model = FunctionModel(_spend, price=price)
    return Agent("Spend.", name=name, model=model, max_tokens=OUTPUT_TOKENS, budget=Budget(max_steps=3))


spender = _spender("spender", PRICE)
unpriced = _spender("unpriced", None)
