"""The options of a budget, the same for every verb that takes one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

Given = dict[str, Any]
"""Limits by name, those that were given on the command line."""

LIMITS: dict[str, tuple[type, str]] = {
    "max_steps": (int, "Turns of the loop."),
    "max_tool_calls": (int, "Tool calls."),
    "max_model_calls": (int, "Model calls, failed ones too."),
    "max_input_tokens": (int, "Input tokens over all model calls."),
    "max_output_tokens": (int, "Output tokens over all model calls."),
    "max_total_tokens": (int, "Tokens over all model calls."),
    "max_cost_usd": (str, "US dollars over all model calls."),
    "max_active_seconds": (float, "Seconds in which a worker has the run."),
    "max_wall_seconds": (float, "Seconds since it was submitted."),
}
"""The fields of a budget (agent.budget), named here so that `--help` need not import it."""


def with_limits(verb: Callable[..., int]) -> Callable[..., int]:
    """Gives a verb the options `--max-steps` and its like. It takes those that were given as `limits`."""

    @functools.wraps(verb)
    def run(**arguments: Any) -> int:
        given = {name: arguments.pop(name) for name in LIMITS}
        return verb(limits={name: value for name, value in given.items() if value is not None}, **arguments)

    own = [each for each in inspect.signature(verb, eval_str=True).parameters.values() if each.name != "limits"]
    parameters = [*own, *(_option(name, kind, words) for name, (kind, words) in LIMITS.items())]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _option(name: str, kind: type, words: str) -> inspect.Parameter:
    option = typer.Option(f"--{name.replace('_', '-')}", help=words, rich_help_panel="Budget", callback=_checked)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


def _checked(parameter: typer.CallbackParam, value: float | str | None) -> float | str | None:
    """A limit that a budget can have."""
    if value is None:
        return None
    try:
        if not Decimal(value) >= 0:
            raise typer.BadParameter("must not be negative")
    except InvalidOperation:
        raise typer.BadParameter(f"{value!r} is not a number") from None
    from pydantic import ValidationError  # noqa: PLC0415

    from agent.budget import Budget  # noqa: PLC0415

    try:
        Budget.model_validate({str(parameter.name): value})
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"].replace("Input should", "must")) from None
    return value
