"""Agents that work with people: they play plays (see `plays`), ask, need approvals, and write down what they are sent."""

import asyncio
from dataclasses import replace

from agent import Agent, ToolContext, tool
from agent.context_window import ContextManager
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.requests import question_tool, remember_tool
from agent.tools import Approval
from tests.support import player
from tests.support.sent import write_down
from tests.support.traces import Traces

ASK_SECONDS = 1.0


async def _answer(request: ModelRequest) -> ModelReply:
    write_down(request)
    return replace(await player.perform(request), input_tokens=None)  # as estimated: the size of a request decides


@tool(approval=True)
async def pay(amount: int, context: ToolContext) -> str:
    """Pays, if a person allows it."""
    Traces.of_this_process().leave("pay", context.run_id, context.idempotency_key, str(amount))
    return f"{amount} paid"


@tool(approval=Approval(timeout=ASK_SECONDS, default="approve"))
async def ship(text: str, context: ToolContext) -> str:
    """Ships, unless a person forbids it in time."""
    Traces.of_this_process().leave("ship", context.run_id, context.idempotency_key, text)
    return f"{text} shipped"


@tool(on_unknown="ask")
async def launch(gate: str, context: ToolContext) -> str:
    """Launches; nobody knows whether it did where it is cut off."""
    traces = Traces.of_this_process()
    traces.leave("launch", context.run_id, context.idempotency_key, str(context.attempt))
    while not traces.is_open(gate):  # noqa: ASYNC110 - the gate is a file
        await asyncio.sleep(0.01)
    return "launched"


@tool(approval=True, idempotent=True)
async def transfer(amount: int, context: ToolContext) -> str:
    """Transfers, if a person allows it; the bank knows a transfer that comes twice."""
    Traces.of_this_process().leave("transfer", context.run_id, context.idempotency_key, str(amount))
    return f"{amount} transferred"


@tool(idempotent=True)
async def tell(words: int) -> str:
    """Tells a long story."""
    return " ".join(f"word{number}" for number in range(words))


def teller_of(queue: str) -> Agent[str]:
    """An agent whose every call may be repeated, and whose window is small."""
    return Agent(
        "Serve people.",
        name="teller",
        tools=[transfer, tell, question_tool()],
        model=FunctionModel(_answer, price=player.PRICE, name="teller"),
        context=ContextManager(max_tokens=1000, recent_messages=4),
        queue=queue,
    )


teller = teller_of("default")

clerk = Agent(
    "Serve people.",
    name="clerk",
    tools=[
        player.note,
        player.put,
        player.hold,
        pay,
        ship,
        launch,
        question_tool(),
        question_tool("ask_soon", "Asks the user, for a second.", timeout=ASK_SECONDS, default_reply="blue"),
        remember_tool(),
    ],
    model=FunctionModel(_answer, price=player.PRICE, name="clerk"),
)
