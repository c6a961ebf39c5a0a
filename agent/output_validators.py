"""The author's own look at a result, before the run ends with it."""

import asyncio
import inspect
from typing import TypeVar, cast

from agent.errors import InvalidArguments, ToolError
from agent.output import OutputSchema, OutputValidator
from agent.text import words_of

Output = TypeVar("Output")


async def validated(output: OutputSchema[Output], value: Output) -> Output:
    """The result as the validators leave it, one after the other; those that are not async run in a thread.

    Raises:
        InvalidArguments: One of them refused it, or broke. The text is for the model.
    """
    for validator in output.validators:
        try:
            result = await asyncio.to_thread(_called, validator, value)
            value = cast(Output, await result if inspect.isawaitable(result) else result)
        except (ValueError, ToolError) as problem:
            raise InvalidArguments(str(problem)) from problem
        except Exception as error:
            raise InvalidArguments(words_of(error)) from error
    if output.validators:
        _require_type(output, value)
    return value


def _require_type(output: OutputSchema[Output], value: Output) -> None:
    """Refuses what a validator returned by mistake, before anybody reads it as a result."""
    try:
        output.of_json(output.to_json(value))
    except ValueError as error:
        raise InvalidArguments(f"a validator returned something that is no {output.name}: {error}") from error


def _called(validator: OutputValidator[Output], value: Output) -> object:
    try:
        return validator(value)
    except (StopIteration, GeneratorExit) as error:  # no coroutine can be given one
        raise RuntimeError(f"the validator raised {type(error).__name__}") from error
