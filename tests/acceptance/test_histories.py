"""Sessions whose runs are cut off between a call and its result, and texts that UTF-8 cannot carry, over real processes."""

import json

import pytest

from agent.events import ToolReturned
from scheduler.lifecycle import Status
from tests.support.history_agents import BROKEN, MENDED, careful
from tests.support.plays import Use, hold, note, say, task, use
from tests.support.site import Site
from tests.support.waiting import wait_until

AGENTS = "tests.support.history_agents"


@pytest.mark.parametrize("ending", ["kill", "cancel"])
def test_a_session_goes_on_behind_a_call_that_was_cut_off(site: Site, ending: str) -> None:
    """case-067: one call done, one running; its worker is killed, or the run cancelled. The next run is answered."""
    worker = site.worker(targets=AGENTS)
    play = task(use(note("a"), hold("never")), say("done"))
    run = site.client.submit(careful, play, session="s")
    site.leaves("hold")
    wait_until("the first result is committed", lambda: "tool_returned" in site.kinds(run.id))
    if ending == "kill":
        worker.kill()
        site.worker(targets=AGENTS)
        assert run.result(timeout=15).output == "done"
    else:
        run.cancel()
        site.reaches(run.id, Status.CANCELLED)
    told = [event.outcome for event in site.events(run.id) if isinstance(event, ToolReturned)]
    assert told == ["ok", "unknown" if ending == "kill" else "interrupted"]

    for _ in range(2):
        later = site.client.submit(careful, task(use(note("b")), say("and on")), session="s")
        assert later.result(timeout=15).output == "and on"
        assert later.info().session == "s"
    assert len(site.traces.found("hold")) == 1


def test_text_that_utf8_cannot_carry_reaches_everyone_mended(site: Site) -> None:
    """case-074: from the task, the metadata and a tool to Redis, the log and the command line; the session is read again."""
    worker = site.worker(targets=AGENTS)
    play = task(use(Use("ls"), note(f"n {MENDED}")), say(f"done {MENDED}")).replace("done a", "done \ud83d a")
    first, run = (site.client.submit(careful, play, session="s", metadata={"on": BROKEN}) for _ in range(2))
    for each in (first, run):
        assert each.result(timeout=15).output == f"done \ufffd {MENDED}"
        assert each.info().metadata == {"on": MENDED}
    (listed,) = [e for e in site.events(run.id) if isinstance(e, ToolReturned) and e.name == "ls"]
    assert listed.content == json.dumps({MENDED: MENDED}, ensure_ascii=False)
    for arguments in (("show", run.id), ("events", run.id), ("runs", "--json")):
        assert MENDED in site.pawl(*arguments)
    assert worker.lines("step", run=run.id)
    assert "Traceback" not in worker.text()
