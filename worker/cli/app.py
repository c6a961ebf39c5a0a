"""The command line: all verbs, and what holds for every one of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from worker.cli import chat, checking, looking, sessions, showing, steering, submitting, tenants, working
from worker.cli.errors import EXIT_CODES


class Verbs(TyperGroup):
    """Says what is wrong with an argument in words that are about the argument, and not about how it was read."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the verb that was named."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    name="pawl",
    cls=Verbs,
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
