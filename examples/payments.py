"""An agent that pays invoices; larger ones only where a person allows it.

    python examples/payments.py "Pay invoices 17 and 18."

It asks on the terminal: yes, or why not. Durably nobody has to sit there: `pawl worker examples.payments`, then `pawl submit
payments "Pay invoices 17 and 18."`, and whenever it suits `pawl approve RUN` or `pawl reject RUN --reason "…"`; until then the
run waits, and holds nothing. `pawl chat payments` asks as soon as there is something to decide. Without a key it runs on the
script below. With OPENAI_API_KEY, or OPENAI_BASE_URL for another server, it asks the model PAYMENTS_MODEL, in the dialect
PAYMENTS_DIALECT (tools, json or react).
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import cast

from agent import Agent, Budget, FunctionModel, ModelReply, ModelRequest, PawlError, tool
from agent.events import RequestOpened
from agent.requests import Answer
from agent.testing import call, calls, say

INVOICES = {17: 4_990, 18: 250_000}
SMALL = 10_000


def is_large(arguments: Mapping[str, object]) -> bool:
    """Whether a payment needs a person."""
    return cast(int, arguments["cents"]) > SMALL


@tool(idempotent=True)
def look_up_invoice(number: int) -> int:
    """Tells the amount of an invoice, in cents."""
    return INVOICES[number]


@tool(approval=is_large)
def pay(number: int, cents: int) -> str:
    """Pays an invoice.

    Args:
        number: Of the invoice.
        cents: How much.
    """
    return f"{cents / 100:.2f} paid for invoice {number}"


def script(request: ModelRequest) -> ModelReply:
    """Looks both invoices up, pays them, and reports what became of it."""
    if request.step == 1:
        return calls(call("look_up_invoice", number=17), call("look_up_invoice", number=18))
    if request.step == 2:
        return calls(call("pay", number=17, cents=4_990), call("pay", number=18, cents=250_000))
    return say(" / ".join(message.content or "" for message in request.messages[-2:]))


HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

payments = Agent(
    "Pay the invoices that the user names. Look up each amount first.",
    name="payments",
    tools=[look_up_invoice, pay],
    model=os.environ.get("PAYMENTS_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else FunctionModel(script),
    dialect=os.environ.get("PAYMENTS_DIALECT", "tools") if HAS_MODEL else "tools",
    budget=Budget(max_steps=10),
)


async def ask(request: RequestOpened) -> Answer:
    """Asks on the terminal."""
    said = (await asyncio.to_thread(input, f"{request.question} [yes / reason why not] ")).strip()
    if said.lower() in ("y", "yes"):
        return Answer(request.request, "approve")
    return Answer(request.request, "reject", said)


if __name__ == "__main__":
    try:
        print(asyncio.run(payments.run(" ".join(sys.argv[1:]) or "Pay invoices 17 and 18.", answer=ask)).output)
    except (PawlError, EOFError) as error:
        sys.exit(f"no result: {error}")
