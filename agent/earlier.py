"""What runs of a session said, read from their events. Pure."""

from collections.abc import Iterable

from agent.conversation import EarlierRun
from agent.events import ContextCompacted, Recorded, Remembered
from agent.messages import Message
from agent.state import RunState


def earlier_run(run: str, events: Iterable[Recorded]) -> EarlierRun:
    """The messages of a run that has ended, every call answered, and what was to be remembered.

    Raises:
        BrokenRecord: The events do not fit together.
    """
    state, remembered = _folded(events)
    return EarlierRun(run, state.messages(), remembered)


def messages_so_far(events: Iterable[Recorded]) -> list[Message]:
    """What was said in a run. While it goes on, calls without an answer are not yet part of it.

    Raises:
        BrokenRecord: The events do not fit together.
    """
    state, _ = _folded(events)
    return state.messages() if state.head.ended else state.history


def _folded(events: Iterable[Recorded]) -> tuple[RunState, list[str]]:
    """The state without the run's window, which is about what it sent and not about what was said; and its memories."""
    state = RunState()
    remembered: list[str] = []
    for recorded in events:
        if isinstance(recorded.event, ContextCompacted):
            continue
        if isinstance(recorded.event, Remembered):
            remembered.append(recorded.event.text)
        state.apply(recorded)
    return state, remembered
