"""Lists of runs: what they hold, in which order, and that pages neither lose nor repeat."""

from __future__ import annotations

from typing import Any

import pytest

from agent.errors import ConfigurationError
from scheduler.lifecycle import Status
from scheduler.listing import Listing, Page, Query
from scheduler.store import Store
from tests.support.runs import START, Desk
from tests.support.stage import Stage


def page(stage: Stage, count: int = 50, after: str = "", **query: Any) -> Page:
    async def scene(store: Store) -> Page:
        return await Listing(store).page(Query(**query), count=count, after=after)

    return stage.play(scene)


def ids(found: Page) -> list[str]:
    return [run.id for run in found.runs]


def pages(stage: Stage, count: int, **query: Any) -> list[list[str]]:
    found = [page(stage, count, **query)]
    while found[-1].next:
        found.append(page(stage, count, found[-1].next, **query))
    return [ids(each) for each in found]


def crowd(desk: Desk) -> None:
    """Six runs, one each second: two agents, two tenants, one session, three statuses."""
    for number, run in enumerate(("0-a", "0-b", "0-c", "0-d", "0-e", "0-f")):
        agent, tenant = ("calc", "mail")[number % 2], ("t", "u")[number // 3]
        desk.create(run, agent=agent, tenant=tenant, session="s" if number < 2 else "")
        desk.pass_time(1_000)
    desk.claim("0-c").commit(to=Status.COMPLETED)
    desk.claim("0-f")


def test_all_runs_newest_first(stage: Stage) -> None:
    crowd(stage.desk)

    assert ids(page(stage)) == ["0-f", "0-e", "0-d", "0-c", "0-b", "0-a"]
    assert ids(page(stage, agent="mail")) == ["0-f", "0-d", "0-b"]
    assert ids(page(stage, tenant="u")) == ["0-f", "0-e", "0-d"]
    assert ids(page(stage, tenant="t", session="s")) == ["0-b", "0-a"]
    assert ids(page(stage, session="s")) == []
    assert ids(page(stage, status=Status.QUEUED)) == ["0-e", "0-d", "0-b", "0-a"]
    assert ids(page(stage, status=Status.COMPLETED, agent="calc")) == ["0-c"]
    assert ids(page(stage, status=Status.QUEUED, tenant="u", agent="calc")) == ["0-e"]
    assert ids(page(stage, agent="nobody")) == []


def test_runs_of_a_time(stage: Stage) -> None:
    crowd(stage.desk)

    assert ids(page(stage, since=START + 1_000, until=START + 3_000)) == ["0-c", "0-b"]
    assert ids(page(stage, since=START + 4_000)) == ["0-f", "0-e"]
    assert ids(page(stage, status=Status.QUEUED, until=START + 1_000)) == ["0-a"]
    assert ids(page(stage, agent="mail", until=START + 2_000)) == ["0-b"]


def test_pages(stage: Stage) -> None:
    crowd(stage.desk)

    assert pages(stage, 4) == [["0-f", "0-e", "0-d", "0-c"], ["0-b", "0-a"]]
    assert pages(stage, 2, tenant="t") == [["0-c", "0-b"], ["0-a"]]


def test_runs_that_come_and_go_shift_nothing(stage: Stage) -> None:
    crowd(stage.desk)
    first = page(stage, 2)
    stage.desk.create("0-g")
    stage.desk.do(stage.desk.scripts.delete("0-c"))
    stage.desk.redis.zrem(stage.desk.keys.by_time, "0-e")

    assert ids(page(stage, 2, first.next)) == ["0-d", "0-b"]


def test_pages_among_runs_of_one_millisecond(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.listing._CHUNK", 4)
    runs = [f"0-{number:02}" for number in range(25)]
    for run in runs:
        stage.desk.create(run)

    found = pages(stage, 3)

    assert [run for each in found for run in each] == runs[::-1]


def test_a_search_for_few_among_many_goes_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.listing._CHUNK", 2)
    monkeypatch.setattr("scheduler.listing._CHUNKS_A_PAGE", 2)
    for number in range(10):
        stage.desk.create(f"0-{number}", agent="calc", tenant="t" if number == 1 else "u")
        stage.desk.create(f"0-x{number}", agent="mail", tenant="t")

    found = pages(stage, 5, agent="calc", tenant="t")

    assert len(found) > 1
    assert [run for each in found for run in each] == ["0-1"]


def test_broken_runs_are_named_and_ended_ones_left_out(stage: Stage) -> None:
    crowd(stage.desk)
    stage.desk.redis.hset(stage.desk.keys.run("0-e"), "rev", "many")
    stage.desk.redis.delete(stage.desk.keys.run("0-b"))

    found = page(stage)

    assert ids(found) == ["0-f", "0-d", "0-c", "0-a"]
    assert found.broken == ("0-e",)


@pytest.mark.parametrize("place", ["nonsense", "1 0-a", "x 0-a time", "1 0-a session"])
def test_a_place_that_is_none(stage: Stage, place: str) -> None:
    with pytest.raises(ConfigurationError):
        page(stage, after=place)


def test_counts_and_who_is_there_for_longest(stage: Stage) -> None:
    crowd(stage.desk)

    async def scene(store: Store) -> tuple[dict[Status, int], list[str], list[str]]:
        listing = Listing(store)
        queued = await listing.longest_in(Status.QUEUED, 2)
        waiting = await listing.longest_in(Status.WAITING)
        return await listing.counts(), [run.id for run in queued], [run.id for run in waiting]

    counts, queued, waiting = stage.play(scene)

    assert {status: count for status, count in counts.items() if count} == {
        Status.QUEUED: 4,
        Status.RUNNING: 1,
        Status.COMPLETED: 1,
    }
    assert (queued, waiting) == (["0-a", "0-b"], [])
