"""What an agent is: tools, the step machine, budgets, models. Knows nothing of Redis.

from agent import Agent, tool

@tool
def add(a: int, b: int) -> int:
    "Adds two numbers."
    return a + b

calculator = Agent("Do arithmetic with the tools.", name="calculator", tools=[add], model="openai:gpt-4o")
result = calculator.run_sync("What is 2 and 3?")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.agent import Agent, Goal
    from agent.budget import Budget, Usage
    from agent.context import ActionContext, RunIdentity, ToolContext
    from agent.context_window import ContextManager
    from agent.conversation import ContextState
    from agent.documents.completion import generate_response
    from agent.documents.memory import Memory
    from agent.documents.react import SimpleAgent
    from agent.documents.runtime import AgentRuntime, RuntimeCounters
    from agent.documents.runtime_llm import LLM, LLMResponse
    from agent.documents.runtime_memory import MemorySessionRepository
    from agent.documents.runtime_sessions import SessionRepository
    from agent.documents.runtime_tools import ToolDefinition, ToolRegistry, ToolResult
    from agent.environment import Environment
    from agent.errors import (
        AgentDefinitionError,
        BrokenRecord,
        BudgetExceeded,
        ConfigurationError,
        Conflict,
        ContextExceeded,
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
        SessionNotFound,
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
    from agent.tools import Action, Approval, Tool, build_tool, tool

__all__ = [
    "LLM",
    "Action",
    "ActionContext",
    "ActionRegistry",
    "Agent",
    "AgentDefinitionError",
    "AgentRuntime",
    "Approval",
    "BrokenRecord",
    "Budget",
    "BudgetExceeded",
    "ConfigurationError",
    "Conflict",
    "ContextExceeded",
    "ContextManager",
    "ContextState",
    "ContextTypeError",
    "Environment",
    "FunctionModel",
    "Goal",
    "InvalidArguments",
    "LLMResponse",
    "Memory",
    "MemorySessionRepository",
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
    "RuntimeCounters",
    "ScriptedModel",
    "SessionNotFound",
    "SessionRepository",
    "SimpleAgent",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDefinition",
    "ToolDefinitionError",
    "ToolError",
    "ToolRegistry",
    "ToolResult",
    "UnknownPriceError",
    "Usage",
    "build_tool",
    "generate_response",
    "tool",
]

_HOMES = {
    "LLM": "documents.runtime_llm",
    "Action": "tools",
    "ActionContext": "context",
    "ActionRegistry": "registry",
    "Agent": "agent",
    "AgentRuntime": "documents.runtime",
    "Approval": "tools",
    "Budget": "budget",
    "ContextManager": "context_window",
    "ContextState": "conversation",
    "Environment": "environment",
    "FunctionModel": "models.function",
    "Goal": "agent",
    "LLMResponse": "documents.runtime_llm",
    "Memory": "documents.memory",
    "MemorySessionRepository": "documents.runtime_memory",
    "Message": "messages",
    "ModelClient": "models.base",
    "ModelReply": "models.base",
    "ModelRequest": "models.base",
    "OpenAIModel": "models.openai",
    "Price": "models.base",
    "Role": "messages",
    "RunIdentity": "context",
    "RunResult": "result",
    "RuntimeCounters": "documents.runtime",
    "ScriptedModel": "models.scripted",
    "SessionRepository": "documents.runtime_sessions",
    "SimpleAgent": "documents.react",
    "Tool": "tools",
    "ToolCall": "messages",
    "ToolContext": "context",
    "ToolDefinition": "documents.runtime_tools",
    "ToolRegistry": "documents.runtime_tools",
    "ToolResult": "documents.runtime_tools",
    "Usage": "budget",
    "build_tool": "tools",
    "generate_response": "documents.completion",
    "tool": "tools",
}
"""The module of each name; those that are not here are errors."""


def __getattr__(name: str) -> object:
    """Imports a public name when it is first asked for: an HTTP client or the documents' shapes are not for everyone."""
    if name not in __all__:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    value: object = getattr(import_module(f"agent.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value
