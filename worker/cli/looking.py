"""Verbs that list things: runs, agents, workers, usage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from worker.cli.connecting import client
from worker.cli.errors import ExitCode, complain, reported
from worker.cli.output import Json, console, print_json, print_table, say, table
from worker.cli.text import ago, lasting, moment_of, money, one_line

if TYPE_CHECKING:
    from scheduler.cards import AgentCard
    from scheduler.client import RunInfo, RunPage, UsageRow

Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "budget_exceeded"]

_WATCH_SECONDS = 1.0
_WHY_CHARACTERS = 160
RUN_COLUMNS = ("RUN", "STATUS", "AGENT", "SESSION", "TENANT", "STEPS", "COST", "AGE", "WHY")
_AGENT_COLUMNS = ("AGENT", "MODEL", "QUEUE", "PRICED", "VERSION", "TOOLS")
_WORKER_COLUMNS = ("WORKER", "STATE", "RUNS", "QUEUES", "COMPLETED", "FAILED", "UP", "SEEN")


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    for verb in (runs, agents, workers, usage):
        app.command()(reported(verb))


def runs(
    *,
    status: Annotated[Status | None, typer.Option(help="In this status.")] = None,
    agent: Annotated[str, typer.Option(help="Of this agent.")] = "",
    session: Annotated[str, typer.Option(help="Of this session of a tenant.")] = "",
    tenant: Annotated[str, typer.Option(help="Of this tenant.")] = "",
    since: Annotated[str | None, typer.Option(help="Submitted since: 2h, 3d, or an ISO date.")] = None,
    until: Annotated[str | None, typer.Option(help="Submitted before: likewise.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    page: Annotated[str, typer.Option(help="The place that the page before ended with.")] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Show the list anew every second.")] = False,
    as_json: Json = False,
) -> int:
    """List runs, the newest first.

    \b
    Examples:
      pawl runs --status failed --since 2h
      pawl runs --agent support --tenant acme --watch
      pawl runs --json | jq -r .id
    """
    now = datetime.now(UTC)
    conditions: dict[str, Any] = {
        "status": status,
        "agent": agent,
        "session": session,
        "tenant": tenant,
        "since": _moment(since, now, "--since"),
        "until": _moment(until, now, "--until"),
        "limit": limit,
        "page": page,
    }

    async def act() -> None:
        async with client() as opened:
            if watch and not as_json:
                await _watch(lambda: opened.runs(**conditions))
                return
            _print_page(await opened.runs(**conditions), as_json)

    asyncio.run(act())
    return ExitCode.OK


def agents(as_json: Json = False) -> int:
    """List the agents that workers have.

    \b
    Example:
      pawl agents --json | jq .tools
    """

    async def act() -> None:
        async with client() as opened:
            print_cards(await opened.agents(), as_json=as_json)

    asyncio.run(act())
    return ExitCode.OK


def print_cards(cards: list[AgentCard], *, as_json: bool) -> None:
    """The cards of agents."""
    if as_json:
        for card in cards:
            print_json(card)
        return
    print_table(
        _AGENT_COLUMNS,
        (
            (
                card.name,
                card.model,
                card.queue,
                "yes" if card.priced else "no",
                card.version,
                ", ".join(tool.name for tool in card.tools),
            )
            for card in cards
        ),
    )
    if not cards:
        say("no worker has an agent: start one with `pawl worker <module>`")


def workers(as_json: Json = False) -> int:
    """List the worker processes.

    \b
    Example:
      pawl workers
    """

    async def act() -> None:
        async with client() as opened:
            found = await opened.workers()
        if as_json:
            for worker in found:
                print_json(worker)
            return
        now = datetime.now(UTC)
        print_table(
            _WORKER_COLUMNS,
            (
                (
                    worker.name,
                    worker.state,
                    str(worker.runs),
                    ",".join(worker.queues),
                    str(worker.completed),
                    str(worker.failed),
                    ago(worker.started_at, now),
                    ago(worker.seen_at, now),
                )
                for worker in found
            ),
        )
        if not found:
            say("there is no worker: start one with `pawl worker <module>`")

    asyncio.run(act())
    return ExitCode.OK


def usage(
    days: Annotated[int, typer.Option(min=1, max=400, help="Today and the days before, so many in all (UTC).")] = 1,
    by: Annotated[str, typer.Option(help="agent, model, tenant or day; several with commas.")] = "agent,model,tenant",
    as_json: Json = False,
) -> int:
    """Show what agents used, day by day.

    The cost is that of the calls whose price is known.

    \b
    Examples:
      pawl usage
      pawl usage --days 30 --by day
    """
    names = [name.strip() for name in by.split(",")]
    if wrong := set(names) - {"agent", "model", "tenant", "day"}:
        raise typer.BadParameter(f"{', '.join(sorted(wrong))}: use agent, model, tenant or day", param_hint="--by")

    async def act() -> None:
        async with client() as opened:
            groups = _grouped(await opened.usage(days=days), names)
        if as_json:
            for group in groups:
                print_json(group)
            return
        columns = (*names, "model_calls", "unpriced_calls", "input_tokens", "output_tokens", "cost_usd")
        print_table(
            [column.replace("_", " ").upper() for column in columns],
            ([money(value) if name == "cost_usd" else str(value) for name, value in group.items()] for group in groups),
        )
        if not groups:
            say("nothing was used")

    asyncio.run(act())
    return ExitCode.OK


def _grouped(rows: list[UsageRow], names: list[str]) -> list[dict[str, Any]]:
    """Sums by the values of some fields, the dearest first."""
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(str(getattr(row, name)) for name in names)
        group = sums.setdefault(key, dict(zip(names, key, strict=True)))
        for metric in ("model_calls", "unpriced_calls", "input_tokens", "output_tokens", "cost_usd"):
            group[metric] = group.get(metric, 0) + getattr(row, metric)
    return sorted(sums.values(), key=lambda group: (-group["cost_usd"], -group["input_tokens"]))


def _print_page(page: RunPage, as_json: bool) -> None:
    if as_json:
        for run in page.runs:
            print_json(run.to_json())
    else:
        print_table(RUN_COLUMNS, run_rows(page))
        if not page.runs:
            say("no run fits")
    for run_id in page.broken:
        complain(f"the record of run {run_id} cannot be read; it is kept for inspection")
    if page.next:
        say(f"there may be more: --page '{page.next}'")


async def _watch(read: Callable[[], Any]) -> None:
    from rich.live import Live  # noqa: PLC0415

    with Live(console=console(), auto_refresh=False, screen=console().is_terminal) as live:
        while True:
            live.update(table(RUN_COLUMNS, run_rows(await read())), refresh=True)
            await asyncio.sleep(_WATCH_SECONDS)


def run_rows(page: RunPage) -> list[tuple[str, ...]]:
    """Runs as rows of a table."""
    now = datetime.now(UTC)
    return [_row(run, now) for run in page.runs]


def _row(run: RunInfo, now: datetime) -> tuple[str, ...]:
    status = f"{run.status} ({run.wait})" if run.wait else str(run.status)
    took = run.ended_at - run.created_at if run.ended_at else None
    age = f"{ago(run.created_at, now)}, took {lasting(took.total_seconds())}" if took else ago(run.created_at, now)
    return (
        run.id,
        status,
        run.agent,
        run.session,
        run.tenant,
        str(run.step),
        money(run.cost_usd),
        age,
        one_line(_asked(run) or run.reason or (f"on {run.worker}" if run.worker else ""), _WHY_CHARACTERS),
    )


def _asked(run: RunInfo) -> str:
    """What a waiting run asks of people."""
    return "; ".join(f"{request.kind} {request.id}: {request.question}" for request in run.requests)


def _moment(text: str | None, now: datetime, option: str) -> datetime | None:
    try:
        return None if text is None else moment_of(text, now)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither an age such as 2h nor a date such as 2026-03-01 or 2026-03-01T12:00, "
            "within the years 1 to 9999",
            param_hint=option,
        ) from None
