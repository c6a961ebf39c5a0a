"""One tool call, executed: arguments checked, dependencies injected, the result made readable. Never raises for a tool's sake."""

import time
from dataclasses import dataclass

from agent.context import ActionContext, ToolContext
from agent.errors import InvalidArguments, ToolError, ToolTimeout
from agent.events import Outcome
from agent.output import any_json
from agent.program import Program
from agent.redaction import redact
from agent.rendering import cut, render_result
from agent.state import OpenCall


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """How an execution ended. `result` is what the exit returned, as JSON can carry it; `ms` its milliseconds."""

    call: OpenCall
    outcome: Outcome
    content: str
    ms: int
    result: object = None


async def execute(
    program: Program, open_call: OpenCall, dependencies: ActionContext | None, call: ToolContext
) -> ToolEnd:
    """Executes a call that may start now.

    An exception of the tool becomes an error for the model, whatever its type: one broken tool must not end its neighbours.
    """
    started = time.monotonic()
    name = open_call.call.name
    tool = program.registry.tools[name]
    is_exit = name == program.exit.name
    result: object = None
    try:
        arguments = tool.validate_arguments(open_call.call.arguments)
        value = await program.environment.execute_action(tool, arguments, dependencies, call)
        content = render_result(value)
        if is_exit:
            result = program.output.to_json(value) if program.output else any_json(value)
        outcome: Outcome = "ok"
    except InvalidArguments as problem:
        outcome, content = ("invalid_output" if is_exit and program.output else "invalid"), str(problem)
    except ToolError as error:
        outcome, content = ("unknown" if isinstance(error, ToolTimeout) else "error"), str(error)
    except Exception as error:
        outcome, content = "error", f"{type(error).__name__}: {error}"
    if outcome != "ok":
        content = redact(content)
    ms = int((time.monotonic() - started) * 1000)
    return ToolEnd(open_call, outcome, cut(content, program.result_limit), ms, result)
