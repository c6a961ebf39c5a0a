"""Workers that die while people are asked and a conversation is compacted: the outcome is that of the undisturbed run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from agent.events import (
    ContextCompacted,
    ModelFailed,
    ModelReplied,
    RequestAnswered,
    RequestOpened,
    RunCompleted,
    ToolReturned,
)
from agent.messages import Message
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.clerk import teller_of
from tests.support.plays import ask, say, task, tell, transfer, use
from tests.support.sent import sent
from tests.support.site import Site, WorkerProcess
from tests.support.waiting import wait_until

TELLER = "tests.support.clerk:teller"
PLAY = task(
    use(ask("Which colour?")),
    use(transfer(1), transfer(2)),
    use(tell(120)),
    use(tell(130)),
    use(tell(140)),
    say("done"),
)
COMMITS = 15
"""Of that play: 2 until it asks, 2 until it needs approvals, 4 for the two transfers, 2 for each story, the last reply."""


def worker(site: Site, queues: str, **environment: str) -> WorkerProcess:
    """A worker of some queues. Many start at once, so that nobody waits for one, and their leases have to last."""
    environment |= {"PAWL_LEASE_SECONDS": "4", "PAWL_RENEW_SECONDS": "0.5"}
    return site.worker(f"--queues={queues}", targets=TELLER, ready=False, **environment)


def serve(run: RunHandle[str]) -> None:
    """Answers the first of what a run asks, if it waits for people."""
    info = run.info()
    if info.status is not Status.WAITING or not info.requests:
        return
    request = info.requests[0]
    if request.kind == "reply":
        run.reply("red", request=request.id)
    else:
        run.approve(request.id, arguments={"amount": 20} if request.id == "2.1" else None)


@dataclass(frozen=True)
class Outcome:
    """What a run came to, and what led there, beside who had it and when."""

    told: Mapping[str, str]
    compacted: Sequence[tuple[int, str]]
    output: Sequence[object]
    last_request: Sequence[Message]
    transferred: Mapping[str, str]


def outcome_of(site: Site, run: str) -> Outcome:
    """Raises AssertionError if something was said, asked, bought or done twice."""
    events = site.events(run)
    assert [event.step for event in events if isinstance(event, ModelReplied)] == [1, 2, 3, 4, 5, 6]
    counts = Counter(
        (type(event), event.request) for event in events if isinstance(event, RequestOpened | RequestAnswered)
    )
    assert counts == {(kind, key): 1 for kind in (RequestOpened, RequestAnswered) for key in ("1.0", "2.0", "2.1")}
    done = site.traces.found("transfer", run)
    by_key = {trace.key: trace.text for trace in done}
    assert len({(trace.key, trace.text) for trace in done}) == len(by_key), "the same again, or not at all"
    told = [event for event in events if isinstance(event, ToolReturned)]
    assert len(told) == 6, "each call is answered once"
    return Outcome(
        {event.call: f"{event.outcome}: {event.content}" for event in told},
        [(event.offset, event.summary) for event in events if isinstance(event, ContextCompacted)],
        [event.output for event in events if isinstance(event, RunCompleted)],
        sent(site.traces.folder, run)[-1].messages,
        {key.removeprefix(run): text for key, text in by_key.items()},
    )


@pytest.mark.parametrize("where", ["before_commit", "after_commit"])
def test_a_run_with_people_and_a_compaction_survives_a_crash_at_each_of_its_commits(site: Site, where: str) -> None:
    undisturbed = site.client.submit(teller_of("none"), PLAY)
    runs = {number: site.client.submit(teller_of(f"q{number}"), PLAY) for number in range(1, COMMITS + 1)}
    worker(site, "none")
    victims = {number: worker(site, f"q{number}", PAWL_FAILPOINTS=f"{where}:{number}=kill") for number in runs}

    def served(*handles: RunHandle[str]) -> bool:
        for handle in handles:
            serve(handle)
        return all(handle.info().ended for handle in handles)

    wait_until("the undisturbed run ends", lambda: served(undisturbed), 60)
    assert COMMITS <= site.record(undisturbed.id).rev <= COMMITS + 1, "a look at the inbox may have come between"
    expected = outcome_of(site, undisturbed.id)
    assert len(expected.compacted) == 1
    assert expected.transferred == {":2.0": "1", ":2.1": "20"}

    def died() -> bool:
        served(*runs.values())
        return not any(victim.alive for victim in victims.values())

    wait_until("every victim is dead", died, 120)
    assert {victim.ended() for victim in victims.values()} == {-9}
    worker(site, ",".join(f"q{number}" for number in runs))
    wait_until("every run ends", lambda: served(*runs.values()), 120)

    for number, run in runs.items():
        assert run.info().output == "done", number
        assert outcome_of(site, run.id) == expected, f"killed {where} {number}"
        lost = [event for event in site.events(run.id) if isinstance(event, ModelFailed)]
        assert len(lost) <= 1, number
        assert site.record(run.id).crashes_total <= 1, number
