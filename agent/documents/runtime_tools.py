"""Tools as objects: a name, a description, a model of the input, and what executes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from agent import tools as core
from agent.context import ActionContext
from agent.context import ToolContext as Call
from agent.errors import ToolError
from agent.registry import ActionRegistry
from agent.tools import build_model_tool

if TYPE_CHECKING:
    from agent.documents.messages import Message
    from agent.documents.runtime_sessions import SessionRepository


class ToolDefinition(BaseModel):
    """What a model is told of a tool. `parameters` is JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolResult(BaseModel):
    """What a tool came to: its content, or why there is none, in words for the model."""

    content: object = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a tool was called: the session, the run, and where both are kept.

    Attributes:
        idempotency_key: The same whenever this very call is executed again.
    """

    repository: SessionRepository
    session_id: str
    run_id: str
    idempotency_key: str

    async def history(self) -> list[Message]:
        """What was said in this session so far."""
        return await self.repository.list_messages(self.session_id)


class Tool(Protocol):
    """A tool as an object. Its input is validated against `input_model` before it is executed."""

    name: str
    description: str
    input_model: type[BaseModel]

    def definition(self) -> ToolDefinition:
        """What the model is told of it; such as `definition_of(self)`."""
        ...

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Does it. What is raised goes to the model as well."""
        ...


class SessionContext(ActionContext):
    """What the engine hands to tools as objects: where sessions are kept."""

    repository: Any  # a protocol, which pydantic cannot check


class ToolRegistry:
    """The tools of a runtime: objects, functions, or tools of the engine's own, by name."""

    def __init__(self, tools: Iterable[Tool | core.Tool | Callable[..., object]] = ()) -> None:
        self.actions = ActionRegistry()
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool | core.Tool | Callable[..., object]) -> None:
        """Adds a tool.

        Raises:
            ToolDefinitionError: It cannot be a tool.
            AgentDefinitionError: There is one of that name.
        """
        if isinstance(tool, core.Tool) or not hasattr(tool, "input_model"):
            self.actions.register(tool)  # pyright: ignore[reportArgumentType] - without an input model it is a function
        else:
            self.actions.register(_engine_tool(tool))  # pyright: ignore[reportArgumentType]

    def get(self, name: str) -> core.Tool | None:
        """The tool of that name, or None."""
        return self.actions.get_tool(name)

    def definitions(self) -> list[ToolDefinition]:
        """What a model is told of all of them."""
        return [
            ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in self.actions.tools.values()
        ]


def definition_of(tool: Tool) -> ToolDefinition:
    """The definition that follows from a tool's name, description and input model."""
    schema = tool.input_model.model_json_schema()
    return ToolDefinition(name=tool.name, description=tool.description, parameters=schema)


def _engine_tool(tool: Tool) -> core.Tool:
    definition = tool.definition()

    async def execute(arguments: BaseModel, sessions: SessionContext, call: Call) -> object:
        context = ToolContext(sessions.repository, call.session, call.run_id, call.idempotency_key)
        given: Mapping[str, Any] = arguments.model_dump(by_alias=True, exclude_unset=True)
        result = await tool.execute(dict(given), context)
        if result.error is not None:
            raise ToolError(result.error)
        return result.content

    made = build_model_tool(tool.input_model, execute, definition.name, definition.description)
    return made.model_copy(update={"parameters": definition.parameters})
