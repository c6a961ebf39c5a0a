"""What reaches a driver through its mailbox, what it plans, and how an activation ends."""

from dataclasses import dataclass
from typing import Literal

from agent.errors import ModelError
from agent.execution import ToolEnd
from agent.intents import AskModel, Ended, Hold, StartTools
from agent.journal import Target
from agent.models.base import ModelReply


@dataclass(frozen=True, slots=True)
class ModelEnd:
    """A model call ended, with a reply or an error."""

    asked: AskModel
    answer: ModelReply | ModelError
    ms: int


@dataclass(frozen=True, slots=True)
class PauseEnd:
    """The wait before the next attempt is over."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Somebody wants the run to end."""

    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The run shall be given back: at the next border of a step, or `at_once`, whatever is under way."""

    why: Literal["yield", "drain"]
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """So much is unread in the inbox. If that is more than the driver has heard, a commit, even an empty one, brings it."""

    unread: int


@dataclass(frozen=True, slots=True)
class Crash:
    """Work on the run ended with an error that is neither a tool's nor a model's: it unwinds the driver."""

    error: BaseException


Message = ModelEnd | ToolEnd | PauseEnd | Cancel | Leave | Look | Crash


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


@dataclass(frozen=True, slots=True)
class Departure:
    """How an activation ended: the run's new status, and why it was given back if it was."""

    status: Target
    why: str = ""
    delay_ms: int = 0
