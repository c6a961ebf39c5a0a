"""An agent whose tools need a database, and whose effect must not happen twice.

    pawl run examples.refunds "Order 7 arrived broken. Refund it."

- `Shop` holds what the tools need. The model never sees it, and it never leaves the worker.
- `open_shop` is entered once in a worker process, and left when the process has drained.
- `refund` may be executed again after a crash, because the database knows the idempotency key of the call.

Without a key it runs on the script below. The database is the file that SHOP_DATABASE names.
"""

import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing

from agent import ActionContext, Agent, Budget, ScriptedModel, ToolContext, ToolError, tool
from agent.testing import call, say

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, customer TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, number INTEGER, cents INTEGER);
INSERT OR IGNORE INTO orders VALUES (7, 'Ada Miller', 4990);
"""


class Shop(ActionContext):
    """What the tools need."""

    database: sqlite3.Connection


@asynccontextmanager
async def open_shop() -> AsyncGenerator[Shop]:
    """Opens the database."""
    with closing(sqlite3.connect(os.environ.get("SHOP_DATABASE", "shop.db"), check_same_thread=False)) as database:
        database.executescript(SCHEMA)
        yield Shop(database=database)


@tool(idempotent=True)
async def look_up_order(number: int, shop: Shop) -> dict[str, object]:
    """Looks up an order.

    Args:
        number: As on the invoice.
    """
    found = shop.database.execute("SELECT customer, cents FROM orders WHERE number = ?", (number,)).fetchone()
    if found is None:
        raise ToolError(f"There is no order {number}.")  # the model reads this, and may ask for another one
    return {"number": number, "customer": found[0], "cents": found[1]}


@tool(idempotent=True)
async def refund(number: int, cents: int, shop: Shop, context: ToolContext) -> str:
    """Refunds an order.

    Args:
        number: As on the invoice.
        cents: How much.
    """
    with shop.database:  # a transaction
        shop.database.execute(
            "INSERT OR IGNORE INTO refunds VALUES (?, ?, ?)", (context.idempotency_key, number, cents)
        )
    return f"{cents / 100:.2f} refunded for order {number}"


SCRIPT = ScriptedModel(
    [
        call("look_up_order", number=7),
        call("refund", number=7, cents=4990),
        say("Order 7 is refunded: 49.90."),
    ]
)
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

refunds = Agent(
    "You refund orders that arrived broken. Look the order up, refund its whole amount once, then say what was done.",
    name="refunds",
    tools=[look_up_order, refund],
    action_context=open_shop,
    model=os.environ.get("REFUNDS_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else SCRIPT,
    budget=Budget(max_steps=10, max_tool_calls=5),
)
