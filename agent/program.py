"""An agent, made ready to run: what the step machine and the driver look up at every step, worked out once."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from agent.aside import reader_tool
from agent.budget import Budget
from agent.context_window import ContextManager
from agent.dialects.base import Dialect
from agent.environment import Environment
from agent.messages import Message
from agent.models.base import ModelClient, ToolSpecification
from agent.output import OutputSchema
from agent.registry import ActionRegistry
from agent.text import bounded
from agent.tools import Tool

_WHOLE: Final = ContextManager()
_NO_BUDGET: Final = Budget()


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What stays the same over all runs of an agent in a process.

    Attributes:
        instruction: The system message.
        exit: The one terminal tool.
        output: The schema of the result; None where the agent's own terminal tool gives it.
        overhead: Estimated tokens of a request beside its messages.
        context: How much of a conversation the model reads.
        budget: The limits of a run that came without any.
        parallel: The most tool calls of one run at once.
        max_attempts: Attempts to get one reply, before the run fails.
        max_unusable: Replies in a row of which nothing could be used, before the run fails.
        max_tokens: Output tokens that a model call asks for; None: 4,096, or what is left.
        model_timeout: Seconds for one attempt.
        result_limit: Bytes of a tool's result that the model reads; the rest is cut, and it is told so. A byte may
            take six as JSON, and an event has room for a million.
    """

    name: str
    instruction: Message
    registry: ActionRegistry
    exit: Tool
    specifications: tuple[ToolSpecification, ...]
    exit_specification: ToolSpecification
    output: OutputSchema[object] | None
    environment: Environment
    model: ModelClient
    dialect: Dialect
    overhead: int
    context: ContextManager = _WHOLE
    budget: Budget = _NO_BUDGET
    parallel: int = 8
    max_attempts: int = 6
    max_unusable: int = 4
    max_tokens: int | None = None
    temperature: float | None = None
    model_timeout: float = 120.0
    result_limit: int = 160_000

    def for_reading(self) -> "Program":
        """The same program with the tool to read on in long results; asked for again, the same object."""
        return _with_reader(self)

    def with_overhead(self, tokens: int) -> "Program":
        """The same program, once it is known what its requests carry beside the messages."""
        return replace(self, overhead=tokens)


@lru_cache(maxsize=256)
def _with_reader(program: Program) -> Program:
    reader = reader_tool()
    registry = program.registry.copy()
    if registry.get_tool(reader.name) is not None:
        return program
    registry.register(reader)
    specification = ToolSpecification(reader.name, reader.description, reader.parameters)
    changed = replace(program, registry=registry, specifications=(*program.specifications, specification))
    return changed.with_overhead(program.dialect.overhead(changed))


def unknown_tool(name: str, program: Program) -> str:
    """What a model reads that called a tool which is not there."""
    known = ", ".join(sorted(program.registry.tools))
    return f"Tool '{bounded(name, 80)}' not found. The tools are: {known}."
