"""A run is what its events say: they are its record, its log, and the only way in which its state changes."""

from agent import Agent, ScriptedModel, tool
from agent.events import ModelReplied, RunCompleted, ToolReturned, decode, encode
from agent.state import Checkpoint, RunState
from agent.testing import call, calls, say


@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"sunny in {city}"


MODEL = ScriptedModel([calls(call("weather", city="Graz"), call("weather", city="Linz")), say("Sunny in both.")])
EVENTS = Agent("Tell the weather.", tools=[weather], model=MODEL).run_sync("Graz and Linz?").events


def test_everything_that_happened_is_an_event_in_its_place():
    assert [(recorded.seq, recorded.event.type) for recorded in EVENTS] == [
        (1, "run_created"),
        (2, "model_replied"),
        (3, "tool_returned"),
        (4, "tool_returned"),
        (5, "model_replied"),
        (6, "run_completed"),
    ]


def test_events_are_typed():
    replied, ended = EVENTS[1].event, EVENTS[5].event

    assert isinstance(replied, ModelReplied)
    assert [wanted.name for wanted in replied.calls] == ["weather", "weather"]
    assert ended == RunCompleted(output="Sunny in both.", active_ms=ended.active_ms)


def test_a_call_has_a_key_of_its_step_and_its_place():
    returned = [recorded.event for recorded in EVENTS if isinstance(recorded.event, ToolReturned)]

    assert {event.call: event.content for event in returned} == {"1.0": "sunny in Graz", "1.1": "sunny in Linz"}


def test_an_event_is_one_line_of_json():
    ended = RunCompleted(output="Sunny in both.")

    assert encode(ended) == b'{"type":"run_completed","output":"Sunny in both."}'
    assert decode(encode(ended)) == ended


def test_the_state_is_the_fold_of_the_events():
    """So a run that lost its worker goes on anywhere, from a small checkpoint and the events."""
    state = RunState.restore(Checkpoint(), EVENTS[:4])

    assert state.head.step == 1
    assert [message.content for message in state.history] == [
        "Graz and Linz?",
        None,
        "sunny in Graz",
        "sunny in Linz",
    ]
