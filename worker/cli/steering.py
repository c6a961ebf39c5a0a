"""Verbs that tell a run something: cancel, resume, add-budget, reply, approve, reject, delete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from worker.cli.connecting import client
from worker.cli.errors import ExitCode, reported
from worker.cli.limits import LIMITS, Given, with_limits
from worker.cli.output import Json, print_json, print_text

if TYPE_CHECKING:
    from scheduler.client import AsyncRunHandle

    Handle = AsyncRunHandle[object]

Run = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
Request = Annotated[str, typer.Option(help="Which request is answered, where there are several.")]

_CANCELLED = {
    "cancelled": "cancelled",
    "asked": "asked to end: its worker hears it within two seconds",
    "over": "had ended before",
}
_RESUMED = {"resumed": "goes on", "behind": "goes on behind another run of its session"}


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    for verb in (cancel, reply, approve, reject, delete):
        app.command()(reported(verb))
    app.command()(reported(with_limits(resume)))
    app.command("add-budget")(reported(with_limits(add_budget)))


def cancel(run: Run, as_json: Json = False) -> int:
    """End a run.

    One that a worker has is asked to end, which takes two seconds at most.

    \b
    Example:
      pawl cancel 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b
    """

    async def act(handle: Handle) -> str:
        return await handle.cancel()

    return _tell(run, act, _CANCELLED, as_json)


def resume(*, limits: Given, run: Run, as_json: Json = False) -> int:
    """Let a failed or budget_exceeded run go on.

    Limits that are given replace its own; what it used still counts.

    \b
    Example:
      pawl resume 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b --max-steps 100
    """

    async def act(handle: Handle) -> str:
        info = await handle.info()
        limit = info.error.partition(":")[0]
        if info.status == "budget_exceeded" and limit in LIMITS and limit not in limits:
            option = f"--{limit.replace('_', '-')}"
            raise typer.BadParameter(f"the run ended at {info.error}: give it more with {option}", param_hint=option)
        if not limits:
            return await handle.resume()
        from agent.budget import Budget  # noqa: PLC0415

        return await handle.resume(budget=Budget.model_validate(info.budget.model_dump() | limits))

    return _tell(run, act, _RESUMED, as_json)


def add_budget(*, limits: Given, run: Run, as_json: Json = False) -> int:
    """Add to the limits of a run that has not ended.

    \b
    Example:
      pawl add-budget 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b --max-steps 10 --max-cost-usd 0.10
    """
    if not limits:
        raise typer.BadParameter("say what to add, such as --max-steps 10")
    return _tell(run, lambda handle: handle.add_budget(**cast(Any, limits)), {}, as_json, "added")


def reply(
    run: Run, text: Annotated[str, typer.Argument(help="The answer.")], request: Request = "", as_json: Json = False
) -> int:
    """Answer a question that a run asked.

    \b
    Example:
      pawl reply 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b "the second one"
    """
    return _tell(run, lambda handle: handle.reply(text, request=request), {}, as_json, "answered")


def approve(
    run: Run,
    request: Annotated[str, typer.Argument(help="Which request, where there are several.")] = "",
    arguments: Annotated[str | None, typer.Option(help="Other arguments for the call, a JSON object.")] = None,
    as_json: Json = False,
) -> int:
    """Allow a tool call that a run asked for.

    \b
    Example:
      pawl approve 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b --arguments '{"amount": 5}'
    """
    changed = None if arguments is None else _object(arguments)
    return _tell(run, lambda handle: handle.approve(request, arguments=changed), {}, as_json, "approved")


def reject(
    run: Run,
    request: Annotated[str, typer.Argument(help="Which request, where there are several.")] = "",
    reason: Annotated[str, typer.Option(help="Why; the model reads it.")] = "",
    as_json: Json = False,
) -> int:
    """Forbid a tool call that a run asked for.

    \b
    Example:
      pawl reject 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b --reason "too much"
    """
    return _tell(run, lambda handle: handle.reject(request, reason=reason), {}, as_json, "rejected")


def delete(run: Run, as_json: Json = False) -> int:
    """Remove an ended run and all that is stored of it.

    \b
    Example:
      pawl delete 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b
    """
    return _tell(run, lambda handle: handle.delete(), {}, as_json, "deleted")


def _tell(
    run_id: str,
    act: Callable[[Handle], Awaitable[str | None]],
    words: dict[str, str],
    as_json: bool,
    done: str = "",
) -> int:
    """Tells one run something, and says what came of it."""

    async def tell() -> str:
        async with client() as opened:
            return await act(await opened.get(run_id)) or done

    outcome = asyncio.run(tell())
    if as_json:
        print_json({"run": run_id, "outcome": outcome})
    else:
        print_text(f"{run_id} {words.get(outcome, outcome)}")
    return ExitCode.OK


def _object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--arguments") from None
    if not isinstance(found, dict):
        raise typer.BadParameter("must be a JSON object", param_hint="--arguments")
    return cast("dict[str, Any]", found)
