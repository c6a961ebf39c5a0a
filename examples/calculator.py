"""An agent that calculates with tools.

    pawl run examples.calculator "Add 200 and 10, then double it."

Without a key it runs on the script below, whatever is asked. With OPENAI_API_KEY, or OPENAI_BASE_URL for another server,
it asks a real model, that of CALCULATOR_MODEL.
"""

import os

from agent import Agent, Budget, ScriptedModel, tool
from agent.testing import call, say


@tool(idempotent=True)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(idempotent=True)
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


SCRIPT = ScriptedModel([call("add", a=200, b=10), call("multiply", a=210, b=2), say("420")])
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

calculator = Agent(
    "Answer the question. Use the tools for all arithmetic.",
    name="calculator",
    tools=[add, multiply],
    model=os.environ.get("CALCULATOR_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else SCRIPT,
    budget=Budget(max_steps=10),
)
