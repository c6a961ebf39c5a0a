"""A runtime with sessions in memory or in a store, for tests of the third document."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, Field

from agent import AgentRuntime, Budget, ToolRegistry, ToolResult
from agent.documents.messages import Message
from agent.documents.runtime import (
    LLMResponse,
    MemorySessionRepository,
    RequestedCall,
    SessionRepository,
    ToolContext,
    ToolDefinition,
    definition_of,
)
from agent.toolbox.arithmetic import calculate
from scheduler.settings import Settings
from worker.session_repository import StoredSessions


class CalculatorInput(BaseModel):
    """What the calculator takes."""

    expression: str = Field(min_length=1, max_length=500)


class Calculator:
    """The document's tool."""

    name = "calculator"
    description = "Calculates an arithmetic expression."
    input_model: type[BaseModel] = CalculatorInput

    def definition(self) -> ToolDefinition:
        """Follows from the name, the description and the input model."""
        return definition_of(self)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Calculates."""
        value = calculate(CalculatorInput.model_validate(arguments).expression)
        return ToolResult(content=value)


Reply = LLMResponse | Exception | Callable[[list[Message]], LLMResponse]


class ScriptedLLM:
    """Answers one reply after the other, and keeps what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.contexts: list[list[Message]] = []
        self.definitions: list[list[ToolDefinition]] = []
        self._replies = list(replies)

    async def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> LLMResponse:
        """The next reply."""
        self.contexts.append(messages)
        self.definitions.append(tools)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, LLMResponse) else reply(messages)


def final(text: str) -> LLMResponse:
    """The answer."""
    return LLMResponse(kind="final", content=text)


def question(text: str) -> LLMResponse:
    """A clarification."""
    return LLMResponse(kind="clarification", content=text)


def tool_call(expression: str) -> LLMResponse:
    """A call of the calculator."""
    return LLMResponse(
        kind="tool_call", tool_call=RequestedCall(name="calculator", arguments={"expression": expression})
    )


@asynccontextmanager
async def repository_in(place: str, redis_url: str) -> AsyncGenerator[SessionRepository]:
    """Sessions in `memory`, or in the `store`."""
    if place == "memory":
        yield MemorySessionRepository()
        return
    async with StoredSessions(Settings(redis_url=redis_url, lease_seconds=1.0, renew_seconds=0.25)) as repository:
        yield repository


def runtime_of(
    repository: SessionRepository, llm: Any, *, tools: Sequence[Any] = (Calculator(),), budget: Budget | None = None
) -> AgentRuntime:
    """A runtime with the calculator."""
    return AgentRuntime(
        repository,
        llm=llm,
        tool_registry=ToolRegistry(tools),
        system_instruction="Help with figures.",
        budget=budget or Budget(max_steps=8, max_tool_calls=8, max_active_seconds=60),
    )
