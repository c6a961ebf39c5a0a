"""The verbs for conversations: list them, look at one, make one forget, remove one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.connecting import client
from worker.cli.errors import ExitCode, complain, reported
from worker.cli.looking import RUN_COLUMNS, run_rows
from worker.cli.output import Json, print_fields, print_json, print_table, print_text, say
from worker.cli.text import ago, clock, one_line

if TYPE_CHECKING:
    from scheduler.client import AsyncSession, SessionInfo, SessionPage

Session = Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")]
Tenant = Annotated[str, typer.Option(help="Of this tenant.")]

COLUMNS = ("SESSION", "TENANT", "STATUS", "RUNS", "LAST ACTIVE", "BEGAN WITH")
_RUNS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(sessions)
    for verb in (show, forget, delete):
        group.command()(reported(verb))
    app.add_typer(group, name="sessions")


def sessions(
    context: typer.Context,
    tenant: Tenant = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    page: Annotated[str, typer.Option(help="The place that the page before ended with.")] = "",
    as_json: Json = False,
) -> None:
    """List conversations, look at one, make one forget.

    The last active comes first.

    \b
    Examples:
      pawl sessions --tenant acme
      pawl sessions show s1 --tenant acme
    """
    if context.invoked_subcommand is None:
        reported(_list)(tenant=tenant, limit=limit, page=page, as_json=as_json)


def show(session: Session, tenant: Tenant = "", as_json: Json = False) -> int:
    """Show a conversation: where it stands, what it remembers, its runs.

    \b
    Example:
      pawl sessions show s1 --tenant acme
    """

    async def act() -> None:
        async with client() as opened:
            info = await opened.session(session, tenant=tenant).info()
            runs = await opened.runs(session=session, tenant=tenant, limit=_RUNS_SHOWN)
        if as_json:
            print_json({**info.to_json(), "runs": [run.to_json() for run in runs.runs]})
            return
        print_fields(_fields(info))
        print_text("\nruns")
        print_table(RUN_COLUMNS, run_rows(runs))

    asyncio.run(act())
    return ExitCode.OK


def forget(session: Session, tenant: Tenant = "", as_json: Json = False) -> int:
    """Take the memory of a conversation away; its runs can still be looked at.

    \b
    Example:
      pawl sessions forget s1 --tenant acme
    """
    return _tell(session, tenant, lambda found: found.forget(), "forgotten", as_json)


def delete(session: Session, tenant: Tenant = "", as_json: Json = False) -> int:
    """Remove a conversation with its memory and all its runs.

    \b
    Example:
      pawl sessions delete s1 --tenant acme
    """
    return _tell(session, tenant, lambda found: found.delete(), "deleted", as_json)


def session_rows(page: SessionPage) -> list[tuple[str, ...]]:
    """Conversations as rows of a table."""
    now = datetime.now(UTC)
    return [
        (one.id, one.tenant, _status(one), str(one.runs), ago(one.last_activity, now), one_line(one.first_task))
        for one in page.sessions
    ]


def _list(*, tenant: str, limit: int, page: str, as_json: bool) -> int:
    async def act() -> None:
        async with client() as opened:
            found = await opened.sessions(tenant=tenant, limit=limit, page=page)
        if as_json:
            for one in found.sessions:
                print_json(one.to_json())
        else:
            print_table(COLUMNS, session_rows(found))
            if not found.sessions:
                say("there is no session: submit a run with --session, or start `pawl chat`")
        for name in found.broken:
            complain(f"the session {name} cannot be read; it is kept for inspection")
        if found.next:
            say(f"there may be more: --page '{found.next}'")

    asyncio.run(act())
    return ExitCode.OK


def _status(info: SessionInfo) -> str:
    if not info.active:
        return "idle"
    return f"busy, {info.waiting} behind" if info.waiting else "busy"


def _fields(info: SessionInfo) -> list[tuple[str, str]]:
    return [
        ("session", info.id),
        ("tenant", info.tenant),
        ("status", f"{_status(info)}: {info.active}" if info.active else "idle"),
        ("active", clock(info.last_activity)),
        ("began with", one_line(info.first_task, 300)),
        ("summary", one_line(info.summary, 600)),
        *(("remembers", one_line(text, 300)) for text in info.memory),
        *(("open", one_line(text, 300)) for text in info.open_questions),
    ]


def _tell(session: str, tenant: str, act: Callable[[AsyncSession], Awaitable[None]], done: str, as_json: bool) -> int:
    async def tell() -> None:
        async with client() as opened:
            await act(opened.session(session, tenant=tenant))

    asyncio.run(tell())
    if as_json:
        print_json({"session": session, "tenant": tenant, "outcome": done})
    else:
        print_text(f"{session} {done}")
    return ExitCode.OK
