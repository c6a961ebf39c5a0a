"""PURE. What agents used, from the ledgers of the days."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import cast

from agent.budget import NANO
from scheduler.ledgers import Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """What one agent used of one model for one tenant on one day (UTC).

    Attributes:
        unpriced_calls: Calls whose price is not known; `cost_usd` holds the others.
    """

    day: date
    agent: str
    model: str
    tenant: str
    model_calls: int = 0
    unpriced_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nanousd: int = 0

    @property
    def cost_usd(self) -> Decimal:
        """US dollars."""
        return Decimal(self.cost_nanousd) / NANO


METRICS = ("model_calls", "unpriced_calls", "input_tokens", "output_tokens", "cost_nanousd")


def rows_of(day: date, counters: Mapping[str, Counter]) -> list[UsageRow]:
    """The rows of a day's ledger, whose fields are `[agent, model, tenant, metric]` as JSON."""
    amounts: dict[tuple[str, str, str], dict[str, int]] = {}
    for field, counter in counters.items():
        agent, model, tenant, metric = cast("list[str]", json.loads(field))
        if metric in METRICS and counter.used:
            amounts.setdefault((agent, model, tenant), {})[metric] = counter.used
    return [
        UsageRow(day=day, agent=agent, model=model, tenant=tenant, **used)
        for (agent, model, tenant), used in sorted(amounts.items())
    ]
