"""`pawl submit`: hands a task to an agent, and waits for its result where that is wanted."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from worker.cli.connecting import client
from worker.cli.errors import ExitCode, complain, complaining_of_warnings, exit_code_of, reported
from worker.cli.limits import Given, with_limits
from worker.cli.output import Json, print_json, print_text, say

if TYPE_CHECKING:
    from agent.budget import Budget
    from scheduler.client import AsyncClient, AsyncRunHandle

Priority = Literal["high", "default", "low"]
OnBusy = Literal["enqueue", "reject", "interrupt", "rollback"]


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command()(reported(with_limits(submit)))


def submit(
    *,
    limits: Given,
    agent: Annotated[str, typer.Argument(help="The agent's name; `pawl agents` lists them.")],
    task: Annotated[str | None, typer.Argument(help="The task; - or nothing: read from stdin.")] = None,
    session: Annotated[str, typer.Option(help="The conversation it belongs to.")] = "",
    tenant: Annotated[str, typer.Option(help="For whom it is.")] = "",
    key: Annotated[str, typer.Option(help="Idempotency key: the same key gives the run of before.")] = "",
    priority: Annotated[Priority, typer.Option(help="Which runs go first.")] = "default",
    delay: Annotated[float | None, typer.Option(min=0, help="Seconds until it may begin.")] = None,
    on_busy: Annotated[OnBusy, typer.Option(help="What to do in a session that is busy.")] = "enqueue",
    metadata: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, found again with the run; repeatable.")] = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Show progress on stderr, then the result.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0, help="With --wait: seconds, then exit code 5.")] = None,
    as_json: Json = False,
) -> int:
    """Submit a task. Prints the id of the run, or with --wait its result.

    \b
    Examples:
      pawl submit support "Refund order 7"
      pawl submit support "Refund order 7" --wait --max-steps 10 --max-cost-usd 0.05
      pawl submit support - --session s1 --tenant acme --key mail-42 < mail.txt
    """
    words = read_task(task)
    pairs = dict(_pair(text) for text in metadata or ())

    async def act() -> int:
        async with client() as opened:
            with complaining_of_warnings():
                run = await opened.submit(
                    agent,
                    words,
                    session=session,
                    tenant=tenant,
                    idempotency_key=key,
                    priority=priority,
                    delay=delay,
                    budget=await _budget(opened, agent, limits),
                    metadata=pairs,
                    on_busy=on_busy,
                )
            if wait:
                return await _wait(run, timeout, as_json)
            if as_json:
                print_json({"run": run.id})
            else:
                print_text(run.id)
            return ExitCode.OK

    return asyncio.run(act())


async def _budget(opened: AsyncClient, agent: str, limits: Given) -> Budget | None:
    """The agent's own budget with the limits that were given in place of its own."""
    if not limits:
        return None
    from agent.budget import Budget  # noqa: PLC0415

    own = next((card.budget for card in await opened.agents() if card.name == agent), Budget())
    return Budget.model_validate(own.model_dump(exclude_unset=True) | limits)


async def _wait(run: AsyncRunHandle[object], timeout: float | None, as_json: bool) -> int:
    """Shows how the run goes on stderr, and what it comes to on stdout."""
    from agent.errors import RunError  # noqa: PLC0415

    if not as_json:
        say(f"run {run.id}")
    progress = None if as_json else asyncio.create_task(_show_progress(run))
    try:
        await run.wait(timeout)
        if progress is not None and (await run.info()).ended:
            await progress
        result = await run.result()
    except RunError as error:
        if as_json:
            print_json(
                {"run": run.id, "status": (await run.info()).status, "error": str(error), "partial": error.partial}
            )
        complain(str(error))
        return exit_code_of(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        say(f"run {run.id} goes on: pawl events -f {run.id}")
        raise
    finally:
        if progress is not None:
            progress.cancel()
    if as_json:
        usage = {**asdict(result.usage), "cost_usd": result.usage.cost_usd}
        print_json(
            {"run": run.id, "status": "completed", "output": result.output, "steps": result.steps, "usage": usage}
        )
    else:
        print_output(result.output)
    return ExitCode.OK


async def _show_progress(run: AsyncRunHandle[object]) -> None:
    from worker.cli.event_lines import event_line  # noqa: PLC0415

    async for recorded in run.events(follow=True):
        say(event_line(recorded))


def print_output(output: object) -> None:
    """A result: text as it is, all else as JSON."""
    if isinstance(output, str):
        print_text(output)
    else:
        print_json(output)


def read_task(task: str | None) -> str:
    """The task that was given as an argument, or on stdin."""
    if task is not None and task != "-":
        if not task.strip():
            raise typer.BadParameter("it is empty", param_hint="TASK")
        return task
    if task is None and sys.stdin.isatty():
        raise typer.BadParameter("give the task as an argument, or on stdin", param_hint="TASK")
    words = sys.stdin.read().strip()
    if not words:
        raise typer.BadParameter("stdin is empty", param_hint="TASK")
    return words


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not (name and found):
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--metadata")
    return name, value
