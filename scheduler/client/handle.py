"""One run, for code that is not async. Every method is that of `AsyncRunHandle`, run to its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, Literal, TypeVar, Unpack

from agent.budget import Budget
from agent.events import Recorded
from agent.result import RunResult
from scheduler.client.async_handle import AsyncRunHandle
from scheduler.client.events import EventReader
from scheduler.client.limits import Limits
from scheduler.client.portal import PORTAL
from scheduler.client.run_info import RunInfo

Output = TypeVar("Output")


class RunHandle(Generic[Output]):
    """A run. Made by a client; see `AsyncRunHandle` for what each method raises."""

    def __init__(self, run: AsyncRunHandle[Output]) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @property
    def id(self) -> str:
        """The run's id."""
        return self._run.id

    def info(self) -> RunInfo:
        """The run as it stands now."""
        return PORTAL.run(self._run.info())

    def wait(self, timeout: float | None = None) -> RunInfo:
        """Waits, for at most `timeout` seconds, until the run has ended or waits for a person."""
        return PORTAL.run(self._run.wait(timeout))

    def result(self, timeout: float | None = None) -> RunResult[Output]:
        """Waits for the result, for at most `timeout` seconds."""
        return PORTAL.run(self._run.result(timeout))

    def events(self, after: int | str = 0, *, follow: bool = False) -> BlockingEvents:
        """What happened, in order, behind event number `after`; with `follow`, until the run has ended."""
        return BlockingEvents(self._run.events(after, follow=follow))

    def cancel(self) -> Literal["cancelled", "asked", "over"]:
        """Ends the run, or asks its worker to; `over` if it had ended before."""
        return PORTAL.run(self._run.cancel())

    def resume(self, *, budget: Budget | None = None) -> Literal["resumed", "behind"]:
        """Lets a failed or budget_exceeded run go on, within `budget` from now on."""
        return PORTAL.run(self._run.resume(budget=budget))

    def add_budget(self, **limits: Unpack[Limits]) -> None:
        """Adds to the limits of a run that has not ended."""
        PORTAL.run(self._run.add_budget(**limits))

    def reply(self, text: str, *, request: str = "") -> None:
        """Answers a question."""
        PORTAL.run(self._run.reply(text, request=request))

    def approve(self, request: str = "", *, arguments: Mapping[str, object] | None = None) -> None:
        """Allows a tool call, with other arguments where some are given."""
        PORTAL.run(self._run.approve(request, arguments=arguments))

    def reject(self, request: str = "", *, reason: str = "") -> None:
        """Forbids a tool call; the model reads why."""
        PORTAL.run(self._run.reject(request, reason=reason))

    def delete(self) -> None:
        """Removes an ended run and all that is stored of it."""
        PORTAL.run(self._run.delete())


class BlockingEvents(Iterator[Recorded]):
    """Iterates over events; `cursor` is the place behind the last one."""

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader

    @property
    def cursor(self) -> str:
        """Pass it as `after` to go on from there, in any process."""
        return self._reader.cursor

    def __next__(self) -> Recorded:
        try:
            return PORTAL.run(self._reader.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
