"""GAME: an agent as goal, actions, memory and environment.

    registry = ActionRegistry()
    registry.register(add)
    agent = Agent("Perform arithmetic.", registry, output_schema=Answer)
    agent.run("Add 200 and 10.")            # the result; agent.memory holds the conversation

Both forms of the agent are here: over a registry, and over a list of actions made by hand.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, cast, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError

from agent import agent as core
from agent.agent import Goal
from agent.blocking import run_to_end
from agent.budget import Budget
from agent.context import ActionContext, ToolContext
from agent.context import context_parameter as context_param
from agent.dialects import Dialect
from agent.documents.completion import MAX_TOKENS, Completion, generate_response, gpt_4o
from agent.documents.memory import Memory, MemoryFeed, MemoryWindow
from agent.documents.messages import Message
from agent.environment import Environment as EngineEnvironment
from agent.errors import AgentDefinitionError, BudgetExceeded, ToolError
from agent.messages import Role
from agent.models.base import ModelClient
from agent.output import FIELD, TERMINATE, OutputSchema
from agent.registry import ActionRegistry
from agent.rendering import render_result
from agent.schema import schema_of
from agent.tools import Action, Tool, build_tool, tool

__all__ = [
    "JSON_TYPE_MAP",
    "Action",
    "ActionContext",
    "ActionRegistry",
    "Agent",
    "Completion",
    "Environment",
    "Goal",
    "Memory",
    "Message",
    "OutputSchema",
    "Role",
    "Tool",
    "build_tool",
    "context_param",
    "generate_response",
    "get_json_type",
    "tool",
]


def get_json_type(python_type: object) -> str:
    """The word of JSON Schema for a type; for a union that of its first choice but None; `string` where there is none."""
    try:
        schema = schema_of(TypeAdapter[object](cast(Any, python_type)))
    except PydanticUserError:  # a type that no schema can be made of, or a list or dict of such
        origin = get_origin(python_type)
        return get_json_type(origin) if origin in (list, dict) else "string"
    choices = cast("list[dict[str, object]]", schema.get("anyOf", [schema]))
    kinds = [str(choice["type"]) for choice in choices if choice.get("type", "null") != "null"]
    return kinds[0] if kinds else "string"


JSON_TYPE_MAP: Final = {kind: get_json_type(kind) for kind in (str, int, float, bool)}


def error_result(error: Exception) -> dict[str, object]:
    """What an action that raised comes to."""
    return {"error": str(error)}


class Environment:
    """The border between the model and the world, for code that is not async. Subclass it to change how tools are called."""

    _engine: ClassVar = EngineEnvironment()

    def execute_action(
        self, action: Tool, args: Mapping[str, object], action_context: ActionContext | None = None
    ) -> object:
        """Calls an action with a copy of the arguments, and with what is hidden from the model.

        Returns:
            What the action returned, or `{"error": ...}` where it raised.
        """
        try:
            return run_to_end(self._engine.execute_action(action, dict(args), action_context))
        except Exception as error:
            return error_result(error)


class Agent:
    """An agent whose runs leave their conversation in `memory` and their result in `result`.

    Args:
        goal: The system message, or a `Goal` with it; a goal's name is the agent's name.
        action_registry: The tools. It is copied: the built-in exit never shows in it.
        output_schema: The type of the result: str or a model. It is carried by the built-in exit `terminate`.
        environment: What calls the tools.
        action_context: What tools get and the model never sees.
        actions: Tools made by hand, in place of a registry.
        model: A name, or a client; otherwise GPT-4o.
        memory: Makes the memory of a run.
        name: What it is called where it runs durably; otherwise the goal's name.

    Raises:
        AgentDefinitionError: A ValueError: two exits, or an output schema beside an own terminal tool.
        ContextTypeError: A TypeError: the context is not what a tool asks for.
    """

    TERMINATE_TOOL_NAME: Final = TERMINATE
    _TERMINATE_STR_FIELD: Final = FIELD

    def __init__(
        self,
        goal: str | Goal,
        action_registry: ActionRegistry | None = None,
        output_schema: type[Any] | None = None,
        environment: Environment | None = None,
        action_context: ActionContext | None = None,
        *,
        actions: Sequence[Tool] | None = None,
        model: str | ModelClient | None = None,
        dialect: str | Dialect = "tools",
        memory: Callable[[], Memory] = Memory,
        name: str | None = None,
    ) -> None:
        if (action_registry is None) == (actions is None):
            raise AgentDefinitionError("give an agent a registry, or a list of actions; not both, not neither")
        self.goal = goal
        self.environment = environment or Environment()
        self.action_context = action_context or ActionContext()
        self.result: object = None
        self._new_memory = memory
        self._told: list[Message] = []
        self._options: dict[str, Any] = {
            "name": name or (goal.name if isinstance(goal, Goal) else None),
            "tools": action_registry if action_registry is not None else actions,
            "model": model or gpt_4o(),
            "dialect": dialect,
            "action_context": self.action_context,
            "environment": _Border(self.environment),
            "max_tokens": MAX_TOKENS,
        }
        if output_schema is not None:
            self._options["output_schema"] = output_schema
        self.agent: core.Agent[Any] = core.Agent(goal, **self._options)
        self.output_schema = str if output_schema is None and self.agent.output is not None else output_schema
        self.memory = self._fresh_memory()

    @property
    def action_registry(self) -> ActionRegistry:
        """The agent's own tools, its exit among them."""
        return self.agent.registry

    @property
    def actions(self) -> dict[str, Tool]:
        """The agent's own tools, by name."""
        return self.agent.registry.tools

    def tools_schema(self) -> list[dict[str, object]]:
        """What the model is told of the tools."""
        return self.agent.registry.get_tools_schema()

    def add_memory(self, message: Message) -> None:
        """Adds to what every run begins with, behind the goal."""
        self._told.append(message)
        self.memory.add(message)

    def run(self, user_input: str, max_iterations: int = 15) -> Any:
        """Works on a task, with a memory of its own, to the end.

        Returns:
            The result; None where the iterations were used up before there was one.

        Raises:
            RunFailed: It cannot go on, such as without a model that answers.
        """
        self.result, self.memory = None, self._fresh_memory()
        self.memory.add(Message(role=Role.USER, content=user_input))
        feed = MemoryFeed(self.memory)
        agent: core.Agent[Any] = core.Agent(self.goal, context=MemoryWindow(feed=feed), **self._options)
        try:
            self.result = agent.run_sync(user_input, budget=Budget(max_steps=max_iterations)).output
        except BudgetExceeded:
            return None
        finally:
            feed.catch_up()
        return self.result

    def _fresh_memory(self) -> Memory:
        memory = self._new_memory()
        memory.add(Message(role=Role.SYSTEM, content=self.agent.goal))
        for message in self._told:
            memory.add(message)
        return memory

    @classmethod
    def _build_terminate_tool(cls, output_schema: type[Any]) -> Tool:
        """The built-in exit, which can also be called with the fields of the result."""
        schema = OutputSchema[object](output_schema)
        exit_tool = schema.terminate_tool()

        def finish(**fields: Any) -> object:
            given = fields.get("arguments")
            if isinstance(given, BaseModel):  # from the engine, which has checked them
                return schema.handed_in(given)
            return schema.handed_in(*cast("Iterable[BaseModel]", exit_tool.validate_arguments(fields).values()))

        return exit_tool.with_function(finish)

    @staticmethod
    def _to_content(result: object) -> str:
        """What the model reads of a result."""
        return render_result(result)


class _Border(EngineEnvironment):
    """The engine's environment, which asks one that is not async. What raised goes to the model; it never ends a run."""

    def __init__(self, environment: Environment) -> None:
        super().__init__()
        self._environment = environment
        self._is_plain = type(environment).execute_action is Environment.execute_action

    async def execute_action(
        self,
        tool: Tool,
        arguments: Mapping[str, object],
        action_context: ActionContext | None = None,
        call: ToolContext | None = None,
    ) -> object:
        try:
            if self._is_plain:
                return await super().execute_action(tool, arguments, action_context, call)
            result = await asyncio.to_thread(self._environment.execute_action, tool, arguments, action_context)
        except ToolError:
            raise
        except Exception as error:
            result = error_result(error)
        if _is_error(result):
            raise ToolError(render_result(result))
        return result


def _is_error(result: object) -> bool:
    return isinstance(result, dict) and list(cast("dict[object, object]", result)) == ["error"]
