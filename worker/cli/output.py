"""How verbs print: tables and lines for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.printable import printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]

_WIDTH_OF_A_PIPE = 200


def print_json(value: object) -> None:
    """One line of JSON on stdout."""
    from pydantic_core import to_json  # noqa: PLC0415

    typer.echo(printable_json(to_json(value).decode()))


def print_text(text: str) -> None:
    """A text on stdout, as it is but for what could steer a terminal."""
    typer.echo(printable(text))


def say(text: str) -> None:
    """A line on stderr, beside the result."""
    typer.echo(printable(text), err=True)


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """Names and values on stdout, a line each; those without a value are left out."""
    for name, value in fields:
        if value:
            print_text(f"{name:<10} {value}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout. The first column is never cut."""
    console().print(table(columns, rows))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table; cells are texts, in which nothing is markup."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def console() -> Console:
    """Stdout. A pipe is wide, so that nothing is cut for a program that reads it."""
    from rich.console import Console  # noqa: PLC0415

    found = Console(highlight=False, markup=False, emoji=False)
    if not found.is_terminal:
        found.width = _WIDTH_OF_A_PIPE
    return found
