"""A run with the world around it: what its tools and its model did, and whether they were allowed to."""

import asyncio
from dataclasses import dataclass, field

from agent.agent import Agent
from agent.budget import Budget
from agent.context import ToolContext
from agent.errors import ModelError
from agent.events import (
    ModelReplied,
    RunCompleted,
    ToolReturned,
)
from agent.mailbox import Departure
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, calls, say
from agent.state import Mark
from agent.tools import tool
from tests.support import virtual_time
from tests.support.engine import RUN, Crashed, Record, RecordingJournal, activate, assert_valid, folded


@dataclass
class World:
    """Everything outside of the run: what was done to it, and what was done without being announced."""

    record: Record
    journal: RecordingJournal | None = None
    asked: list[int] = field(default_factory=list[int])
    effects: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    violations: list[str] = field(default_factory=list[str])

    def ask(self, request: ModelRequest) -> None:
        if self.record.open is None:
            self.violations.append(f"asked at step {request.step} without a reservation")
        if any(isinstance(event, ModelReplied) and event.step >= request.step for event in self.record.facts):
            self.violations.append(f"asked again at step {request.step}")
        self.asked.append(request.step)

    def affect(self, name: str, context: ToolContext) -> None:
        if self.record.marks.get(context.call_key) is not Mark.STARTED:
            self.violations.append(f"{name} {context.call_key} started unannounced")
        if self.journal is not None and context.call_key not in self.journal.acknowledged:
            self.violations.append(f"{name} {context.call_key} started before its commit was acknowledged")
        if any(isinstance(event, ToolReturned) and event.call == context.call_key for event in self.record.facts):
            self.violations.append(f"{name} {context.call_key} started again")
        self.effects.append((name, context.idempotency_key, context.attempt))

    def keys(self, name: str) -> list[str]:
        return [key for effect, key, _ in self.effects if effect == name]


SCRIPT: list[ModelReply] = [
    calls(call("note"), call("pay"), call("note"), call("nothing_like_it")),
    call("pay"),
    calls(call("pay"), call("fetch"), call("pay")),
    say("done"),
]


def world_of(
    script: list[ModelReply], *, failures: dict[tuple[int, int], ModelError] | None = None, budget: Budget | None = None
) -> tuple[World, Agent[str]]:
    """An agent whose tools and model write down what they do."""
    world = World(Record.created(budget=budget))
    scripted = ScriptedModel(script, failures=failures)

    async def reply(request: ModelRequest) -> ModelReply:
        world.ask(request)
        await asyncio.sleep(1)
        return await scripted.complete(request)

    @tool(idempotent=True)
    async def note(tool_context: ToolContext) -> str:
        """Notes."""
        world.affect("note", tool_context)
        await asyncio.sleep(2)
        return "noted"

    @tool
    async def pay(tool_context: ToolContext) -> str:
        """Pays."""
        world.affect("pay", tool_context)
        await asyncio.sleep(1)
        return "paid"

    @tool(parallel=False, on_unknown="retry")
    async def fetch(tool_context: ToolContext) -> str:
        """Fetches."""
        world.affect("fetch", tool_context)
        await asyncio.sleep(1)
        raise RuntimeError("down")

    return world, Agent("Do it.", tools=[note, pay, fetch], model=FunctionModel(reply))


def live(world: World, agent: Agent[str], *crashes: tuple[int, bool]) -> Departure:
    """Activations until one comes to its end; each of the first ends at a commit, before or behind its storing."""

    async def lives() -> Departure:
        for commit, stored in crashes:
            world.journal = RecordingJournal(
                world.record, crash_before=0 if stored else commit, crash_after=commit if stored else 0
            )
            try:
                return await activate(agent, world.record, world.journal)
            except Crashed:
                await asyncio.sleep(0)  # what the process did dies with it
        world.journal = RecordingJournal(world.record)
        return await activate(agent, world.record, world.journal)

    return virtual_time.run(lives())


def assert_survived(world: World, departure: Departure) -> None:
    """What must hold whatever crashed: the same outcome, and nothing done twice that must not be."""
    assert departure.status == "completed"
    assert world.record.all_of(RunCompleted) == [RunCompleted(output="done")]
    assert world.violations == []
    paid = world.keys("pay")
    assert len(paid) == len(set(paid)), "paid twice"
    assert set(world.keys("note")) == {f"{RUN}:1.0", f"{RUN}:1.2"}
    replies = [event.step for event in world.record.all_of(ModelReplied)]
    assert replies == [1, 2, 3, 4]
    state = folded(world.record.facts)
    assert state.head.to_bytes() == world.record.checkpoint
    assert_valid(state.history)
    assert len(state.history) == 1 + 5 + 2 + 4 + 1
    assert world.record.marks == {}
    assert world.record.open is None
