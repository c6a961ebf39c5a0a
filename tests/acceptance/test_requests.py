"""What runs ask of people: several things at once, answered in any order, in time or not, on any worker."""

import time
from collections import Counter

import pytest

from agent import Budget
from agent.errors import BudgetExceeded, ConfigurationError, Conflict, RunWaiting
from agent.events import RequestAnswered, ToolReturned
from agent.messages import INTERRUPTED
from scheduler.client import RunHandle
from scheduler.lifecycle import Status
from tests.support.clerk import clerk
from tests.support.plays import Step, ask, ask_soon, hold, launch, note, pay, say, ship, task, use
from tests.support.sent import sent
from tests.support.site import Site
from tests.support.waiting import wait_until

CLERK = "tests.support.clerk"


def submit(site: Site, *steps: Step, budget: Budget | None = None) -> RunHandle[str]:
    return site.client.submit(clerk, task(*steps), budget=budget)


def answers(site: Site, run: RunHandle[str]) -> dict[str, tuple[str, str]]:
    events = [event for event in site.events(run.id) if isinstance(event, ToolReturned)]
    assert max(Counter(event.call for event in events).values()) == 1, "a call is answered once"
    return {event.call: (event.outcome, event.content) for event in events}


def asked(run: RunHandle[str]) -> dict[str, str]:
    """What a run that waits for people asks."""
    info = run.wait(timeout=15)
    assert info.status is Status.WAITING
    return {request.id: request.question for request in info.requests}


def test_several_questions_wait_together_and_are_answered_in_any_order(site: Site) -> None:
    """case-141: equal ids, swapped answers, and siblings that run again."""
    site.worker(targets=CLERK)
    run = submit(site, use(ask("which colour?"), ask("which size?"), note("order")), say("ordered"))
    assert asked(run) == {"1.0": "which colour?", "1.1": "which size?"}
    with pytest.raises(RunWaiting, match=r"reply 1\.0, reply 1\.1") as waiting:
        run.result(timeout=5)
    assert waiting.value.requests == ("1.0", "1.1")
    assert [(one.id, [request.question for request in one.requests]) for one in site.client.runs().runs] == [
        (run.id, ["which colour?", "which size?"])
    ]

    with pytest.raises(Conflict, match="several open requests"):
        run.reply("red")
    run.reply("L", request="1.1")
    with pytest.raises(Conflict, match="has been answered"):
        run.reply("M", request="1.1")
    assert asked(run) == {"1.0": "which colour?"}
    run.reply("red")

    assert run.result(timeout=10).output == "ordered"
    assert answers(site, run) == {"1.0": ("ok", "red"), "1.1": ("ok", "L"), "1.2": ("ok", "noted order")}
    assert len(site.traces.found("note", run.id)) == 1


def test_calls_are_allowed_changed_and_forbidden_one_by_one(site: Site) -> None:
    site.worker(targets=CLERK)
    run = submit(site, use(pay(1), pay(2), pay(3)), say("paid"))
    assert asked(run) == {f"1.{n}": f'May pay be called with {{"amount":{n + 1}}}?' for n in range(3)}

    run.reject("1.1", reason="too much")
    for wrong in ({"amout": 30}, {"amount": "much"}, {}):
        with pytest.raises(ConfigurationError, match="The arguments do not fit pay: am"):
            run.approve("1.2", arguments=wrong)
    run.approve("1.2", arguments={"amount": 30})
    run.approve("1.0")

    assert run.result(timeout=10).output == "paid"
    assert answers(site, run) == {
        "1.0": ("ok", "1 paid"),
        "1.1": ("rejected", "A person did not allow this call: too much"),
        "1.2": ("ok", "30 paid"),
    }
    assert sorted(trace.text for trace in site.traces.found("pay", run.id)) == ["1", "30"]
    read = sent(site.traces.folder, run.id)[-1].messages
    assert [call.arguments for message in read for call in message.tool_calls] == [
        '{"amount":1}',
        '{"amount":2}',
        '{"amount": 30}',
    ]


def test_an_allowed_call_does_not_wait_for_its_siblings(site: Site) -> None:
    site.worker(targets=CLERK)
    run = submit(site, use(hold("gate"), pay(1)), say("done"))
    site.leaves("hold", run.id)
    run.approve()

    site.leaves("pay", run.id)
    assert site.record(run.id).status is Status.RUNNING
    site.traces.open("gate")
    assert run.result(timeout=10).output == "done"


def test_what_nobody_answers_in_time_has_a_default(site: Site) -> None:
    site.worker(targets=CLERK)
    run = submit(site, use(ask_soon("which?"), ship("box"), pay(1)), say("done"))
    info = run.wait(timeout=10)
    assert [request.deadline is not None for request in info.requests] == [True, True, False]

    site.leaves("ship", run.id)
    assert asked(run) == {"1.2": 'May pay be called with {"amount":1}?'}
    with pytest.raises(Conflict, match="has been answered or is past its deadline"):
        run.reject("1.1")
    run.reject()

    assert run.result(timeout=10).output == "done"
    assert answers(site, run)["1.0"] == ("ok", "blue")
    assert answers(site, run)["1.1"] == ("ok", "box shipped")
    said = [event for event in site.events(run.id) if isinstance(event, RequestAnswered)]
    assert Counter(event.answer for event in said) == {"expired": 2, "reject": 1}


@pytest.mark.parametrize("crashes", [False, True])
def test_a_deadline_passes_beside_work_that_goes_on(site: Site, crashes: bool) -> None:
    worker = site.worker(targets=CLERK)
    run = submit(site, use(launch("gate") if crashes else hold("gate"), ship("box"), pay(1)), say("done"))
    site.leaves("launch" if crashes else "hold", run.id)
    if crashes:
        worker.kill()
        site.worker(targets=CLERK)
        asked(run)
        run.approve("1.0")
        wait_until("it is launched again", lambda: len(site.traces.found("launch", run.id)) == 2)

    site.leaves("ship", run.id)
    assert site.record(run.id).status is Status.RUNNING, "the long call goes on"
    site.traces.open("gate")
    assert set(asked(run)) == {"1.2"}
    run.reject()
    assert run.result(timeout=10).output == "done"
    assert answers(site, run)["1.1"] == ("ok", "box shipped")


def test_a_deadline_passes_while_no_worker_is_there(site: Site) -> None:
    worker = site.worker(targets=CLERK)
    run = submit(site, use(ask_soon("which?")), say("done"))
    asked(run)
    worker.terminate()
    time.sleep(1.2)
    site.worker(targets=CLERK)
    site.reaches(run.id, Status.COMPLETED)
    assert answers(site, run) == {"1.0": ("ok", "blue")}


@pytest.mark.parametrize("again", [True, False])
def test_a_call_that_was_cut_off_is_decided_by_a_person(site: Site, again: bool) -> None:
    victim = site.worker(targets=CLERK)
    run = submit(site, use(launch("gate"), note("a")), say("done"))
    site.leaves("launch", run.id)
    victim.kill()
    site.worker(targets=CLERK)

    (question,) = asked(run).values()
    assert question.startswith("launch was cut off, and may or may not have taken effect.")
    site.traces.open("gate")
    if again:
        run.approve("1.0")
    else:
        run.reject("1.0", reason="it flew")
    assert run.result(timeout=10).output == "done"

    attempts = [trace.text for trace in site.traces.found("launch", run.id)]
    assert attempts == (["1", "2"] if again else ["1"])
    unknown = f"{INTERRUPTED} It was not executed again: it flew"
    assert answers(site, run)["1.0"] == (("ok", "launched") if again else ("unknown", unknown))


def test_a_run_that_ran_out_of_time_while_it_asked_still_asks_when_it_goes_on(site: Site) -> None:
    site.worker(targets=CLERK)
    run = submit(site, use(ask("which?"), pay(1)), say("done"), budget=Budget(max_wall_seconds=2))
    asked(run)
    with pytest.raises(BudgetExceeded):
        site.reaches(run.id, Status.BUDGET_EXCEEDED)
        run.result(timeout=10)
    assert run.info().requests == (), "nothing can be answered while it does not go on"

    run.resume(budget=Budget(max_wall_seconds=600))
    assert set(asked(run)) == {"1.0", "1.1"}
    run.reply("this")
    run.approve("1.1")
    assert run.result(timeout=10).output == "done"
    assert answers(site, run) == {"1.0": ("ok", "this"), "1.1": ("ok", "1 paid")}


def test_a_cancel_closes_what_a_run_asks(site: Site) -> None:
    site.worker(targets=CLERK)
    run = submit(site, use(ask("which?"), pay(1)), say("done"))
    asked(run)
    assert run.cancel() == "cancelled"
    assert run.wait(timeout=5).requests == ()
    with pytest.raises(Conflict, match="cancelled"):
        run.reply("this")
    with pytest.raises(Conflict, match="cancelled"):
        run.approve("1.1")
    assert not site.traces.found("pay", run.id)
