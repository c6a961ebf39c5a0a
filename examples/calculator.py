"""A small agent: `pawl worker calculator` in this folder serves it, `pawl submit calculator "…" --wait` asks it."""

import os

from agent import Agent, tool


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


calculator = Agent(
    "Answer the question. Use the tools for all arithmetic.",
    name="calculator",
    tools=[add, multiply],
    model=os.environ.get("CALCULATOR_MODEL", "openai:gpt-4o-mini"),
)
