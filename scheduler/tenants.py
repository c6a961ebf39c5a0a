"""PURE. The limits that all runs of a tenant share: their names, and the fields of the tenant's ledger that they bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypedDict

from pydantic import ValidationError

from agent.budget import NANO, Amount, Breach, Budget, in_words
from agent.errors import ConfigurationError
from scheduler.ledgers import Counter
from scheduler.replies import Over

FIELDS: Final[Mapping[str, str]] = {
    "max_model_calls": "model_calls",
    "max_input_tokens": "input_tokens",
    "max_output_tokens": "output_tokens",
    "max_total_tokens": "total_tokens",
    "max_cost_usd": "cost_nanousd",
}
"""The limits there are, and the field of the ledger that each bounds."""

COST: Final = "max_cost_usd"
UNPRICED: Final = "unpriced_calls"
"""Of which a limit of cost allows none: an unknown price is not a price of nothing."""


class TenantLimits(TypedDict, total=False):
    """Limits over all runs of a tenant, of what was used since its first run. None takes a limit away."""

    max_model_calls: int | None
    max_input_tokens: int | None
    max_output_tokens: int | None
    max_total_tokens: int | None
    max_cost_usd: Decimal | float | str | None


@dataclass(frozen=True, slots=True)
class TenantUsage:
    """What all runs of a tenant have used of something together, in the unit of its limit.

    Attributes:
        held: Reserved for model calls under way.
        limit: None where there is none.
    """

    used: Amount
    held: Amount
    limit: Amount | None


def stored_limits(limits: TenantLimits) -> dict[str, int | None]:
    """The limits as the ledger holds them; None for those to take away.

    Raises:
        ConfigurationError: None was given, there is no such limit, or an amount cannot be used.
    """
    if not limits or set(limits) - set(FIELDS):
        raise ConfigurationError(f"Say what to limit: {', '.join(FIELDS)}.")
    try:
        budget = Budget.model_validate({"max_steps": None, **limits})
    except ValidationError as error:
        problems = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        raise ConfigurationError(f"This cannot be a limit: {problems}.") from None
    stored: dict[str, int | None] = {}
    for name in limits:
        amount: int | Decimal | None = getattr(budget, name)
        stored[FIELDS[name]] = None if amount is None else int(amount * NANO) if name == COST else int(amount)
    if COST in limits:
        stored[UNPRICED] = None if stored[FIELDS[COST]] is None else 0
    return stored


def tenant_usage_of(counters: Mapping[str, Counter]) -> dict[str, TenantUsage]:
    """What is used, held and allowed, by the names of the limits."""
    usage: dict[str, TenantUsage] = {}
    for name, field in FIELDS.items():
        counter = counters.get(field, Counter())
        limit = None if counter.limit is None else _amount(field, counter.limit)
        usage[name] = TenantUsage(_amount(field, counter.used), _amount(field, counter.held), limit)
    return usage


def breach_of(tenant: str, over: Over) -> Breach:
    """The limit of a tenant that left no room for a model call, in words."""
    names = {field: name for name, field in FIELDS.items()}
    limit = f"{names.get(over.field, over.field)} of tenant {tenant}"
    if over.field == UNPRICED:
        limit = f"{COST} of tenant {tenant} (calls without a known price)"
    used, held, allowed = (in_words(_amount(over.field, amount)) for amount in (over.used, over.held, over.limit))
    return Breach(limit, f"{used} (and {held} reserved for calls under way)" if over.held else used, allowed)


def _amount(field: str, stored: int) -> Amount:
    return Decimal(stored) / NANO if field == FIELDS[COST] else stored
