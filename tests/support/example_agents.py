"""Agents for tests of whole processes: their models are scripted, so that nothing outside is needed."""

from pydantic import BaseModel

from agent import Agent, Budget, tool
from agent.models.scripted import ScriptedModel, call, calls, say


class Sum(BaseModel):
    """A typed result."""

    total: int


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


calculator = Agent(
    "Add numbers.",
    name="calculator",
    tools=[add],
    output_schema=Sum,
    model=ScriptedModel([calls(call("add", a=200, b=10), call("add", a=1, b=2)), call("terminate", total=213)]),
    budget=Budget(max_steps=5),
)

talker = Agent("Talk.", name="talker", model=ScriptedModel([say("Hello.")]))

slow = Agent("Take your time.", name="slow", model=ScriptedModel([say("At last.")], latency=60.0))

hostile = Agent(
    "Steer the terminal.",
    name="hostile",
    model=ScriptedModel([say("\x1b[31mred\x07 \u202eevil [bold]markup[/bold] [/]")]),
)
"""What a model writes is somebody else's text."""

nameless = Agent("Talk.", model=ScriptedModel([say("Who am I?")]))
