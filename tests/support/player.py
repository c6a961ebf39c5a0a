"""The agents of the acceptance tests, as worker processes import them."""

import asyncio
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from agent import ActionContext, Agent, RunIdentity, ToolContext, tool
from agent.errors import ModelRefusedRequest, ModelUnavailable
from agent.models.base import ModelReply, ModelRequest, Price, RawToolCall
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call
from tests.support import plays
from tests.support.traces import Traces

LEASE_SECONDS = 1.0
INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(2))


async def perform(request: ModelRequest) -> ModelReply:
    """Says what the play of the run says for this step."""
    step = _play_of(request)[request.step - 1]
    traces = Traces.of_this_process()
    traces.leave("model", request.run_id, f"{request.step}/{request.attempt}")
    if step.seconds:
        await asyncio.sleep(step.seconds)
    if step.gate:
        await _pass(traces, step.gate)
    if request.attempt <= len(step.retry_after):
        raise ModelUnavailable("busy", status=429, retry_after=step.retry_after[request.attempt - 1])
    if step.refuses_until and not traces.is_open(step.refuses_until):
        raise ModelRefusedRequest("not yet", status=400)
    calls = tuple(RawToolCall(one.tool, one.arguments) for one in step.uses)
    reply = ModelReply(content=step.text or None, tool_calls=calls, finish_reason="tool_calls" if calls else "stop")
    return replace(reply, input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)


def _play_of(request: ModelRequest) -> tuple[plays.Step, ...]:
    """The newest play among what the user said: those before it are the session's memory."""
    said = (message.content or "" for message in reversed(request.messages) if message.role == "user")
    return next(play for text in said if (play := plays.read(text)))


async def _pass(traces: Traces, gate: str) -> None:
    while not traces.is_open(gate):  # noqa: ASYNC110 - the gate is a file
        await asyncio.sleep(0.01)


def _leave(what: str, context: ToolContext, text: str = "") -> Traces:
    traces = Traces.of_this_process()
    traces.leave(what, context.run_id, context.idempotency_key, text)
    return traces


@tool
async def note(text: str, context: ToolContext) -> str:
    """Leaves a trace."""
    _leave("note", context, text)
    return f"noted {text}"


@tool(idempotent=True)
async def put(text: str, seconds: float, context: ToolContext) -> str:
    """Leaves a trace, and may be called again."""
    _leave("put", context, text)
    await asyncio.sleep(seconds)
    return f"put {text}"


@tool
async def hold(gate: str, context: ToolContext) -> str:
    """Waits at a gate."""
    await _pass(_leave("hold", context), gate)
    _leave("held", context)
    return "held"


@tool(idempotent=True)
async def hold_again(gate: str, context: ToolContext) -> str:
    """Waits at a gate, and may be called again."""
    await _pass(_leave("hold_again", context), gate)
    _leave("held_again", context)
    return "held"


@tool
def block(seconds: float, context: ToolContext) -> str:
    """Sleeps in a thread."""
    _leave("block", context)
    time.sleep(seconds)
    _leave("blocked", context)
    return "blocked"


@tool
async def hog(seconds: float, context: ToolContext) -> str:
    """Async in name only."""
    _leave("hog", context)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "hogged"


@tool
def seize(seconds: int, context: ToolContext) -> str:
    """Keeps the interpreter lock, as native code can."""
    _leave("seize", context)
    ctypes.PyDLL(None).sleep(seconds)
    return "seized"


@tool(idempotent=True)
async def boom(context: ToolContext) -> str:
    """Kills its process."""
    _leave("boom", context)
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


@tool
async def big(characters: int, letter: str, context: ToolContext) -> str:
    """Returns a long text."""
    _leave("big", context)
    return letter * characters


class Grumble(Exception):
    """An error that nothing can pickle."""

    def __init__(self) -> None:
        super().__init__("I hold a lock")
        self.lock = threading.Lock()


@tool
async def grumble(context: ToolContext) -> str:
    """Raises an error that cannot be pickled."""
    _leave("grumble", context)
    raise Grumble


@tool(timeout=LEASE_SECONDS)
async def overdue(seconds: float, context: ToolContext) -> str:
    """Takes as long as it may."""
    _leave("overdue", context)
    await asyncio.sleep(seconds)
    return "in time"


@tool(terminal=True)
async def finish_with_much() -> str:
    """Returns a result that no event can hold."""
    return "x" * 50_000_000


TOOLS: tuple[Callable[..., object], ...] = (note, put, hold, hold_again, block, hog, seize, boom, big, grumble, overdue)


def player_of(queue: str) -> Agent[str]:
    """The player, with its runs in a queue of their own."""
    model = FunctionModel(perform, price=PRICE)
    return Agent("Play the play.", name="player", tools=TOOLS, model=model, queue=queue)


player = player_of("default")


class Kit(ActionContext):
    """Dependencies of one run."""


async def gather(identity: RunIdentity) -> Kit:
    """Takes until the test opens the gate."""
    traces = Traces.of_this_process()
    traces.leave("gather", identity.run_id, "")
    await _pass(traces, "kit")
    return Kit()


careful = Agent("Play.", name="careful", tools=TOOLS, model=FunctionModel(perform, price=PRICE), action_context=gather)

giant = Agent("Return much.", name="giant", tools=[finish_with_much], model=ScriptedModel([call("finish_with_much")]))
