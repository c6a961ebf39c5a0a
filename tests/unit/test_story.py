"""A run's events, told as steps and as lines."""

from agent.budget import Budget, Usage
from agent.events import (
    TYPES,
    BudgetChanged,
    ContextCompacted,
    Event,
    ModelFailed,
    ModelReplied,
    Recorded,
    RecordWentBack,
    Remembered,
    ReplyRejected,
    RequestAnswered,
    RequestOpened,
    RunBudgetExceeded,
    RunCancelled,
    RunClaimed,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunReleased,
    RunRequeued,
    RunResumed,
    ToolReturned,
    UnknownEvent,
)
from agent.messages import ToolCall
from worker.cli.event_lines import event_line, happened
from worker.cli.story import story_of

CHANGED = RequestAnswered(request="1.1", answer="approve", arguments='{"a": 5}')
CALLS = (ToolCall(id="a", name="add", arguments='{"a": 1}'), ToolCall(id="b", name="add", arguments='{"a": 2}'))

EVENTS: list[Event] = [
    RunCreated(agent="support", task="Refund", budget=Budget()),
    RunClaimed(worker="w1"),
    ModelFailed(step=1, error="busy", reason="model_unavailable", retry_ms=1500),
    ModelReplied(
        step=1, calls=CALLS, model="m", usage=Usage(input_tokens=10, output_tokens=2, cost_nanousd=1000), ms=120
    ),
    ToolReturned(call="1.1", name="add", outcome="ok", content="3", ms=4),
    RunRequeued(why="its lease ran out"),
    RunClaimed(worker="w2"),
    ToolReturned(call="1.0", name="add", outcome="unknown", content="?"),
    ReplyRejected(step=2, reason="empty_reply", message="Say something."),
    RunReleased(why="yield"),
    RunClaimed(worker="w1"),
    ModelReplied(step=3, content="Done.", model="m"),
    RunCompleted(output="Done."),
]


def recorded(events: list[Event]) -> list[Recorded]:
    return [Recorded(seq=seq, at=1_800_000_000_000 + 1000 * seq, event=event) for seq, event in enumerate(events, 1)]


def test_steps_hold_their_calls_and_the_attempts_that_failed() -> None:
    story = story_of(recorded(EVENTS))

    assert story.task == "Refund"
    assert [(step.step, step.failures) for step in story.steps] == [(1, ["busy"]), (2, ["Say something."]), (3, [])]
    first = story.steps[0]
    assert (first.model, first.ms, first.usage.input_tokens) == ("m", 120, 10)
    assert [(call.key, call.outcome, call.content) for call in first.calls] == [
        ("1.0", "unknown", "?"),
        ("1.1", "ok", "3"),
    ]
    assert story.steps[2].content == "Done."


def test_holders_have_the_run_one_after_another() -> None:
    story = story_of(recorded(EVENTS))

    held = [
        (one.worker, (one.until - one.since).total_seconds() if one.until else None, one.why) for one in story.holders
    ]
    assert held == [("w1", 4, "its lease ran out"), ("w2", 3, "yield"), ("w1", 2, "completed")]
    assert story_of(recorded(EVENTS[:2])).holders[0].until is None


def test_a_resumed_run_keeps_what_it_was_before() -> None:
    ends: list[Event] = [RunFailed(reason="refused", error="no"), RunResumed(), RunClaimed(worker="w2"), RunCancelled()]

    story = story_of(recorded([*EVENTS[:2], *ends]))
    assert [(one.worker, one.why) for one in story.holders] == [("w1", "failed"), ("w2", "cancelled")]


def test_every_event_has_a_line_of_its_own() -> None:
    others: list[Event] = [
        BudgetChanged(budget=Budget(max_steps=9)),
        Remembered(text="likes red"),
        ContextCompacted(offset=3, summary="user: hello"),
        RequestOpened(request="2.0", kind="approval", tool="pay", question="May it?"),
        RequestAnswered(request="2.0", answer="reject", text="too much"),
        RecordWentBack(lost=2),
        RunResumed(),
        RunFailed(reason="refused", error="It said no."),
        RunCancelled(),
        RunBudgetExceeded(limit="max_steps", used="9", allowed="9"),
        UnknownEvent(kind="moon_landed"),
    ]
    lines = {event.type: happened(event) for event in [*EVENTS, *others]}

    assert set(TYPES) <= set(lines)
    assert all(line and line != type_ for type_, line in lines.items())
    assert lines["model_failed"] == "step 1: the model failed: busy; again in 1.5 s"
    assert lines["run_budget_exceeded"] == "budget exceeded: max_steps (used 9 of 9)"
    assert lines["unknown"] == "moon_landed (of a newer version)"


def test_a_line_steers_no_terminal() -> None:
    """case-134"""
    evil = "\x1b[2J\n\x07\u202e"
    events = [
        RunCreated(agent=evil, task=evil, budget=Budget()),
        RunClaimed(worker=evil),
        ModelReplied(step=1, calls=(ToolCall(id="a", name=evil, arguments='"\x1b"'),)),
        ToolReturned(call="1.0", name=evil, outcome="ok", content=evil),
        RunCompleted(output=evil),
        RunFailed(reason="refused", error=evil),
        RunCancelled(reason=evil),
        UnknownEvent(kind=evil),
    ]

    for line in map(event_line, recorded(list(events))):
        assert line.isprintable(), line


def test_a_call_is_shown_with_the_arguments_that_a_person_gave_it() -> None:
    reply = ModelReplied(step=1, calls=CALLS, model="m")
    returned = ToolReturned(call="1.1", name="add", outcome="ok", content="5")
    events = [Recorded(seq, 0, event) for seq, event in enumerate([reply, CHANGED, returned], 1)]
    (step,) = story_of(events).steps
    assert [(call.arguments, call.is_changed) for call in step.calls] == [('{"a": 1}', False), ('{"a": 5}', True)]
    assert happened(CHANGED) == '  1.1 was allowed, with {"a": 5}'
