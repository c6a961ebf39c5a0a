"""The ledgers of days, as rows."""

import json
from datetime import date
from decimal import Decimal

from scheduler.client.usage import UsageRow, rows_of
from scheduler.ledgers import Counter

DAY = date(2030, 1, 1)


def field(*parts: str) -> str:
    return json.dumps(list(parts))


def test_a_row_gathers_what_one_agent_used_of_one_model_for_one_tenant() -> None:
    rows = rows_of(
        DAY,
        {
            field("support", "m", "acme", "model_calls"): Counter(used=2, held=1),
            field("support", "m", "acme", "input_tokens"): Counter(used=300),
            field("support", "m", "acme", "output_tokens"): Counter(used=40),
            field("support", "m", "acme", "cost_nanousd"): Counter(used=1_500_000),
            field("support", "m", "", "model_calls"): Counter(used=1),
            field("sales", "m", "", "model_calls"): Counter(used=7),
        },
    )

    assert [(row.agent, row.tenant, row.model_calls) for row in rows] == [
        ("sales", "", 7),
        ("support", "", 1),
        ("support", "acme", 2),
    ]
    assert rows[2] == UsageRow(
        day=DAY, agent="support", model="m", tenant="acme", model_calls=2, input_tokens=300, output_tokens=40,
        cost_nanousd=1_500_000,
    )  # fmt: skip
    assert rows[2].cost_usd == Decimal("0.0015")


def test_what_is_only_held_and_what_a_newer_version_counts_is_no_row() -> None:
    assert rows_of(DAY, {field("a", "m", "", "model_calls"): Counter(held=5)}) == []
    assert rows_of(DAY, {field("a", "m", "", "moon_landings"): Counter(used=5)}) == []
