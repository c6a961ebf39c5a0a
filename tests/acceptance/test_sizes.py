"""What is too large: cut or refused before it is sent, and never taken for an outage."""

from agent.errors import RunFailed
from agent.events import ToolReturned
from tests.support.plays import big, say, task, use
from tests.support.site import Site

FIFTY_MB = 50_000_000


def test_a_result_that_no_event_can_hold(site: Site) -> None:
    """case-104: of a tool, it is cut for the model; of the run, the run fails at once, with the size and the limit."""
    site.redis.config_set("proto-max-bulk-len", "1mb")
    worker = site.worker()
    run = site.submit(task(use(big(FIFTY_MB), big(FIFTY_MB, "\U0001f600"), big(FIFTY_MB, "\x01")), say("done")))
    giant = site.client.submit("giant", "Give me much")

    result = run.result(timeout=30)
    assert result.output == "done"
    returned = [recorded.event for recorded in result.events if isinstance(recorded.event, ToolReturned)]
    assert [event.outcome for event in returned] == ["ok"] * 3
    assert all(len(event.content) <= 160_000 and "left out" in event.content for event in returned)
    assert len(site.traces.found("big", run.id)) == 3
    try:
        giant.result(timeout=30)
    except RunFailed as failed:
        assert failed.reason == "result_too_large"
        assert "result too large (50000" in str(failed)
    assert site.kinds(giant.id).count("run_claimed") == 1
    assert not worker.lines("commit_waits"), "no outage"
