"""The one place where a run is moved: decide, commit, perform, and again.

    what happened ─▶ events ─▶ fold into the state ─▶ decide ─▶ ONE commit (what happened + what comes next) ─▶ perform

Everything that happens reaches the driver through its mailbox, one message at a time: the end of a model call or of a tool,
and what others want of the run. Nothing is performed before the commit that announces it is acknowledged.
"""

import asyncio
import random
from collections.abc import Coroutine, Sequence
from typing import Final

from agent.attempt import attempt
from agent.budget import Amount, Budget, Elapsed, Reservation, Usage, left, wall_ms_left
from agent.context import ActionContext, RunIdentity, ToolContext
from agent.context_window import summary_request
from agent.conversation import ContextState
from agent.environment import RunNotOwned
from agent.errors import ModelError
from agent.events import (
    BudgetChanged,
    ContextCompacted,
    Event,
    ModelFailed,
    ModelReplied,
    Recorded,
    RequestOpened,
    RunReleased,
    ToolReturned,
)
from agent.execution import ToolEnd, execute
from agent.intents import AskModel, AwaitPerson, Ended, Happen, Hold, Pause, Plan, Release, StartTools, Summarise
from agent.journal import NO_NEWS, Commit, Journal, News, Target
from agent.mailbox import Cancel, Crash, Departure, Leave, Look, Mailbox, Message, ModelEnd, PauseEnd
from agent.models.base import ModelRequest
from agent.outcomes import (
    cancel_events,
    doubtful,
    exceeded,
    failure_events,
    lost_call_events,
    reply_events,
    summary_events,
    tool_events,
)
from agent.program import Program
from agent.report import Observer, SilentObserver, StepReporter
from agent.requests import answer_events
from agent.state import Mark, OpenCall, RunState
from agent.step import decide

HOLD_MS: Final = 2_000
"""A wait before the next attempt that is longer than this is not spent in a worker: the run is parked."""


class Driver:
    """Moves one run through one activation. Its clock is the event loop's.

    Args:
        hold_ms: The longest wait before another attempt that is spent here, in milliseconds; None: any.
        max_steps: Steps after which the run is given back; None: no limit.
        queued_ms: Milliseconds that the run had been due when it was claimed, for the log.
    """

    def __init__(
        self,
        identity: RunIdentity,
        program: Program,
        state: RunState,
        journal: Journal,
        dependencies: ActionContext | None,
        *,
        observer: Observer | None = None,
        hold_ms: int | None = HOLD_MS,
        max_steps: int | None = None,
        queued_ms: int = 0,
    ) -> None:
        self.state = state
        self._identity = identity
        self._whole_program = program
        self._journal = journal
        self._dependencies = dependencies
        self._reporter = StepReporter(observer or SilentObserver(), queued_ms)
        self._hold_ms = hold_ms
        self._last_step = None if max_steps is None else state.head.step + max_steps
        self._mailbox = Mailbox()
        self._tasks: list[asyncio.Task[None]] = []
        self._active_before = state.head.usage.active_ms
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        self._elapsed = Elapsed(self._active_before, 0)  # read anew in every turn
        # Since the last commit:
        self._events: list[Event] = []
        self._charge: Usage | None = None
        self._consumed = 0
        self._curious = False
        self._context_told: ContextState | None = None
        # Under way:
        self._asked: AskModel | None = None
        self._retry_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._leave: Leave | None = None

    @property
    def _program(self) -> Program:
        """The program, with the tool to read on once there is a result to read on in."""
        return self._whole_program.for_reading() if self.state.aside else self._whole_program

    def post(self, message: Cancel | Leave | Look | Crash) -> None:
        """Tells the driver what somebody wants of the run. It is dealt with behind what came before."""
        self._mailbox.put(message)

    async def drive(self, *, lost: Reservation | None = None, news: News = NO_NEWS) -> Departure:
        """Moves the run until it ends, waits or is given back.

        Args:
            lost: The reservation of a model call that an earlier activation left open.
            news: What arrived while nobody owned the run.

        Raises:
            LeaseLost: Another worker owns the run now; nothing more was written.
        """
        try:
            self._take_over(lost)
            self._hear(news)
            while True:
                self._read_clock()
                while (message := self._mailbox.take()) is not None:  # whatever is ready goes into one commit
                    self._absorb(message)
                departure = await self._advance()
                if departure is not None:
                    return departure
                if not self._has_something_to_commit:
                    await self._mailbox.wait()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for task in self._tasks:
                task.cancel()

    def _take_over(self, lost: Reservation | None) -> None:
        """Says what has to be said before anything new: a lost model call is charged, calls in doubt are decided."""
        active_ms = self._elapsed.active_ms
        if not self.state.has_budget:
            self._happened([BudgetChanged(budget=self._program.budget, active_ms=active_ms)])
        if lost is not None:
            self._happened(lost_call_events(self.state, lost, active_ms=active_ms))
            self._charge = lost.as_usage()
        if self.state.exchange is not None:
            answers, again = doubtful(self.state.exchange, self._program, active_ms=active_ms)
            self._happened(answers)
            for open_call in again:
                open_call.mark, open_call.attempt = Mark.PLANNED, 2

    @property
    def _has_something_to_commit(self) -> bool:
        return bool(self._events or self._consumed or self._curious)

    async def _advance(self) -> Departure | None:
        """Decides, commits and performs. Returns how the activation ended, if it did."""
        plan = self._plan()
        if isinstance(plan, Hold) and not self._has_something_to_commit:
            return None
        commit = self._commit(plan)
        before = self._now()
        news = await self._journal.commit(commit)
        self._events, self._charge, self._consumed, self._curious = [], None, 0, False
        self._reporter.committed(
            commit.events,
            exchange_open=self.state.exchange is not None,
            ms=self._ms_since(before),
            budget_left=self._budget_left,
        )
        if commit.to != "running" and not news.stayed:
            why = plan.why if isinstance(plan, Release) else ""
            return Departure(commit.to, why, commit.delay_ms or 0)
        if not _overtakes(news, plan):
            self._perform(plan)
        self._hear(news)
        return None

    def _plan(self) -> Plan:
        """What to do next, seen what is under way and what others want."""
        if self.state.head.ended:
            return Ended(self.state.head.ended)
        if self._leave is not None and self._leave.at_once:
            return self._give_back(self._leave)
        if self._retry_at is not None:
            ms = max(int((self._retry_at - self._now()) * 1000), 0)
            if self._leave is not None or (self._hold_ms is not None and ms > self._hold_ms):
                self._happened([RunReleased(why="waiting", active_ms=self._elapsed.active_ms)])
                left_ms = self._wall_ms_left()
                return Release("waiting", "waiting", "rate_limit", ms if left_ms is None else min(ms, left_ms))
            return Pause(self._at_most_active(ms)) if self._timer is None else Hold()
        if self._asked is not None:
            return Hold()
        intent = decide(self.state, self._program, self._identity.run_id, self._elapsed)
        if isinstance(intent, Happen):
            self._happened(intent.events)
            return self._plan()
        if isinstance(intent, AwaitPerson):
            self._happened([RunReleased(why="waiting", active_ms=self._elapsed.active_ms)])
            return Release("waiting", "waiting", intent.wait, self._wall_ms_left())
        if isinstance(intent, AskModel):
            if self._leave is not None:
                return self._give_back(self._leave)
            if self._last_step is not None and self.state.head.step >= self._last_step:
                return self._give_back(Leave("yield"))
        return intent

    def _give_back(self, leave: Leave) -> Release:
        """The run goes back into the queue. A model call that is given up may have been billed."""
        active_ms = self._elapsed.active_ms
        if self._asked is not None:
            self._happened(lost_call_events(self.state, self._asked.reservation, active_ms=active_ms))
            self._charge, self._asked = self._asked.reservation.as_usage(), None
        self._happened([RunReleased(why=leave.why, active_ms=active_ms)])
        return Release("queued", leave.why)

    def _commit(self, plan: Plan) -> Commit:
        """The one commit that carries what happened and announces the plan."""
        marks: dict[str, Mark | None] = {}
        requests: list[RequestOpened] = []
        budget: Budget | None = None
        for event in self._events:
            match event:
                case ToolReturned(call=key):
                    marks[key] = None
                case RequestOpened():
                    requests.append(event)
                    if event.doubt:
                        marks[event.request] = None
                case BudgetChanged():
                    budget = event.budget
                case _:
                    pass
        to: Target = "running"
        wait, delay_ms = "", None
        asked = self._asked
        match plan:
            case StartTools(calls=calls):
                marks |= dict.fromkeys((call.key for call in calls), Mark.STARTED)
            case AskModel():
                asked = plan
            case Ended(status=status):
                to = status
            case Release():
                to, wait, delay_ms = plan.to, plan.wait, plan.delay_ms
            case Pause() | Hold():
                pass
        context = self.state.context_left_behind(self._identity.run_id)
        changed = context is not self._context_told and context != self._context_told
        self._context_told = context
        return Commit(
            events=tuple(self._events),
            checkpoint=self.state.head,
            to=to,
            wait=wait,
            delay_ms=delay_ms,
            opening=asked.reservation if asked else None,
            charge=self._charge,
            marks=marks,
            requests=requests,
            acknowledged=self._consumed,
            context=context if changed else None,
            budget=budget,
        )

    def _perform(self, plan: Plan) -> None:
        """Starts what was announced."""
        match plan:
            case AskModel():
                self._asked = plan
                self._start(self._ask(plan))
            case StartTools(calls=calls):
                for open_call in calls:
                    open_call.mark = Mark.STARTED
                    self._start(self._run_tool(open_call))
            case Pause(ms=ms):
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(ms / 1000, self._mailbox.put, PauseEnd())
            case Hold() | Ended() | Release():
                pass

    def _hear(self, news: News) -> None:
        """Deals with what the commit's answer brought."""
        if self.state.head.ended not in ("", "budget_exceeded"):
            return
        for arrived in news.arrived:
            self._consumed += 1
            if isinstance(arrived, Budget):
                budget = self.state.head.budget.raised(arrived)
                self._happened([BudgetChanged(budget=budget, active_ms=self._elapsed.active_ms)])
            else:
                self._happened(answer_events(self.state.exchange, arrived, active_ms=self._elapsed.active_ms))
        if news.cancel:
            self._absorb(Cancel(news.cancel))
        elif news.over:
            self._happened([exceeded(self.state, news.over)])

    def _absorb(self, message: Message) -> None:
        """Turns a message into events, folded at once. Behind the end of a run nothing happens any more."""
        if isinstance(message, Crash):
            raise message.error
        if self.state.head.ended not in ("", "budget_exceeded"):
            return
        active_ms = self._elapsed.active_ms
        match message:
            case ModelEnd(asked=asked, answer=answer, ms=ms):
                if asked is not self._asked:
                    return
                self._asked = None
                events = (
                    failure_events(
                        self.state,
                        self._program,
                        asked,
                        answer,
                        jitter=random.random(),
                        ms=ms,
                        active_ms=active_ms,
                    )
                    if isinstance(answer, ModelError)
                    else summary_events(self.state, self._program, asked, answer, ms=ms, active_ms=active_ms)
                    if isinstance(asked, Summarise)
                    else reply_events(self.state, self._program, asked, answer, ms=ms, active_ms=active_ms)
                )
                self._model_ended(events[0])
                self._happened(events)
            case ToolEnd(call=call, outcome=outcome, content=content, result=result, ms=ms):
                self._happened(
                    tool_events(self._program, call, outcome, content, result=result, ms=ms, active_ms=active_ms)
                )
            case PauseEnd():
                self._retry_at = self._timer = None
            case Cancel(reason=reason):
                if self._asked is not None:
                    self._charge = self._asked.reservation.as_usage()
                self._happened(cancel_events(self.state, self._program, self._asked, reason, active_ms=active_ms))
                self._asked = None
            case Leave():
                self._leave = message
            case Look(unread=unread):
                self._curious = unread > self._consumed

    def _model_ended(self, first: Event) -> None:
        if isinstance(first, ModelReplied | ContextCompacted):
            self._charge = first.usage
        elif isinstance(first, ModelFailed):
            self._charge = first.usage
            self._retry_at = self._now() + first.retry_ms / 1000 if first.retry_ms else None

    def _happened(self, events: Sequence[Event]) -> None:
        """Folds events into the state and keeps them for the next commit."""
        for event in events:
            self.state.apply(Recorded(self.state.head.seq + 1, 0, event))
        self._events += events

    def _start(self, work: Coroutine[None, None, Message]) -> None:
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(asyncio.create_task(self._deliver(work)))

    async def _deliver(self, work: Coroutine[None, None, Message]) -> None:
        """Puts what some work comes to into the mailbox."""
        try:
            self._mailbox.put(await work)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._mailbox.put(Crash(error))

    async def _ask(self, asked: AskModel) -> ModelEnd:
        await self._journal.permit()
        request = self._request(asked)
        before = self._now()
        answer = await attempt(self._program.model, request)
        return ModelEnd(asked, answer, self._ms_since(before))

    def _request(self, asked: AskModel) -> ModelRequest:
        state, program = self.state, self._program
        if isinstance(asked, Summarise):
            room = asked.request_tokens
            return summary_request(state.conversation, state.context, asked.index, asked.asking, room)
        window = program.context.measured_in_estimates(state.correction)
        messages = window.build(state.conversation, state.context, program.overhead)
        return program.dialect.request(program, messages, asked.asking)

    async def _run_tool(self, open_call: OpenCall) -> ToolEnd:
        tool = self._program.registry.get_tool(open_call.call.name)
        while True:
            if tool is not None and not tool.idempotent:
                await self._journal.secure()
            await self._journal.permit()
            try:
                return await execute(self._program, open_call, self._dependencies, self._tool_context(open_call))
            except RunNotOwned:  # while it waited for a thread
                continue

    def _tool_context(self, open_call: OpenCall) -> ToolContext:
        return ToolContext(
            run_id=self._identity.run_id,
            session=self._identity.session,
            tenant=self._identity.tenant,
            agent=self._identity.agent,
            step=self.state.head.step,
            call_key=open_call.key,
            idempotency_key=f"{self._identity.run_id}:{open_call.key}",
            attempt=open_call.attempt,
            metadata=self._identity.metadata,
            budget_left=self._budget_left(),
            owns_run=self._journal.owns_run,
        )

    def _budget_left(self) -> dict[str, Amount]:
        head = self.state.head
        return left(head.budget, head.usage, head.step, self._elapsed)

    def _at_most_active(self, ms: int) -> int:
        """A wait here is no longer than the active time that is left."""
        limit = self.state.head.budget.max_active_seconds
        return ms if limit is None else max(min(ms, int(limit * 1000) - self._elapsed.active_ms), 0)

    def _wall_ms_left(self) -> int | None:
        return wall_ms_left(self.state.head.budget, self._elapsed)

    def _ms_since(self, start: float) -> int:
        return int((self._now() - start) * 1000)

    def _read_clock(self) -> None:
        """What happens in one turn happens at one moment."""
        active_ms = self._active_before + self._ms_since(self._started)
        self._elapsed = Elapsed(active_ms, self._journal.wall_ms())


def _overtakes(news: News, plan: Plan) -> bool:
    """Whether the answer of a commit comes before what the commit announced. With more to spend a model call is planned anew:
    it may have been the last."""
    if news.cancel or news.over:
        return True
    return isinstance(plan, AskModel) and any(isinstance(arrived, Budget) for arrived in news.arrived)
