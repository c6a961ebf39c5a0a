"""What an agent is: tools, the step machine, budgets, models. Knows nothing of Redis.

from agent import Agent, tool

@tool
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b

calculator = Agent("Do arithmetic with the tools.", name="calculator", tools=[add], model="openai:gpt-4o")
result = calculator.run_sync("What is 2 and 3?")
"""

from agent.agent import Agent, Goal
from agent.budget import Budget, Usage
from agent.context import ActionContext, RunIdentity, ToolContext
from agent.environment import Environment
from agent.errors import (
    AgentDefinitionError,
    BrokenRecord,
    BudgetExceeded,
    ConfigurationError,
    Conflict,
    ContextTypeError,
    InvalidArguments,
    ModelError,
    ModelRefusedRequest,
    ModelUnavailable,
    NotResumable,
    PawlError,
    RunCancelled,
    RunError,
    RunFailed,
    RunNotFound,
    RunWaiting,
    StoreError,
    StoreUnavailable,
    TooLarge,
    ToolDefinitionError,
    ToolError,
    UnknownPriceError,
)
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelClient, ModelReply, ModelRequest, Price
from agent.models.function import FunctionModel
from agent.models.openai import OpenAIModel
from agent.models.scripted import ScriptedModel
from agent.registry import ActionRegistry
from agent.result import RunResult
from agent.tools import Action, Tool, build_tool, tool

__all__ = [
    "Action",
    "ActionContext",
    "ActionRegistry",
    "Agent",
    "AgentDefinitionError",
    "BrokenRecord",
    "Budget",
    "BudgetExceeded",
    "ConfigurationError",
    "Conflict",
    "ContextTypeError",
    "Environment",
    "FunctionModel",
    "Goal",
    "InvalidArguments",
    "Message",
    "ModelClient",
    "ModelError",
    "ModelRefusedRequest",
    "ModelReply",
    "ModelRequest",
    "ModelUnavailable",
    "NotResumable",
    "OpenAIModel",
    "PawlError",
    "Price",
    "Role",
    "RunCancelled",
    "RunError",
    "RunFailed",
    "RunIdentity",
    "RunNotFound",
    "RunResult",
    "RunWaiting",
    "ScriptedModel",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "UnknownPriceError",
    "Usage",
    "build_tool",
    "tool",
]
