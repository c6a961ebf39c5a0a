"""A run that lives in this process only: the same engine, over a journal in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent.context import ActionContext, RunIdentity
from agent.driver import Driver
from agent.errors import RunWaiting
from agent.events import Event, Recorded, RequestOpened, RunCreated
from agent.journal import NO_NEWS, Commit, MemoryJournal, News
from agent.program import Program
from agent.report import Observer
from agent.requests import Answer
from agent.state import Mark, RunState

Answerer = Callable[[RequestOpened], Awaitable[Answer]]
"""Asks a person, and brings the answer. It is cancelled at the deadline of the request, and the default holds."""


async def drive_here(
    identity: RunIdentity,
    program: Program,
    created: RunCreated,
    dependencies: ActionContext | None,
    *,
    observer: Observer | None,
    answer: Answerer | None,
) -> tuple[RunState, Sequence[Recorded]]:
    """Moves a run to its end, and returns its state and its events.

    Raises:
        RunWaiting: It asks a person, and there is no `answer` to bring the answer.
    """
    state, journal = RunState(), MemoryJournal()
    first: list[Event] = [created]
    await journal.commit(Commit(events=first, checkpoint=state.head))
    state.apply(journal.events[0])
    news = NO_NEWS
    while True:
        driver = Driver(identity, program, state, journal, dependencies, observer=observer, hold_ms=None)
        departure = await driver.drive(news=news)
        if departure.status != "waiting":
            return state, tuple(journal.events)
        requests = open_requests(state)
        if answer is None:
            words = "; ".join(request.question for request in requests)
            raise RunWaiting(
                f"run {identity.run_id} asks: {words} (pass answer=..., or submit the run and reply to it)",
                run_id=identity.run_id,
                requests=[request.request for request in requests],
                questions=[request.question for request in requests],
            )
        asked_at = asyncio.get_running_loop().time()
        news = News(arrived=[await _answered(answer, request, asked_at) for request in requests])


async def _answered(answer: Answerer, request: RequestOpened, asked_at: float) -> Answer:
    """What a person says; that nobody did, where the deadline of the request passes first."""
    if request.deadline_ms is None:
        return await answer(request)
    deadline = asyncio.timeout_at(asked_at + request.deadline_ms / 1000)
    try:
        async with deadline:
            return await answer(request)
    except TimeoutError:
        if not deadline.expired():
            raise
        return Answer(request.request, "expired")


def open_requests(state: RunState) -> list[RequestOpened]:
    """What a run asks of a person now, in the order of the calls."""
    calls = state.exchange.calls.values() if state.exchange else ()
    return [call.request for call in calls if call.request and call.mark is Mark.ASKED and call.answer is None]
