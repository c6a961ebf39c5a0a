"""What all runs of a tenant may use together: reserved before each call and settled after it, over all workers."""

from decimal import Decimal

import pytest

from agent.errors import BudgetExceeded
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from scheduler.tenants import TenantUsage
from tests.support.site import Site
from tests.support.spending_agents import GATE, TOKENS, spender, unpriced
from tests.support.waiting import wait_until

AGENTS = "tests.support.spending_agents"
LIMIT = 10_000


def tokens_of(site: Site) -> TenantUsage:
    return site.client.tenant("acme")["max_total_tokens"]


def test_twenty_runs_on_four_workers_share_ten_thousand_tokens(site: Site) -> None:
    """case-115: five calls of two thousand tokens are made, whoever asks; the others end, and go on once there is more."""
    site.client.limit_tenant("acme", max_total_tokens=LIMIT)
    runs = [site.client.submit(spender, f"spend {number}", tenant="acme") for number in range(20)]
    for _ in range(4):
        site.worker("--concurrency=5", targets=AGENTS, ready=False)

    def ended() -> list[RunHandle[str]]:
        return [run for run in runs if site.record(run.id).status is Status.BUDGET_EXCEEDED]

    wait_until("15 runs have no room", lambda: len(ended()) == 15, 30)
    over = ended()
    assert len(site.traces.found("model")) == 5
    seen = tokens_of(site)
    assert (seen.used, seen.limit) == (0, LIMIT)
    assert 0 < int(seen.held) <= LIMIT
    for run in over:
        with pytest.raises(BudgetExceeded, match="max_total_tokens of tenant acme") as caught:
            run.result(timeout=5)
        assert caught.value.limit == "max_total_tokens of tenant acme"
        assert f"of {LIMIT}" in run.info().error
        assert run.info().usage.model_calls == 0

    site.traces.open(GATE)
    for run in runs:
        if run not in over:
            assert run.result(timeout=15).usage.total_tokens == TOKENS
    assert tokens_of(site) == TenantUsage(used=LIMIT, held=0, limit=LIMIT)

    site.client.limit_tenant("acme", max_total_tokens=LIMIT + TOKENS)
    assert over[0].resume() == "resumed"
    assert over[0].result(timeout=15).output == "spent"
    assert over[1].resume() == "resumed"
    with pytest.raises(BudgetExceeded):
        over[1].result(timeout=15)
    assert tokens_of(site).used == LIMIT + TOKENS


def test_what_a_dead_worker_had_reserved_is_released_and_charged_once(site: Site) -> None:
    """case-115: it may have been billed, so that it counts as used; nothing stays reserved."""
    site.client.limit_tenant("acme", max_total_tokens=LIMIT)
    victim = site.worker(targets=AGENTS)
    run = site.client.submit(spender, "spend", tenant="acme")
    site.leaves("model")
    reserved = int(tokens_of(site).held)
    victim.kill()
    site.worker(targets=AGENTS)
    site.leaves("model", times=2)
    assert tokens_of(site) == TenantUsage(used=reserved, held=reserved, limit=LIMIT)

    site.traces.open(GATE)
    used = run.result(timeout=15).usage
    assert used.total_tokens == reserved + TOKENS
    assert tokens_of(site) == TenantUsage(used=used.total_tokens, held=0, limit=LIMIT)
    (day,) = site.client.usage()
    assert (day.input_tokens + day.output_tokens, day.model_calls) == (used.total_tokens, used.model_calls)


def test_a_cancelled_run_gives_back_what_it_had_reserved(site: Site) -> None:
    site.worker(targets=AGENTS)
    run = site.client.submit(spender, "spend", tenant="acme")
    site.leaves("model")
    reserved = int(tokens_of(site).held)
    run.cancel()
    site.reaches(run.id, Status.CANCELLED)
    assert tokens_of(site) == TenantUsage(used=reserved, held=0, limit=None)


def test_dollars_are_shared_as_well_and_an_unknown_price_is_not_free(site: Site) -> None:
    site.client.limit_tenant("acme", max_cost_usd="0.005")
    site.worker(targets=AGENTS)
    site.traces.open(GATE)
    first = site.client.submit(spender, "spend", tenant="acme")
    first.result(timeout=15)
    assert site.client.tenant("acme")["max_cost_usd"] == TenantUsage(
        used=Decimal("0.002"), held=Decimal(0), limit=Decimal("0.005")
    )
    blind = site.client.submit(unpriced, "spend", tenant="acme")
    with pytest.raises(BudgetExceeded, match=r"max_cost_usd of tenant acme \(calls without a known price\)"):
        blind.result(timeout=15)
    assert site.client.submit(unpriced, "spend", tenant="other").result(timeout=15).output == "spent"

    second = site.client.submit(spender, "spend", tenant="acme")
    second.result(timeout=15)
    third = site.client.submit(spender, "spend", tenant="acme")
    with pytest.raises(BudgetExceeded, match=r"max_cost_usd of tenant acme \(used 0\.004 of 0\.005\)"):
        third.result(timeout=15)
    assert "max_cost_usd of tenant acme" in site.pawl("show", third.id)
