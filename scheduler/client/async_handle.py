"""One run, seen by a client: looked at, waited for, followed, and told things."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, Literal, TypeVar, Unpack, cast

from pydantic_core import to_json

from agent.budget import Budget
from agent.errors import AgentDefinitionError, RunWaiting
from agent.events import Event, RequestOpened, RunCancelled, RunCompleted, RunResumed, decode, encode
from agent.result import RunResult, error_of
from agent.text import well_formed
from scheduler.client.events import EventReader
from scheduler.client.limits import Limits, additions_of
from scheduler.client.outages import patiently, sent_again
from scheduler.client.run_info import REQUEST_WAITS, RunInfo
from scheduler.client.services import Services
from scheduler.client.sight import Sight
from scheduler.client.submission import json_object
from scheduler.lifecycle import ENDED, Status
from scheduler.rq_bridge import forget_job

Output = TypeVar("Output")


class AsyncRunHandle(Generic[Output]):
    """A run. Made by a client; holds nothing but the id.

    Attributes:
        id: The run's id.
    """

    def __init__(
        self, run_id: str, services: Callable[[], Awaitable[Services]], result_of: Callable[[object], Output]
    ) -> None:
        self.id = run_id
        self._services = services
        self._result_of = result_of

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def info(self) -> RunInfo:
        """The run as it stands now.

        Raises:
            RunNotFound: It never existed, or its retention is over.
            BrokenRecord: It cannot be read.
        """
        return await (await self._services()).inspector.info(self.id)

    async def wait(self, timeout: float | None = None) -> RunInfo:
        """Waits until the run has ended, or waits for a person, which can take for ever.

        Args:
            timeout: Seconds; None: as long as it takes. An outage of Redis of up to 30 seconds is waited out.

        Raises:
            TimeoutError: It goes on all the same.
            RunNotFound: It does not exist, or its retention is over.
        """
        services = await self._services()
        try:
            async with asyncio.timeout(timeout):
                await services.watcher.until(self.id, _has_settled)
                return await patiently(self.info)
        except TimeoutError:
            raise TimeoutError(f"run {self.id} did not end in {timeout:g} s; it goes on") from None

    async def result(self, timeout: float | None = None) -> RunResult[Output]:
        """Waits for the result. Of the agent's own type where the run was submitted, or got, with the agent.

        Raises:
            RunFailed, BudgetExceeded, RunCancelled: It came to no result.
            RunWaiting: It waits for a person; `requests` says for what.
            TimeoutError: It goes on all the same.
            RunNotFound: It does not exist, or its retention is over.
            AgentDefinitionError: It has completed, but its result does not fit the agent's output schema (any more).
        """
        while True:
            info = await self.wait(timeout)
            if info.status is Status.WAITING:
                asked = ", ".join(f"{request.kind} {request.id}" for request in info.requests)
                answer = info.reason.partition(": ")[2] or "reply, approve or reject"
                words = f"run {self.id} waits for a person ({asked or info.wait}): answer with {answer}"
                raise RunWaiting(
                    words,
                    run_id=self.id,
                    requests=[request.id for request in info.requests],
                    questions=[request.question for request in info.requests],
                )
            ending = await patiently(self._last_event)
            if ending and (error := error_of(ending, self.id)):
                raise error
            if isinstance(ending, RunCompleted):
                return RunResult(
                    run_id=self.id,
                    output=self._typed(ending.output),
                    usage=info.usage,
                    steps=info.step,
                    events=[recorded async for recorded in self.events()],
                )
            # It was resumed since it was looked at.

    def events(self, after: int | str = 0, *, follow: bool = False) -> EventReader:
        """What happened, in order; to be iterated over with `async for`.

        Args:
            after: The number of an event, or a reader's `cursor`, behind which to begin.
            follow: Wait for more until the run has ended.
        """
        return EventReader(self._services, self.id, after=after, follow=follow)

    async def cancel(self) -> Literal["cancelled", "asked", "over"]:
        """Ends the run. Where a worker has it, it is `asked` to end, which takes two seconds at most.

        Returns:
            `over` if it had ended before.
        """
        services = await self._services()
        sid, event = _signal_id(), encode(RunCancelled())
        outcome = await sent_again(lambda: services.store.cancel(self.id, sid=sid, event=event))
        if outcome.promoted:
            await services.ring(outcome.promoted)
        if outcome.code == "cancelled":
            await services.tell_rq(self.id)
        return cast('Literal["cancelled", "asked", "over"]', outcome.code)

    async def resume(self, *, budget: Budget | None = None) -> Literal["resumed", "behind"]:
        """Lets a failed or budget_exceeded run go on from its checkpoint.

        Args:
            budget: Its limits from now on, in place of the old ones; what it has used still counts.

        Returns:
            `behind` where another run of its session goes first.

        Raises:
            NotResumable: It is in another status.
        """
        services = await self._services()
        sid, event = _signal_id(), encode(RunResumed(budget=budget))
        limits = budget.model_dump_json().encode() if budget else None
        outcome = await sent_again(lambda: services.store.resume(self.id, sid=sid, event=event, limits=limits))
        if outcome == "resumed":
            await services.ring(self.id)
        return cast('Literal["resumed", "behind"]', outcome)

    async def add_budget(self, **limits: Unpack[Limits]) -> None:
        """Adds to the limits of a run that has not ended: `add_budget(max_steps=10)` allows ten steps more.

        Raises:
            Conflict: It has ended: `resume(budget=...)` lets it go on.
            ConfigurationError: There is no such limit.
        """
        await self._signal("top_up", additions_of(limits).model_dump_json(exclude_unset=True).encode())

    async def reply(self, text: str, *, request: str = "") -> None:
        """Answers a question.

        Args:
            request: Which one, where there are several.

        Raises:
            Conflict: Nothing was asked, it was answered before, or several are open and none was named.
        """
        await self._signal("reply", to_json({"text": well_formed(text)}), request)

    async def approve(self, request: str = "", *, arguments: Mapping[str, object] | None = None) -> None:
        """Allows a tool call, with other arguments where some are given.

        Raises:
            Conflict: Nothing was asked, it was answered before, or several are open and none was named.
            ConfigurationError: The arguments do not fit the tool, as its agent's card has it; nothing was answered.
        """
        changed = None if arguments is None else json_object(arguments, "arguments")
        if changed is not None:
            await self._check_fit(request, changed)
        await self._signal("approve", to_json({"arguments": changed}), request)

    async def reject(self, request: str = "", *, reason: str = "") -> None:
        """Forbids a tool call; the model reads why.

        Raises:
            Conflict: Nothing was asked, it was answered before, or several are open and none was named.
        """
        await self._signal("reject", to_json({"reason": well_formed(reason)}), request)

    async def delete(self) -> None:
        """Removes an ended run, all that is stored of it, and its job in RQ, before its retention is over.

        Raises:
            Conflict: It has not ended: cancel it first.
        """
        services = await self._services()
        record = await services.store.info(self.id)
        await services.store.delete(self.id)
        await forget_job(services.redis, self.id, record.queue)

    def _typed(self, output: object) -> Output:
        try:
            return self._result_of(output)
        except AgentDefinitionError as error:
            words = f"run {self.id} has completed, but {error} (`client.get`, without the agent, gives it as JSON)"
            raise AgentDefinitionError(words) from error

    async def _check_fit(self, request: str, arguments: Mapping[str, object]) -> None:
        """Looks at arguments before they are sent: the model would read what a person got wrong, and the request be gone."""
        info = await self.info()
        requests = [one.id for one in info.requests if one.kind == "approval" and request in ("", one.id)]
        if len(requests) != 1:
            return  # the store says what is wrong
        opened = [recorded.event async for recorded in self.events() if isinstance(recorded.event, RequestOpened)]
        tools = [event.tool for event in opened if event.request == requests[0]]
        card = await (await self._services()).card(info.agent)
        if tools and card is not None:
            card.check_arguments(tools[-1], arguments)

    async def _last_event(self) -> Event | None:
        last = await (await self._services()).store.last_event(self.id)
        return decode(last.body) if last else None

    async def _signal(self, kind: str, body: bytes, request: str = "") -> None:
        services = await self._services()
        sid = _signal_id()
        outcome = await sent_again(lambda: services.store.signal(self.id, sid=sid, kind=kind, body=body, ask=request))
        if outcome == "woken":
            await services.ring(self.id)


def _signal_id() -> str:
    return uuid.uuid4().hex


def _has_settled(sight: Sight) -> bool:
    return sight.status in ENDED or (sight.status is Status.WAITING and sight.wait in REQUEST_WAITS)
