"""The step machine by hand: one outcome after the other, and what comes next."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from agent.agent import Agent
from agent.budget import Budget, Elapsed
from agent.errors import ModelError
from agent.events import (
    Event,
    Recorded,
    RunCreated,
    ToolReturned,
)
from agent.intents import AskModel, StartTools
from agent.models.base import ModelReply
from agent.models.scripted import ScriptedModel
from agent.outcomes import failure_events, reply_events, tool_events
from agent.program import Program
from agent.state import Mark, RunState
from agent.step import decide
from agent.tools import tool
from tests.support.engine import folded

AT_ONCE = Elapsed(active_ms=0, wall_ms=0)


@tool
def read() -> str:
    """Reads."""
    return "read"


@tool(idempotent=True)
def index() -> str:
    """Indexes."""
    return "indexed"


@tool(parallel=False)
def pay(amount: int = 1) -> str:
    """Pays."""
    return "paid"


@tool(on_unknown="retry")
def ping() -> str:
    """Pings."""
    return "pong"


@tool(on_unknown="fail")
def launch() -> str:
    """Launches."""
    return "launched"


class Answer(BaseModel):
    """A typed result."""

    value: int


def program(output: type[Any] = str, **options: Any) -> Program:
    defaults: dict[str, Any] = {"model": ScriptedModel([]), "tools": [read, index, pay, ping, launch]}
    return Agent("Do it.", output_schema=output, **defaults | options).program()


def start(budget: Budget | None = None) -> RunState:
    return folded([RunCreated(agent="a", task="go", budget=budget or Budget())])


def next_of(state: RunState, machine: Program, elapsed: Elapsed = AT_ONCE) -> object:
    return decide(state, machine, "r1", elapsed)


def asked(state: RunState, machine: Program, elapsed: Elapsed = AT_ONCE) -> AskModel:
    intent = next_of(state, machine, elapsed)
    assert isinstance(intent, AskModel), intent
    return intent


def apply(state: RunState, events: Sequence[Event]) -> None:
    for event in events:
        state.apply(Recorded(seq=state.head.seq + 1, at=0, event=event))


def replied(state: RunState, machine: Program, reply: ModelReply) -> list[Event]:
    events = reply_events(state, machine, asked(state, machine), reply, ms=0, active_ms=0)
    apply(state, events)
    return events


def failed(state: RunState, machine: Program, error: ModelError, jitter: float = 0.0) -> list[Event]:
    events = failure_events(state, machine, asked(state, machine), error, jitter=jitter, ms=0, active_ms=0)
    apply(state, events)
    return events


def started(state: RunState, machine: Program) -> list[str]:
    """The calls that start now."""
    intent = next_of(state, machine)
    if not isinstance(intent, StartTools):
        return []
    for open_call in intent.calls:
        open_call.mark = Mark.STARTED
    return [open_call.key for open_call in intent.calls]


def ended(state: RunState, machine: Program, key: str, result: object = "done") -> list[Event]:
    assert state.exchange is not None
    events = tool_events(machine, state.exchange.calls[key], "ok", str(result), result=result, ms=0, active_ms=0)
    apply(state, events)
    return events


def answers(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [(event.call, event.outcome) for event in events if isinstance(event, ToolReturned)]
