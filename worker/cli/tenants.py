"""The verb for what all runs of a tenant may use together."""

from __future__ import annotations

import asyncio
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.connecting import client
from worker.cli.errors import ExitCode, reported
from worker.cli.output import Json, print_json, print_table
from worker.cli.text import money

if TYPE_CHECKING:
    from agent.budget import Amount
    from scheduler.tenants import TenantUsage

_NONE = "none"
_COLUMNS = ("OF", "USED", "RESERVED", "LIMIT")


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command()(reported(limit))


def _limit_of(text: str | None) -> str | None:
    """An amount, or the word that takes a limit away."""
    try:
        if text not in (None, _NONE) and not Decimal(text) >= 0:
            raise typer.BadParameter("must not be negative")
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is neither a number nor `{_NONE}`") from None
    return text


def _option(words: str) -> Any:
    return typer.Option(help=f"{words}; `{_NONE}` for no limit.", callback=_limit_of, rich_help_panel="Limits")


def limit(
    *,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's name.")],
    max_model_calls: Annotated[str | None, _option("Model calls, failed ones too")] = None,
    max_input_tokens: Annotated[str | None, _option("Input tokens")] = None,
    max_output_tokens: Annotated[str | None, _option("Output tokens")] = None,
    max_total_tokens: Annotated[str | None, _option("Tokens")] = None,
    max_cost_usd: Annotated[str | None, _option("US dollars")] = None,
    as_json: Json = False,
) -> int:
    """Show, or set, what all runs of a tenant may use together.

    A model call that would go beyond a limit is not made: its run ends as budget_exceeded. Once the limit is raised,
    `pawl resume` lets it go on.

    \b
    Examples:
      pawl limit acme --max-total-tokens 1000000 --max-cost-usd 5
      pawl limit acme --max-cost-usd none
      pawl limit acme
    """
    given: dict[str, Any] = {
        "max_model_calls": max_model_calls,
        "max_input_tokens": max_input_tokens,
        "max_output_tokens": max_output_tokens,
        "max_total_tokens": max_total_tokens,
        "max_cost_usd": max_cost_usd,
    }
    limits = {name: None if text == _NONE else text for name, text in given.items() if text is not None}

    async def act() -> dict[str, TenantUsage]:
        async with client() as opened:
            if limits:
                await opened.limit_tenant(tenant, **limits)  # pyright: ignore[reportArgumentType] -- numbers as texts
            return await opened.tenant(tenant)

    found = asyncio.run(act())
    if as_json:
        for name, usage in found.items():
            print_json({"tenant": tenant, "of": name, "used": usage.used, "held": usage.held, "limit": usage.limit})
    else:
        print_table(_COLUMNS, [_row(name, usage) for name, usage in found.items()])
    return ExitCode.OK


def _row(name: str, usage: TenantUsage) -> tuple[str, ...]:
    words = name.removeprefix("max_").replace("_", " ")
    return (words, *(_amount(amount) for amount in (usage.used, usage.held)), _amount(usage.limit, nothing="no limit"))


def _amount(amount: Amount | None, nothing: str = "") -> str:
    if amount is None:
        return nothing
    return money(amount) if isinstance(amount, Decimal) else str(amount)
