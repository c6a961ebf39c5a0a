"""One tool call, executed: arguments checked, dependencies injected, the result made readable. Never raises for a tool's sake."""

import asyncio

from agent.context import ActionContext, ToolContext
from agent.environment import RunNotOwned
from agent.errors import InvalidArguments, ToolError, ToolTimeout, UnrenderableResult
from agent.events import Outcome
from agent.output import OutputSchema, any_json
from agent.output_validators import validated
from agent.program import Program, unknown_tool
from agent.redaction import redact
from agent.rendering import cut, render_result
from agent.state import OpenCall
from agent.text import well_formed, words_of
from agent.values import value


@value
class ToolEnd:
    """How an execution ended.

    Attributes:
        ms: Milliseconds that it took.
        result: What the exit returned, as JSON can carry it, or why it cannot.
    """

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

    Raises:
        RunNotOwned: The tool was not called.
    """
    now = asyncio.get_running_loop().time
    started = now()
    outcome, content, result = await _outcome(program, open_call, dependencies, call)
    if outcome != "ok":
        content = redact(well_formed(content))
    return ToolEnd(open_call, outcome, cut(content, program.result_limit), int((now() - started) * 1000), result)


async def _outcome(
    program: Program, open_call: OpenCall, dependencies: ActionContext | None, call: ToolContext
) -> tuple[Outcome, str, object]:
    name = open_call.call.name
    is_exit = name == program.exit.name
    tool = program.registry.get_tool(name)
    if tool is None:  # planned by a worker that had it
        return "invalid", unknown_tool(name, program), None
    try:
        arguments = tool.validate_arguments(open_call.call.arguments)
    except InvalidArguments as problem:
        return ("invalid_output" if is_exit and program.output else "invalid"), str(problem), None
    try:
        value = await program.environment.execute_action(tool, arguments, dependencies, call)
        if is_exit and program.output is not None:
            return await _handed_in(program.output, value)
        return "ok", render_result(value), any_json(value) if is_exit else None
    except RunNotOwned:
        raise
    except UnrenderableResult as error:  # the exit has done its work: to call it once more would do it twice
        problem = UnrenderableResult(redact(str(error)))
        return ("ok", str(problem), problem) if is_exit else ("error", str(problem), None)
    except ToolError as error:
        return ("unknown" if isinstance(error, ToolTimeout) else "error"), str(error), None
    except asyncio.CancelledError:
        if asyncio.current_task().cancelling():  # pyright: ignore[reportOptionalMemberAccess] - a coroutine is in a task
            raise
        return "error", "The tool was cancelled by its own code.", None
    except BaseException as error:  # also what is meant to end a process, alone or in a group
        return "error", words_of(error), None


async def _handed_in(output: OutputSchema[object], value: object) -> tuple[Outcome, str, object]:
    """The result that the built-in exit was called with, once the validators have seen it."""
    try:
        accepted = await validated(output, value)
        return "ok", render_result(accepted), output.to_json(accepted)
    except InvalidArguments as problem:
        return "invalid_output", str(problem), None
