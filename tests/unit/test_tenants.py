"""Limits over all runs of a tenant: their names and units, and what a run says that met one."""

from decimal import Decimal

import pytest

from agent.budget import Breach
from agent.errors import ConfigurationError
from scheduler.ledgers import Counter
from scheduler.replies import Over
from scheduler.tenants import TenantLimits, TenantUsage, breach_of, stored_limits, tenant_usage_of


def test_limits_are_stored_in_the_units_of_the_ledger():
    assert stored_limits({"max_total_tokens": 10_000, "max_model_calls": None}) == {
        "total_tokens": 10_000,
        "model_calls": None,
    }
    assert stored_limits({"max_cost_usd": "0.5"}) == {"cost_nanousd": 500_000_000, "unpriced_calls": 0}
    assert stored_limits({"max_cost_usd": None}) == {"cost_nanousd": None, "unpriced_calls": None}


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "Say what to limit: max_model_calls"),
        ({"max_steps": 3}, "Say what to limit: max_model_calls"),
        ({"max_total_tokens": -1}, "max_total_tokens"),
        ({"max_total_tokens": "many"}, "max_total_tokens"),
    ],
)
def test_what_cannot_be_a_limit_is_named(limits: TenantLimits, words: str):
    with pytest.raises(ConfigurationError, match=words):
        stored_limits(limits)


def test_usage_has_the_names_and_units_of_the_limits():
    counters = {"total_tokens": Counter(5, 3, 10), "cost_nanousd": Counter(1_500_000_000), "unpriced_calls": Counter(2)}
    usage = tenant_usage_of(counters)
    assert usage["max_total_tokens"] == TenantUsage(5, 3, 10)
    assert usage["max_cost_usd"] == TenantUsage(Decimal("1.5"), Decimal(0), None)
    assert usage["max_model_calls"] == TenantUsage(0, 0, None)
    assert set(usage) == set(TenantLimits.__annotations__)


@pytest.mark.parametrize(
    ("over", "breach"),
    [
        (
            Over("l", "total_tokens", used=6000, held=4000, limit=10_000),
            Breach("max_total_tokens of tenant acme", "6000 (and 4000 reserved for calls under way)", "10000"),
        ),
        (
            Over("l", "cost_nanousd", used=1_500_000_000, held=0, limit=2_000_000_000),
            Breach("max_cost_usd of tenant acme", "1.5", "2"),
        ),
        (
            Over("l", "unpriced_calls", used=3, held=0, limit=0),
            Breach("max_cost_usd of tenant acme (calls without a known price)", "3", "0"),
        ),
    ],
)
def test_the_end_of_a_run_names_the_limit_and_its_amounts(over: Over, breach: Breach):
    assert breach_of("acme", over) == breach
