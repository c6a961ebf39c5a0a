"""The main job on real input: a small real language model fills in a typed result, and a worker dies on the way."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agent.events import RunClaimed
from scheduler.lifecycle import Status
from tests.support.orders import MOST_ATTEMPTS, PRICE, TEXTS, Order, orders
from tests.support.real_model import NotInstallable, serving
from tests.support.site import Site, WorkerProcess
from tests.support.waiting import wait_until

SECONDS = 600.0
"""For a machine that is busy with other things; alone it takes half a minute."""


@pytest.fixture
def model_server(tmp_path: Path) -> Iterator[str]:
    """Where the real model is."""
    try:
        with serving(tmp_path / "model.log") as url:
            yield url
    except NotInstallable as reason:
        pytest.skip(f"the model server cannot be installed here: {reason}")


def test_ten_texts_become_typed_results_although_a_worker_dies(site: Site, model_server: str) -> None:
    workers = [
        site.worker("--concurrency", "5", targets="tests.support.orders", OPENAI_BASE_URL=model_server)
        for _ in range(2)
    ]
    runs = [site.client.submit(orders, text) for text in TEXTS]
    victim = _killed_at_work(site, workers, [run.id for run in runs])

    results = [run.result(timeout=SECONDS) for run in runs]

    assert all(isinstance(result.output, Order) for result in results)
    assert max(result.steps for result in results) <= MOST_ATTEMPTS
    shown: list[dict[str, Any]] = [json.loads(site.pawl("show", run.id, "--json")) for run in runs]
    for told, result in zip(shown, results, strict=True):
        run, usage = told["run"], told["run"]["usage"]
        assert (run["status"], run["step"], len(told["steps"])) == ("completed", result.steps, result.steps)
        assert Order.model_validate(run["output"]) == result.output
        assert usage["input_tokens"] >= 100
        assert usage["output_tokens"] >= 30
        assert run["crashes"] or usage["estimated_tokens"] == 0, "only a call that was lost is charged by estimate"
        cost = usage["input_tokens"] * PRICE.input_per_million + usage["output_tokens"] * PRICE.output_per_million
        assert Decimal(run["cost_usd"]) == pytest.approx(cost / 1_000_000, abs=Decimal("1e-8"))
    taken_over = [told for told in shown if told["run"]["crashes"]]
    assert taken_over
    assert all(told["holders"][0]["worker"] != told["holders"][-1]["worker"] for told in taken_over)
    assert not victim.alive


def _killed_at_work(site: Site, workers: list[WorkerProcess], runs: list[str]) -> WorkerProcess:
    """Waits for the first result, and kills a worker that has a run then."""
    wait_until(
        "a run is completed",
        lambda: any(site.record(run).status is Status.COMPLETED for run in runs),
        SECONDS,
    )
    holders = {
        event.worker
        for run in runs
        if site.record(run).status is Status.RUNNING
        for event in site.events(run)
        if isinstance(event, RunClaimed)
    }
    victim = next(worker for worker in workers if any(f":{worker.id}:" in holder for holder in holders))
    victim.kill()
    return victim
