"""Verbs that show one run: all of it, or its events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.printable import printable_json
from worker.cli.connecting import client
from worker.cli.errors import ExitCode, reported
from worker.cli.output import Json, print_fields, print_json, print_table, print_text
from worker.cli.steering import Run
from worker.cli.submitting import print_output
from worker.cli.text import clock, lasting, money, one_line

if TYPE_CHECKING:
    from agent.events import Recorded
    from scheduler.client import RunInfo
    from worker.cli.story import HolderTold, StepTold, Story

_EVENTS_SHOWN = 30
_STEP_COLUMNS = ("STEP", "CALLS OR TEXT", "TOKENS", "COST", "TOOK", "MODEL")
_HOLDER_COLUMNS = ("WORKER", "SINCE", "FOR", "UNTIL")


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.command()(reported(show))
    app.command()(reported(events))


def show(run: Run, as_json: Json = False) -> int:
    """Show a whole run.

    Where it stands, its steps and calls, what it used, who had it, its events, its result.

    \b
    Example:
      pawl show 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b
    """

    async def act() -> None:
        from worker.cli.story import story_of  # noqa: PLC0415

        async with client() as opened:
            handle = await opened.get(run)
            info = await handle.info()
            recorded = [event async for event in handle.events()]
        story = story_of(recorded)
        if as_json:
            _print_all(info, story, recorded)
        else:
            _print_for_people(info, story, recorded)

    asyncio.run(act())
    return ExitCode.OK


def events(
    run: Run,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    after: Annotated[str, typer.Option(help="Begin behind the event of this number.")] = "0",
    as_json: Json = False,
) -> int:
    """Print the events of a run, with -f as they come.

    \b
    Examples:
      pawl events -f 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b
      pawl events 0-0197f3c2a4b87c1e9d2b5a6f7e8d9c0b --json | jq -c 'select(.type == "tool_returned")'
    """

    async def act() -> None:
        async with client() as opened:
            handle = await opened.get(run)
            async for recorded in handle.events(after, follow=follow):
                _print_event(recorded, as_json)

    asyncio.run(act())
    return ExitCode.OK


def _print_event(recorded: Recorded, as_json: bool) -> None:
    from agent.events import as_json as event_as_json  # noqa: PLC0415
    from worker.cli.event_lines import event_line  # noqa: PLC0415

    typer.echo(printable_json(event_as_json(recorded).decode()) if as_json else event_line(recorded))


def _print_all(info: RunInfo, story: Story, recorded: list[Recorded]) -> None:
    import json  # noqa: PLC0415

    from agent.events import as_json as event_as_json  # noqa: PLC0415

    print_json(
        {
            "run": info.to_json(),
            "task": story.task,
            "steps": story.steps,
            "holders": story.holders,
            "events": [json.loads(event_as_json(event)) for event in recorded],
        }
    )


def _print_for_people(info: RunInfo, story: Story, recorded: list[Recorded]) -> None:
    from worker.cli.event_lines import event_line  # noqa: PLC0415

    print_fields(_fields(info, story))
    _print_part("steps", bool(story.steps))
    if story.steps:
        print_table(_STEP_COLUMNS, [row for step in story.steps for row in _step_rows(step)])
    _print_part("held by", bool(story.holders))
    if story.holders:
        print_table(_HOLDER_COLUMNS, [_holder_row(holder) for holder in story.holders])
    _print_part("events", True)
    if len(recorded) > _EVENTS_SHOWN:
        print_text(f"  (the last {_EVENTS_SHOWN} of {len(recorded)}; all: pawl events {info.id})")
    for event in recorded[-_EVENTS_SHOWN:]:
        print_text(event_line(event))
    if info.ended:
        _print_part("result" if info.status == "completed" else "partial result", True)
        print_output(info.output if info.status == "completed" else info.partial or "(none)")


def _print_part(title: str, there: bool) -> None:
    if there:
        print_text(f"\n{title}")


def _fields(info: RunInfo, story: Story) -> list[tuple[str, str]]:
    usage = info.usage
    took = (info.ended_at - info.created_at).total_seconds() if info.ended_at else None
    estimated = f", of which {usage.estimated_tokens} estimated" if usage.estimated_tokens else ""
    unpriced = f", and {usage.unpriced_calls} calls whose price is not known" if usage.unpriced_calls else ""
    return [
        ("run", info.id),
        ("status", f"{info.status} ({info.wait})" if info.wait else str(info.status)),
        ("why", one_line(info.error or info.reason, 300)),
        ("task", one_line(story.task, 300)),
        ("agent", f"{info.agent} on queue {info.queue}"),
        ("session", info.session),
        ("tenant", info.tenant),
        ("metadata", ", ".join(f"{key}={value}" for key, value in info.metadata.items())),
        ("created", clock(info.created_at)),
        ("started", clock(info.started_at)),
        ("ended", f"{clock(info.ended_at)} after {lasting(took)}" if took is not None else ""),
        ("due", clock(info.due_at)),
        ("worker", info.worker),
        ("crashes", str(info.crashes or "")),
        *(("asks", f"{asked.kind} {asked.id}: {one_line(asked.question, 300)}") for asked in info.requests),
        ("steps", f"{info.step}, {usage.model_calls} model calls, {usage.tool_calls} tool calls"),
        ("tokens", f"{usage.input_tokens} in, {usage.output_tokens} out{estimated}"),
        ("cost", f"{money(usage.cost_usd)}{unpriced}"),
        ("active", lasting(usage.active_ms / 1000)),
        ("left", ", ".join(f"{name} {amount}" for name, amount in info.budget_left.items())),
    ]


def _step_rows(step: StepTold) -> list[tuple[str, ...]]:
    usage = step.usage
    cost = money(None if usage.unpriced_calls else usage.cost_usd)
    tokens = f"{usage.input_tokens} + {usage.output_tokens}"
    rows = [("", f"! {one_line(failure)}", "", "", "", "") for failure in step.failures]
    rows.append((str(step.step), one_line(step.content), tokens, cost, lasting(step.ms / 1000), step.model))
    for call in step.calls:
        changed = " as a person changed it" if call.is_changed else ""
        said = f"{one_line(call.name)}({one_line(call.arguments, 60)}){changed}"
        answer = f"{call.outcome}: {one_line(call.content, 60)}" if call.outcome else "not answered"
        rows.append((f" {call.key}", f"{said} -> {answer}", "", "", lasting(call.ms / 1000), ""))
    return rows


def _holder_row(holder: HolderTold) -> tuple[str, ...]:
    held = lasting((holder.until - holder.since).total_seconds()) if holder.until else ""
    return one_line(holder.worker), clock(holder.since), held, one_line(holder.why) if holder.until else "now"
