"""The agents of the benchmarks. Their models are scripted: what is measured is Pawl."""

import time

from agent import Agent, Budget, tool
from agent.context_window import ContextManager
from agent.models.base import ModelReply
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, say, with_usage

STEPS = 20
WAITING_CALLS = 3
WAITING_LATENCY = 1.0
LONG_STEPS = 1_000
TALK_STEPS = 20
KILOBYTE = "It is written, and it is read again. " * 28  # 1,036 characters


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool(idempotent=True)
async def read(page: int) -> str:
    """Reads a page of a book."""
    return KILOBYTE[:1024]


def _sums_and_an_answer(steps: int) -> list[ModelReply]:
    """As many steps, each with the tokens that a server reports for it."""
    calls = [call("add", a=step, b=200) for step in range(1, steps)]
    return [with_usage(reply, input_tokens=100, output_tokens=20) for reply in [*calls, say("Done.")]]


def _pages_and_an_answer(steps: int) -> list[ModelReply]:
    return [call("read", page=step) for step in range(1, steps)] + [say("Done.")]


steps = Agent("Add numbers.", name="steps", tools=[add], model=ScriptedModel(_sums_and_an_answer(STEPS)))

waiting = Agent(
    "Add numbers.",
    name="waiting",
    tools=[add],
    model=ScriptedModel(_sums_and_an_answer(WAITING_CALLS), latency=WAITING_LATENCY),
)
hasty = Agent("Add numbers.", name="hasty", tools=[add], model=ScriptedModel(_sums_and_an_answer(WAITING_CALLS)))

reader = Agent(
    "Read the book.",
    name="reader",
    tools=[read],
    model=ScriptedModel(_pages_and_an_answer(LONG_STEPS)),
    budget=Budget(max_steps=None),
)

talker = Agent(
    "Read the book.",
    name="talker",
    tools=[read],
    model=ScriptedModel(_pages_and_an_answer(TALK_STEPS)),
    context=ContextManager(max_tokens=4_000, recent_messages=12),
)

stuck = Agent("Think.", name="stuck", model=ScriptedModel([say("Done.")], latency=3600.0), model_timeout=3600.0)

prompt = Agent(
    "Say what time it is, in nanoseconds.",
    name="prompt",
    model=FunctionModel(lambda _request: str(time.time_ns())),
)
