"""What a run reads of the runs before it, by the position of its session."""

import pytest

from agent.budget import Budget
from agent.conversation import ContextState
from agent.errors import BrokenRecord
from agent.events import (
    ContextCompacted,
    Event,
    ModelReplied,
    Remembered,
    RequestOpened,
    RunCancelled,
    RunCreated,
    ToolReturned,
    encode,
)
from agent.messages import INTERRUPTED, ToolCall
from scheduler.records import StoredEvent
from tests.support.engine import assert_valid
from worker.recall import earlier_run, known_before

BEGUN = ("a", "b", "c", "d")


def at(run: str, offset: int = 3) -> ContextState:
    return ContextState(summary="what was", memory=("blue",), run=run, offset=offset)


@pytest.mark.parametrize(
    ("run", "begun", "position", "read", "from_then_on"),
    [
        ("c", BEGUN, "", ("a", "b"), ("", 3)),
        ("c", BEGUN, "b", ("b",), ("b", 3)),
        ("a", BEGUN, "", (), ("", 3)),
        ("c", BEGUN, "gone", ("a", "b"), ("gone", 3)),
        ("c", BEGUN, "c", (), ("c", 3)),  # resumed: its own first messages are summarised
        ("b", BEGUN, "d", (), ("b", 0)),  # resumed, while the session went on
        ("x", BEGUN, "b", (), ("x", 0)),  # resumed after so many later ones that it has lost its place
    ],
)
def test_a_run_reads_those_before_it_from_the_position_on(
    run: str, begun: tuple[str, ...], position: str, read: tuple[str, ...], from_then_on: tuple[str, int]
) -> None:
    context, runs = known_before(run, begun, at(position))

    assert tuple(runs) == read
    assert (context.run, context.offset) == from_then_on
    assert (context.summary, context.memory) == ("what was", ("blue",))


def story(*events: Event) -> list[StoredEvent]:
    return [StoredEvent(seq, 0, encode(event)) for seq, event in enumerate(events, 1)]


ASKED = ModelReplied(step=1, calls=tuple(ToolCall(id=f"c{number}", name="any") for number in range(4)))


def test_an_earlier_run_has_every_call_answered_whatever_ended_it() -> None:
    found = earlier_run(
        "a",
        story(
            RunCreated(agent="x", task="go", budget=Budget()),
            Remembered(text="red"),
            ContextCompacted(run="gone", offset=7, summary="not its own business"),
            ASKED,
            ToolReturned(call="1.0", name="any", outcome="ok", content="done"),
            RequestOpened(request="1.1", kind="clarification", tool="any", question="Which?"),
            RequestOpened(request="1.2", kind="approval", tool="any", question="May it?"),
            RunCancelled(),
        ),
    )

    assert_valid(found.messages)
    assert [message.content for message in found.messages] == [
        "go",
        None,
        "done",
        "Nobody answered.",
        "Not executed: nobody decided about it.",
        INTERRUPTED,
    ]
    assert list(found.remembered) == ["red"]


def test_nothing_is_known_of_a_run_whose_days_are_over() -> None:
    assert list(earlier_run("a", []).messages) == []


def test_a_run_that_cannot_be_read_says_so() -> None:
    with pytest.raises(BrokenRecord):
        earlier_run("a", BrokenRecord("the events cannot be read"))
    with pytest.raises(BrokenRecord):
        earlier_run("a", [StoredEvent(1, 0, b"{")])
