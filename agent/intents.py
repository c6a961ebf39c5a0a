"""What the step machine decides to do next. Values only."""

from dataclasses import dataclass
from typing import Literal

from agent.budget import Reservation
from agent.dialects.base import Asking
from agent.events import Event
from agent.state import Ending, OpenCall
from agent.values import value


@value
class AskModel:
    """Ask the model for the next reply, within the reservation."""

    asking: Asking
    reservation: Reservation
    request_tokens: int


@value
class Summarise(AskModel):
    """Ask the model for a summary of the messages that leave the window, which then begins at `index`."""

    index: int


@value
class StartTools:
    """Start these calls now."""

    calls: tuple[OpenCall, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing new to start: what is under way has to end first."""


@value
class Happen:
    """These events happen, by themselves: the end of the run, or what it asks of a person. Then decide again."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class AwaitPerson:
    """Nothing can go on before a person has answered."""

    wait: Literal["reply", "approval"]


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended."""

    status: Ending


Intent = AskModel | Summarise | StartTools | Hold | Happen | AwaitPerson | Ended


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait here before the next attempt."""

    ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """Give the run back. `delay_ms`: milliseconds until it is due again; None: no time says when."""

    to: Literal["queued", "waiting"]
    why: Literal["yield", "drain", "waiting"]
    wait: str = ""
    delay_ms: int | None = 0


Plan = AskModel | StartTools | Hold | Ended | Pause | Release
"""What the driver makes of an intent, seen what others want of the run."""
