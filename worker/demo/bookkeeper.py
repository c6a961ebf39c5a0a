"""The demo's agent: it settles an order in five steps, with tools whose every effect is written to a file.

Without a key for a real model it runs on a script, so that it needs nothing and costs nothing.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Final

from agent import Agent, Budget, ModelClient, OpenAIModel, ScriptedModel, ToolContext, tool
from agent.models.base import ModelReply
from agent.models.scripted import call, calls, say
from agent.prices import FREE

EFFECTS: Final = "PAWL_DEMO_EFFECTS"
"""The variable that names the file of effects."""

MODEL: Final = "PAWL_DEMO_MODEL"
LATENCY_SECONDS: Final = 0.4
STEPS: Final = 5


def _note(effect: str, context: ToolContext) -> None:
    """Writes one line for one effect; a single write, so that lines of several processes do not mix."""
    line = json.dumps({"key": context.idempotency_key, "effect": effect, "process": os.getpid()})
    path = os.environ.get(EFFECTS)
    if path:
        with Path(path).open("ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


@tool(idempotent=True)
async def look_up_order(order: int, context: ToolContext) -> dict[str, object]:
    """Looks up what was ordered, and for how much.

    Args:
        order: The order's number.
    """
    await asyncio.sleep(0.05)
    _note("look_up", context)
    return {"order": order, "items": ["coat", "hat"], "total": 100 + order}


@tool(idempotent=True)
async def reserve(item: str, context: ToolContext) -> str:
    """Reserves one item in the warehouse.

    Args:
        item: What to reserve, as the order names it.
    """
    await asyncio.sleep(0.1)
    _note("reserve", context)
    return f"{item}: reserved"


@tool
async def charge(order: int, amount: int, context: ToolContext) -> str:
    """Charges the customer. Must never happen twice.

    Args:
        order: The order's number.
        amount: US dollars.
    """
    _note("charge", context)
    await asyncio.sleep(0.1)
    return f"order {order}: {amount} dollars charged"


@tool(idempotent=True)
async def send_receipt(order: int, context: ToolContext) -> str:
    """Sends the receipt to the customer.

    Args:
        order: The order's number.
    """
    await asyncio.sleep(0.05)
    _note("receipt", context)
    return f"receipt for order {order} sent"


def order_of(task: str) -> int:
    """The number of the order that a task of the demo names."""
    return int(task.rstrip(".").rpartition(" ")[2])


class _Script(ScriptedModel):
    """Settles the order that the task names."""

    def __init__(self) -> None:
        super().__init__(self._replies, latency=LATENCY_SECONDS, price=FREE, name="scripted (no key, no cost)")

    def _replies(self, run_id: str, step: int) -> ModelReply:
        order = int(run_id[-2:], 16)
        script = (
            call("look_up_order", order=order),
            calls(call("reserve", item="coat"), call("reserve", item="hat")),
            call("charge", order=order, amount=100 + order),
            call("send_receipt", order=order),
            say(f"Order {order} is settled: {100 + order} dollars charged, receipt sent."),
        )
        return script[min(step, len(script)) - 1]


def model() -> ModelClient:
    """A real model where the environment has a key or an address for one, else the script."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return OpenAIModel(os.environ.get(MODEL, "gpt-4o-mini"))
    return _Script()


bookkeeper = Agent(
    "You settle orders. Look the order up, reserve each of its items, charge the total once, send the receipt, "
    "then say in one sentence what was done.",
    name="demo-bookkeeper",
    tools=[look_up_order, reserve, charge, send_receipt],
    model=model(),
    budget=Budget(max_steps=15, max_tool_calls=30),
)
