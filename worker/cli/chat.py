"""`pawl chat`: a conversation with an agent in the terminal."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from worker.cli.connecting import read_settings
from worker.cli.errors import ExitCode, reported


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command()(reported(chat))


def chat(
    agent: Annotated[str, typer.Argument(help="The agent's name; `pawl agents` lists them.")],
    session: Annotated[str, typer.Option(help="The conversation to go on with. Default: a new one.")] = "",
    tenant: Annotated[str, typer.Option(help="Whose it is.")] = "",
) -> int:
    """Talk with an agent.

    Each line is a run of one conversation, which remembers the earlier ones.

    Questions and approvals are asked inline. Ctrl-C ends the run and keeps the conversation; /help lists what else can
    be said. Answers go to stdout, all else to stderr, so that it works in a pipe as well: each line of stdin is what a
    person would have typed.

    \b
    Examples:
      pawl chat support --tenant acme
      pawl chat support --session chat-5f2b8c01
      pawl chat support < lines.txt
    """
    from scheduler.client import Client  # noqa: PLC0415
    from scheduler.log import configure  # noqa: PLC0415
    from worker.cli.conversation import Conversation, Lines  # noqa: PLC0415

    settings = read_settings()
    configure(level="warning", form=settings.log_format)
    with Client(settings=settings) as client:
        Conversation(client, agent, tenant, Lines()).talk(session or new_session())
    return ExitCode.OK


def new_session() -> str:
    """A name that no other conversation has."""
    return f"chat-{secrets.token_hex(4)}"
