"""A run's actor: owns one activation from the claim to the departure. One run, one actor, one task.

The driver moves the run; the actor gives it what it needs, and makes sure that whatever goes wrong harms this run only: it
is then given back with a reason, and counts a crash.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import structlog
from pydantic_core import from_json

from agent.agent import Agent
from agent.budget import Reservation
from agent.context import ActionContext, RunIdentity
from agent.conversation import ContextState, EarlierRun
from agent.driver import Driver
from agent.errors import BrokenRecord, LeaseLost, TooLarge
from agent.events import Recorded, RunFailed, decode
from agent.journal import News
from agent.mailbox import Cancel, Leave, Look
from agent.program import Program
from agent.providers import OpenedContext
from agent.redaction import redact
from agent.report import Observer
from agent.state import Checkpoint, RunState
from agent.text import bounded, words_of
from scheduler.lifecycle import Status
from scheduler.records import StoredEvent
from worker.claims import Claim
from worker.journal import RedisJournal, arrivals_of, marks_of
from worker.leases import Lease
from worker.recall import Recall

MOST_WORDS: Final = 2_000
"""Characters that are kept of what went wrong."""


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """An agent as this process serves it: made ready, its dependencies opened."""

    agent: Agent[object]
    program: Program
    context: OpenedContext


@dataclass(frozen=True, slots=True)
class Ended:
    """How an activation ended. `status` is None where the run belongs to somebody else now; delays in milliseconds."""

    status: Status | None
    reason: str = ""
    delay_ms: int = 0


class RunActor:
    """Moves one claimed run.

    Args:
        observer: Hears of every step.
        max_steps: Steps after which the run is given back; None: no limit.
    """

    def __init__(
        self,
        claim: Claim,
        served: ServedAgent,
        journal: RedisJournal,
        lease: Lease,
        *,
        recall: Recall,
        observer: Observer,
        max_steps: int | None,
    ) -> None:
        self.claim = claim
        self.lease = lease
        self.since = time.monotonic()
        self._served = served
        self._journal = journal
        self._recall = recall
        self._observer = observer
        self._max_steps = max_steps
        self._driver: Driver | None = None
        self._told: list[Cancel | Leave | Look] = []
        self._urged = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def crashes(self) -> int:
        """How often the run has crashed at the step at which it stands; a step forward clears it."""
        has_moved = self._driver is not None and self._driver.state.head.step > self.claim.claimed.step
        return 0 if has_moved else self.claim.claimed.crashes

    def start(self, ended: Callable[["RunActor", Ended], None]) -> None:
        """Starts to move the run; `ended` is called once, on the loop, when the activation is over."""
        self._task = asyncio.create_task(self._live(ended), name=f"run {self.claim.run}")

    def tell(self, message: Cancel | Leave | Look) -> None:
        """Puts a message into the mailbox."""
        if self._driver is not None:
            self._driver.post(message)
            return
        self._told.append(message)
        match message:
            case Cancel() | Leave(at_once=True):
                self._urged.set()
            case _:
                pass

    def lose(self) -> None:
        """Somebody else owns the run now: whatever is under way ends at once, and nothing more is written.

        A commit that is on its way says so itself. Or it has just ended this activation, which a renewal takes for a loss.
        """
        if self._task is not None and not self._journal.committing:
            self._task.cancel()

    async def _live(self, ended: Callable[["RunActor", Ended], None]) -> None:
        log = structlog.get_logger("pawl.actor")
        structlog.contextvars.bind_contextvars(run=self.claim.run)
        end = Ended(None)
        try:
            end = await self._drive()
        except LeaseLost as lost:
            log.warning("run_lost", token=self.lease.token, why=str(lost))
        except asyncio.CancelledError:
            log.warning("run_lost", token=self.lease.token, why="its lease is somebody else's")
        except BrokenRecord as broken:
            log.error("record_broken", error=str(broken))
            event = RunFailed(reason="broken_record", error=str(broken))
            end = await self._give_up(self._journal.fail(event), str(broken))
        except TooLarge as error:
            log.error("too_large", error=str(error))
            event = RunFailed(reason="result_too_large", error=str(error))
            end = await self._give_up(self._journal.fail(event), str(error))
        except GeneratorExit:  # the loop is being closed: nothing can be awaited any more
            raise
        except BaseException as error:  # whatever it is must not end the neighbours
            words = bounded(redact(words_of(error)), MOST_WORDS)
            log.exception("activation_failed", error=words)
            end = await self._give_up(self._journal.release(words), words)
        finally:
            ended(self, end)

    async def _give_up(self, commit: Coroutine[Any, Any, Status], reason: str) -> Ended:
        try:
            return Ended(await commit, reason)
        except LeaseLost:
            return Ended(None)

    async def _drive(self) -> Ended:
        claimed = self.claim.claimed
        known = await self._recall.of(self.claim.run, claimed)
        state = self._restored(await self._recall.story(self.claim.run, claimed), *known)
        identity = RunIdentity(
            run_id=self.claim.run,
            session=claimed.session,
            tenant=claimed.tenant,
            agent=claimed.agent,
            metadata=_metadata(claimed.metadata),
        )
        news = News(cancel=claimed.cancel, arrived=arrivals_of(claimed.inbox))
        lost = _left_open(claimed.open)
        dependencies = await self._dependencies(identity)
        driver = Driver(
            identity,
            self._served.program,
            state,
            self._journal,
            dependencies,
            observer=self._observer,
            max_steps=self._max_steps,
            queued_ms=max(claimed.now - claimed.queued_since, 0),
        )
        self._driver = driver
        for message in self._told:
            driver.post(message)
        departure = await driver.drive(lost=lost, news=news)
        return Ended(Status(departure.status), self._journal.reason, departure.delay_ms)

    async def _dependencies(self, identity: RunIdentity) -> ActionContext | None:
        """What the tools need; None where the run is told to end or to leave meanwhile, so that no tool will run."""
        if self._served.context.shared is not None:
            return self._served.context.shared
        making = asyncio.create_task(self._served.context.for_run(identity))
        urged = asyncio.create_task(self._urged.wait())
        try:
            await asyncio.wait([making, urged], return_when=asyncio.FIRST_COMPLETED)
            return making.result() if making.done() else None
        finally:
            making.cancel()
            urged.cancel()

    def _restored(
        self, stored: Sequence[StoredEvent], context: ContextState, earlier: Sequence[EarlierRun]
    ) -> RunState:
        """The state that the record and its events say, behind what the session knows.

        Raises:
            BrokenRecord: Checkpoint and events cannot be read, or do not fit together.
        """
        claimed = self.claim.claimed
        events = (Recorded(seq=e.seq, at=e.at, event=decode(e.body)) for e in stored)
        state = RunState.restore(Checkpoint.of(claimed.state), events, earlier=earlier, context=context)
        if state.head.seq != claimed.seq:
            raise BrokenRecord(f"the record is at event {claimed.seq}, the last one that is there is {state.head.seq}")
        if state.exchange is not None:
            for call, mark in marks_of(claimed.calls).items():
                if call in state.exchange.calls:
                    state.exchange.calls[call].mark = mark
        return state


def _left_open(text: bytes) -> Reservation | None:
    """The reservation of a model call that the last owner left open: `<token> <reservation>`."""
    _, _, reservation = text.partition(b" ")
    try:
        return Reservation.of(reservation) if reservation else None
    except ValueError as error:
        raise BrokenRecord("the model call under way cannot be read") from error


def _metadata(text: bytes) -> dict[str, object]:
    try:
        return cast("dict[str, object]", from_json(text or b"{}"))
    except ValueError as error:
        raise BrokenRecord("the metadata cannot be read") from error
