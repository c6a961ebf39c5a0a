"""The mailbox of a driver: what reaches it, and how an activation ends."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal

from agent.errors import ModelError
from agent.execution import ToolEnd
from agent.intents import AskModel
from agent.journal import Target
from agent.models.base import ModelReply
from agent.values import value


@value
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


class Mailbox:
    """Messages in the order in which they came: put in on the event loop, taken out by one reader."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._arrival: asyncio.Future[None] | None = None

    def put(self, message: Message) -> None:
        """Puts a message behind the others."""
        self._messages.append(message)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def take(self) -> Message | None:
        """Takes the oldest message out; None where there is none."""
        return self._messages.popleft() if self._messages else None

    async def wait(self) -> None:
        """Returns when there is a message."""
        if not self._messages:
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival


@dataclass(frozen=True, slots=True)
class Departure:
    """How an activation ended: the run's new status, and why it was given back if it was."""

    status: Target
    why: str = ""
    delay_ms: int = 0
