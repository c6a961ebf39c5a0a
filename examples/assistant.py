"""A runtime with sessions: each message is a task, or the answer to what a run asks.

    python examples/assistant.py "Multiply two numbers." "6 and 7." "What was it?"

The session is kept in memory. With --store it is kept in Redis, that of PAWL_REDIS_URL or a private one, and a later call goes
on with it; `pawl runs` and `pawl show` tell of its runs, and `pawl worker examples.assistant` goes on with one whose process
died. Without a key it runs on the script below. With OPENAI_API_KEY, or OPENAI_BASE_URL for another server, it asks the model
ASSISTANT_MODEL, in the dialect ASSISTANT_DIALECT (tools, json or react).
"""

import argparse
import asyncio
import os
from contextlib import AsyncExitStack

from pydantic import BaseModel, Field

from agent import AgentRuntime, FunctionModel, ModelReply, ModelRequest, PawlError, ToolRegistry, ToolResult
from agent.documents.runtime import (
    ContextManager,
    MemorySessionRepository,
    SessionRepository,
    ToolContext,
    ToolDefinition,
    definition_of,
)
from agent.testing import call, say
from agent.toolbox.arithmetic import calculate
from scheduler.log import configure
from worker.session_repository import StoredSessions


class CalculatorInput(BaseModel):
    """What the calculator takes."""

    expression: str = Field(min_length=1, max_length=500, description="Such as 2 * (3 + 4).")


class Calculator:
    """A tool as an object."""

    name = "calculator"
    description = "Calculates an arithmetic expression."
    input_model: type[BaseModel] = CalculatorInput

    def definition(self) -> ToolDefinition:
        """What the model is told of it."""
        return definition_of(self)

    async def execute(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Calculates."""
        return ToolResult(content=calculate(CalculatorInput.model_validate(arguments).expression))


def script(request: ModelRequest) -> ModelReply:
    """Asks, calculates and answers; from the second task on it has it all in its memory."""
    said = [message.content or "" for message in request.messages]
    if "The result is 42." in said:
        return say("It was 42.")
    replies = [call("ask_user", question="Which numbers?"), call("calculator", expression="6 * 7")]
    return [*replies, say("The result is 42.")][request.step - 1]


HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))


def runtime_over(repository: SessionRepository) -> AgentRuntime:
    """The runtime."""
    return AgentRuntime(
        repository,
        name="assistant",
        llm=os.environ.get("ASSISTANT_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else FunctionModel(script),
        dialect=os.environ.get("ASSISTANT_DIALECT", "tools") if HAS_MODEL else "tools",
        tool_registry=ToolRegistry([Calculator()]),
        system_instruction="Help with figures. Use the calculator. Ask the user where something is missing.",
        context_manager=ContextManager(max_tokens=4_000, recent_messages=20),
    )


agent = runtime_over(StoredSessions()).agent


async def main(session: str, messages: list[str], *, store: bool) -> None:
    """One message after the other."""
    configure(level="warning")
    async with AsyncExitStack() as stack:
        repository = await stack.enter_async_context(StoredSessions()) if store else MemorySessionRepository()
        runtime = runtime_over(repository)
        runs = await repository.list_runs(session)
        waiting = (
            runs[-1].id if runs and runs[-1].status == "waiting" else None
        )  # a question that an earlier call left open
        for message in messages:
            print(f"> {message}")
            result = await runtime.run(session, message, run_id=waiting)
            waiting = result.run_id if result.status == "waiting" else None
            print(f"{result.content}    [{result.status}, {result.counters.loop_count} steps]")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A conversation.")
    parser.add_argument("messages", nargs="+")
    parser.add_argument("--session", default="s1")
    parser.add_argument("--store", action="store_true", help="keep the session in Redis")
    given = parser.parse_args()
    try:
        asyncio.run(main(given.session, given.messages, store=given.store))
    except (PawlError, ValueError) as error:
        parser.exit(1, f"{error}\n")
