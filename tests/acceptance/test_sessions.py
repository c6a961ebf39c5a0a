"""Sessions: runs one after another that share a memory, however long the conversation gets."""

from agent.events import ContextCompacted, encode
from scheduler.keys import scoped
from scheduler.lifecycle import Status
from scheduler.records import StoredEvent
from tests.support.sent import sent
from tests.support.session_agents import MAX_TOKENS
from tests.support.site import Site
from worker.recall import earlier_run

AGENTS = "tests.support.session_agents"


def test_a_session_of_ten_runs_stays_in_its_window_and_forgets_nothing_that_counts(site: Site) -> None:
    """200 messages over ten runs: none is sent larger, what counts is in the last, each is summarised once."""
    site.worker(targets=AGENTS)
    tasks = ["The first task of all: look.", "remember my name is Ada", *(f"task number {n}" for n in range(3, 11))]
    for task in tasks:
        run = site.client.submit("talker", task, session="s1", tenant="acme")
        assert run.wait(timeout=30).status is Status.COMPLETED

    seen = sent(site.traces.folder)
    assert max(request.tokens for request in seen) <= MAX_TOKENS
    last = seen[-1].text
    assert "The first task of all" in last
    assert "my name is Ada" in last
    assert "task number 10" in last

    positions: list[tuple[int, int]] = []
    runs = [info.id for info in reversed(site.client.runs(session="s1", tenant="acme", limit=50).runs)]
    assert len(runs) == len(tasks)
    for number, run_id in enumerate(runs):
        for event in site.events(run_id):
            if isinstance(event, ContextCompacted):
                positions.append((runs.index(event.run) if event.run else number, event.offset))
    assert positions, "the conversation is longer than the window"
    assert positions == sorted(positions), "the position only moves on"
    assert len(set(positions)) == len(positions), "nothing is summarised twice"

    said = [len(earlier_run(run_id, stored_events(site, run_id)).messages) for run_id in runs]
    assert sum(said) >= 200
    stored = [sum(site.redis.memory_usage(key) or 0 for key in site.keys.family(run_id)) for run_id in runs]
    assert max(stored) - min(stored) <= 6_000, f"but for a summary of 4,000 characters all store the same: {stored}"
    session = site.keys.session(scoped("acme", "s1"))
    assert site.redis.memory_usage(session) <= 12_000, "the summary is bounded"


def stored_events(site: Site, run: str) -> list[StoredEvent]:
    return [StoredEvent(seq, 0, encode(event)) for seq, event in enumerate(site.events(run), 1)]


def test_sessions_do_not_know_each_other(site: Site) -> None:
    site.worker(targets=AGENTS)
    site.client.submit("talker", "remember the red door", session="s1").wait(timeout=20)
    site.client.submit("talker", "look", session="s2").wait(timeout=20)
    site.client.submit("talker", "look", session="s1", tenant="other").wait(timeout=20)
    by_run: dict[str, str] = {}
    for request in sent(site.traces.folder):
        by_run[request.run] = request.text
    first, *others = by_run.values()
    assert "red door" in first
    assert all("red door" not in words for words in others)


def test_a_question_waits_without_a_worker_and_goes_on_after_a_deploy(site: Site) -> None:
    worker = site.worker(targets=AGENTS)
    run = site.client.submit("talker", "ask", session="s1")
    info = run.wait(timeout=20)
    assert (info.status, info.wait) == (Status.WAITING, "reply")
    assert [request.question for request in info.requests] == ["Which one?"]
    worker.terminate()

    run.reply("the second one")
    site.worker(targets=AGENTS)
    assert run.result(timeout=20).steps == 10
    assert any("the second one" in request.text for request in sent(site.traces.folder))
