"""A message that arrives while a run of its session is active: it waits, is refused, or ends the run."""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from agent import Budget
from agent.errors import Conflict
from agent.messages import INTERRUPTED, Message
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.clerk import clerk
from tests.support.engine import assert_valid
from tests.support.plays import Step, ask, hold, note, remember, say, task, use
from tests.support.sent import sent
from tests.support.site import ROOT, Site

CLERK = "tests.support.clerk"
SESSION, TENANT = "s1", "acme"


def submit(site: Site, *steps: Step, on_busy: str = "enqueue") -> RunHandle[str]:
    return site.client.submit(clerk, task(*steps), on_busy=on_busy, session=SESSION, tenant=TENANT)


def first_request(site: Site, run: RunHandle[str]) -> Sequence[Message]:
    """What the model read first in a run, beside the instruction."""
    return sent(site.traces.folder, run.id)[0].messages[1:]


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role.value, message.content or "") for message in messages if not message.tool_calls]


def held_run(site: Site) -> RunHandle[str]:
    """A run that has noted and remembered something and is in the middle of a tool."""
    run = submit(site, use(note("a"), remember("the door is red")), use(hold("gate"), note("b")), say("never said"))
    site.leaves("hold", run.id)
    return run


def test_interrupt_ends_the_active_run_and_keeps_what_it_did(site: Site) -> None:
    site.worker(targets=CLERK)
    active = held_run(site)
    queued = [submit(site, say(f"queued {n}")) for n in range(2)]
    urgent = submit(site, say("urgent"), on_busy="interrupt")

    assert site.reaches(active.id, Status.CANCELLED).cancel == "interrupt"
    assert urgent.result(timeout=10).output == "urgent"
    for run in queued:
        run.result(timeout=10)

    messages = first_request(site, urgent)
    assert_valid(messages)
    assert "the door is red" in sent(site.traces.folder, urgent.id)[0].text, "what is to be remembered"
    contents = [content for _, content in said(messages)]
    assert "never said" in contents.pop(0), "the task"
    assert contents[:3] == ["noted a", "Noted.", INTERRUPTED], "what it did, and what it was at"
    assert contents[3] in ("noted b", INTERRUPTED)
    assert len(contents) == 5, "and the task of the urgent run"
    assert in_order(site) == [active.id, urgent.id, *(run.id for run in queued)]
    later = [content for role, content in said(first_request(site, queued[1])) if role == "assistant"]
    assert later == ["urgent", "queued 0"], "those in line keep their order, and know what went before"


def in_order(site: Site) -> list[str]:
    """The runs of the session in the order in which they ended."""
    runs = sorted(site.client.runs(session=SESSION, tenant=TENANT).runs, key=lambda run: run.ended_at or run.created_at)
    return [run.id for run in runs]


def test_rollback_ends_the_active_run_and_takes_it_out_of_the_memory(site: Site) -> None:
    site.worker(targets=CLERK)
    submit(site, use(remember("the wall is blue")), say("first")).result(timeout=10)
    active = held_run(site)
    urgent = submit(site, say("urgent"), on_busy="rollback")

    assert urgent.result(timeout=10).output == "urgent"
    record = site.record(active.id)
    assert (record.status, record.cancel, record.forgotten) == (Status.CANCELLED, "rollback", True)
    words = sent(site.traces.folder, urgent.id)[0].text
    assert "the wall is blue" in words
    assert "first" in words
    assert "the door is red" not in words
    assert "noted a" not in words
    assert "never said" not in words


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
def test_a_run_that_waits_for_a_reply_is_interrupted_at_once(site: Site, on_busy: str) -> None:
    site.worker(targets=CLERK)
    waiting = submit(site, use(ask("Which one?"), note("a")), say("never said"))
    assert waiting.wait(timeout=10).wait == "reply"

    urgent = submit(site, say("urgent"), on_busy=on_busy)

    assert site.record(waiting.id).status is Status.CANCELLED
    with pytest.raises(Conflict, match="cancelled"):
        waiting.reply("the second", request="1.0")
    assert urgent.result(timeout=10).output == "urgent"
    words = sent(site.traces.folder, urgent.id)[0].text
    kept = on_busy == "interrupt"
    assert ("tool: Nobody answered." in words) is kept
    assert ("tool: noted a" in words) is kept
    assert ("Questions that are still open:\n- Which one?" in words) is kept
    last = submit(site, say("last"))
    last.result(timeout=10)
    assert "still open" not in sent(site.traces.folder, last.id)[0].text, "the conversation went on without it"


@pytest.mark.parametrize("on_busy", ["interrupt", "rollback"])
def test_a_run_that_no_worker_has_taken_is_interrupted_at_once(site: Site, on_busy: str) -> None:
    queued = submit(site, say("never said"))
    urgent = submit(site, say("urgent"), on_busy=on_busy)
    assert site.record(queued.id).status is Status.CANCELLED

    site.worker(targets=CLERK)
    urgent.result(timeout=10)
    assert [role for role, _ in said(first_request(site, urgent))].count("user") == (2 if on_busy == "interrupt" else 1)
    assert site.redis.hget(f"rq:job:{queued.id}", "status") == b"canceled"


def test_the_last_interrupt_has_the_last_word(site: Site) -> None:
    site.worker(targets=CLERK)
    active = held_run(site)
    second = submit(site, say("second"), on_busy="interrupt")
    third = submit(site, say("third"), on_busy="interrupt")

    assert third.result(timeout=10).output == "third"
    assert {site.record(run.id).status for run in (active, second)} == {Status.CANCELLED}
    tasks = [content for role, content in said(first_request(site, third)) if role == "user"]
    assert [words in content for words, content in zip(("never said", "second", "third"), tasks, strict=True)] == [
        True
    ] * 3


def test_a_busy_session_may_refuse(site: Site) -> None:
    site.worker(targets=CLERK)
    active = held_run(site)
    with pytest.raises(Conflict, match=f"busy with run {active.id}"):
        submit(site, say("no"), on_busy="reject")
    site.traces.open("gate")
    active.result(timeout=10)
    assert submit(site, say("yes"), on_busy="reject").result(timeout=10).output == "yes"


def test_messages_of_several_processes_come_one_after_another_and_a_limit_ends_only_its_run(site: Site) -> None:
    """case-125: one run at a time, the history in order; a message after a limit has limits of its own."""
    site.worker(targets=CLERK)
    active = held_run(site)
    code = (
        "import sys; from scheduler import Client\n"
        "with Client() as pawl:\n"
        "    pawl.submit('clerk', sys.argv[1], session='s1', tenant='acme')\n"
    )
    for number in range(3):
        subprocess.run(
            [sys.executable, "-c", code, task(say(f"message {number}"))],
            cwd=ROOT,
            env={**os.environ, **site.environment},
            check=True,
        )
    over = site.client.submit(
        clerk,
        task(use(note("x")), use(note("y")), say("never said")),
        budget=Budget(max_steps=1),
        session=SESSION,
        tenant=TENANT,
    )
    site.traces.open("gate")
    active.result(timeout=10)
    assert site.reaches(over.id, Status.BUDGET_EXCEEDED).step == 1
    after = submit(site, use(note("z")), say("after"))
    assert after.result(timeout=10).output == "after"

    assert_valid(first_request(site, after))
    told = [content for role, content in said(first_request(site, after)) if role == "assistant"]
    assert told == ["never said", "message 0", "message 1", "message 2"]
    assert ("tool", "noted x") in said(first_request(site, after))


def test_what_a_run_says_that_goes_on_after_later_ones_is_known_to_the_next(site: Site) -> None:
    site.worker(targets=CLERK)
    first = site.client.submit(
        clerk, task(use(note("x")), say("said late")), session=SESSION, tenant=TENANT, budget=Budget(max_steps=1)
    )
    site.reaches(first.id, Status.BUDGET_EXCEEDED)
    submit(site, say("in between")).result(timeout=10)
    first.resume(budget=Budget(max_steps=9))
    assert first.result(timeout=10).output == "said late"
    assert "in between" not in sent(site.traces.folder, first.id)[-1].text, "it goes on where it was"

    last = submit(site, say("last"))
    last.result(timeout=10)
    told = [content for role, content in said(first_request(site, last)) if role == "assistant"]
    assert told == ["said late", "in between"]
