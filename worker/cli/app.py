"""The command line: all verbs, and what holds for every one of them."""

from __future__ import annotations

from typing import Annotated

import typer

from worker.cli import chat, checking, looking, sessions, showing, steering, submitting, tenants, working
from worker.cli.errors import EXIT_CODES

app = typer.Typer(
    name="pawl",
    help="Runs LLM agents as durable jobs. The Redis is that of PAWL_REDIS_URL, else a private server is started.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

for group in (working, submitting, chat, looking, showing, steering, sessions, tenants, checking):
    group.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"pawl {version('pawl-agents')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
