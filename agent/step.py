"""The step machine. PURE: no await, no clock, no I/O.

    decide(state, …)      what to do next
    reply_events(…) …     what an outcome means, as events; `RunState.apply` folds them

A step is one reply of the model and the tool calls that it asks for. Whoever performs (`agent.driver`) commits the events of
an outcome together with the announcement of what is decided next, and only then performs it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.budget import Breach, Elapsed, Reservation, Usage, in_words, left, low, reserve
from agent.dialects.base import Asking, Calls, Declined, Final, Unusable
from agent.dialects.calls import CUT_OFF
from agent.errors import InvalidArguments, ModelError, ModelUnavailable
from agent.events import (
    Event,
    ModelFailed,
    ModelReplied,
    Outcome,
    ReplyRejected,
    RunBudgetExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolReturned,
    encode,
)
from agent.messages import INTERRUPTED, ToolCall
from agent.models.base import ModelReply, Price
from agent.program import Program, unknown_tool
from agent.state import Ending, Exchange, Mark, OpenCall, RunState
from agent.text import bounded, well_formed
from agent.tokens import estimate

RETRY_BASE_MS = 500
RETRY_CAP_MS = 30_000
RETRY_AFTER_CAP_MS = 3_600_000
PARTIAL_LIMIT = 64_000

RESULT_LIMIT = 1_000_000
"""Bytes of a result as JSON."""


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask the model for the next reply, within the reservation."""

    asking: Asking
    reservation: Reservation
    request_tokens: int


@dataclass(frozen=True, slots=True)
class StartTools:
    """Start these calls now."""

    calls: tuple[OpenCall, ...]


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing new to start: what is under way has to end first."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ends with this event."""

    event: RunFailed | RunBudgetExceeded


@dataclass(frozen=True, slots=True)
class Ended:
    """The run has ended."""

    status: Ending


Intent = AskModel | StartTools | Hold | Finish | Ended


def decide(state: RunState, program: Program, run_id: str, elapsed: Elapsed) -> Intent:
    """What to do next. Asked again with the same state it gives the same answer."""
    head = state.head
    if head.ended:
        return Ended(head.ended)
    if state.exchange is not None:
        startable = _startable(state.exchange, program)
        return StartTools(startable) if startable else Hold()
    if head.unusable >= program.max_unusable:
        reason = head.unusable_reason or "unusable_reply"
        error = f"{head.unusable} replies in a row could not be used (the last one: {reason})"
        return Finish(RunFailed(reason=reason, error=error, partial=partial(state)))
    if head.budget.max_cost_usd is not None and program.model.price is None:
        error = f"max_cost_usd is set, but no price is known for {program.model.name}"
        return Finish(RunFailed(reason="unknown_price", error=error, partial=partial(state)))
    request_tokens = program.overhead + state.history_tokens
    reserved = reserve(
        head.budget,
        head.usage,
        head.step,
        elapsed,
        input_tokens=_corrected(request_tokens, state),
        price=program.model.price,
        wanted_output=program.max_tokens,
    )
    if isinstance(reserved, Breach):
        return Finish(exceeded(state, reserved))
    asking = Asking(
        run_id=run_id,
        step=head.step + 1,
        attempt=head.attempts + 1,
        max_tokens=reserved.output_tokens,
        timeout=_time_left(program.model_timeout, state, elapsed),
        last=reserved.last,
        note=budget_note(state, elapsed),
    )
    return AskModel(asking, reserved, request_tokens)


def exceeded(state: RunState, breach: Breach) -> RunBudgetExceeded:
    """The end of a run at a limit, with what there is of an answer."""
    return RunBudgetExceeded(limit=breach.limit, used=breach.used, allowed=breach.allowed, partial=partial(state))


def partial(state: RunState) -> str | None:
    """The last text that the model wrote, bounded."""
    text = state.last_text
    return bounded(text, PARTIAL_LIMIT) if text else None


def budget_note(state: RunState, elapsed: Elapsed) -> str | None:
    """A word to the model on what is left, once a limit gets low."""
    rest = low(state.head.budget, left(state.head.budget, state.head.usage, state.head.step, elapsed))
    if not rest:
        return None
    words = ", ".join(
        f"{in_words(value)} {name.removeprefix('max_').replace('_', ' ')}" for name, value in rest.items()
    )
    return f"[Budget left: {words}. Come to an end before it is used up.]"


def reply_events(
    state: RunState, program: Program, asked: AskModel, reply: ModelReply, *, ms: int, active_ms: int
) -> list[Event]:
    """What a reply means: the reply itself, the answers to calls that cannot be executed, and the end where it is one."""
    reading = program.dialect.read(reply, program, asked.asking)
    calls = _distinct(reading.calls, state, asked.asking.step) if isinstance(reading, Calls) else ()
    replied = ModelReplied(
        step=asked.asking.step,
        content=reading.text,
        calls=calls,
        reasoning=well_formed(reply.reasoning) if reply.reasoning else None,
        finish_reason=reply.finish_reason,
        provider_fields=reply.provider_fields,
        model=reply.model or program.model.name,
        usage=_usage_of(reply, asked, program.model.price),
        request_tokens=asked.request_tokens,
        ms=ms,
        active_ms=active_ms,
    )
    match reading:
        case Calls():
            return [replied, *_refused_calls(calls, state, program, asked, active_ms)]
        case Final(text=text):
            return [replied, _final(text, program, asked.asking.step)]
        case Declined(text=text):
            return [
                replied,
                RunFailed(reason="refused", error=f"the model declined: {bounded(text, 2000)}", partial=text),
            ]
        case Unusable(reason=reason, reminder=reminder):
            return [replied, ReplyRejected(step=asked.asking.step, reason=reason, message=reminder)]


def failure_events(
    state: RunState, program: Program, asked: AskModel, error: ModelError, *, jitter: float, ms: int, active_ms: int
) -> list[Event]:
    """What a failed attempt means: a later attempt, or the end.

    Args:
        jitter: A number from 0 to 1 that spreads the attempts of many runs.
    """
    retryable = isinstance(error, ModelUnavailable)
    attempt = state.head.attempts + 1
    retry_ms = _retry_ms(error, attempt, jitter) if retryable and attempt < program.max_attempts else None
    reason = "model_unavailable" if retryable else "model_refused_request"
    failed = ModelFailed(
        step=asked.asking.step,
        error=bounded(str(error), 1000),
        reason=reason,
        usage=asked.reservation.as_usage() if error.billed else Usage(),
        retry_ms=retry_ms,
        ms=ms,
        active_ms=active_ms,
    )
    if retry_ms is not None:
        return [failed]
    words = f"no reply from {program.model.name} after {attempt} attempts: " if retryable else f"{program.model.name}: "
    return [failed, RunFailed(reason=reason, error=words + bounded(str(error), 1000), partial=partial(state))]


def lost_call_events(
    state: RunState, reservation: Reservation, *, active_ms: int, error: str = "the call was cut off with its worker"
) -> list[Event]:
    """A model call whose worker was lost, or that was given up, may have been billed: it is charged as reserved."""
    return [
        ModelFailed(
            step=state.head.step + 1,
            error=f"{error}; it may have been billed",
            reason="model_unavailable",
            usage=reservation.as_usage(),
            retry_ms=0,
            active_ms=active_ms,
        )
    ]


def tool_events(
    program: Program, call: OpenCall, outcome: Outcome, content: str, *, result: object = None, ms: int, active_ms: int
) -> list[Event]:
    """What the end of an execution means: the answer, and the end of the run where the tool is its exit.

    Args:
        result: What a terminal tool returned, as JSON can carry it.
    """
    returned = ToolReturned(
        call=call.key, name=call.call.name, outcome=outcome, content=content, ms=ms, active_ms=active_ms
    )
    if outcome == "ok" and call.call.name == program.exit.name:
        return [returned, completed(result)]
    return [returned]


def completed(output: object) -> RunCompleted | RunFailed:
    """The end with a result; a result that is too large to be kept is a failure that says so."""
    event = RunCompleted(output=output)
    size = len(encode(event))
    if size <= RESULT_LIMIT:
        return event
    return RunFailed(reason="result_too_large", error=f"result too large ({size} bytes, limit {RESULT_LIMIT})")


def doubtful(exchange: Exchange, program: Program, *, active_ms: int) -> tuple[list[Event], list[OpenCall]]:
    """Decides the calls that an earlier activation had started and did not end: in doubt is said, not guessed.

    Returns:
        The answers (or the end of the run), and the calls that may be executed again.
    """
    events: list[Event] = []
    again: list[OpenCall] = []
    failing: list[str] = []
    for open_call in exchange.unanswered:
        if open_call.mark is not Mark.DOUBTFUL:
            continue
        tool = program.registry.get_tool(open_call.call.name)
        if tool is not None and (tool.idempotent or tool.on_unknown == "retry"):
            again.append(open_call)
            continue
        events += tool_events(program, open_call, "unknown", INTERRUPTED, ms=0, active_ms=active_ms)
        if tool is not None and tool.on_unknown == "fail":
            failing.append(tool.name)
    if failing:
        error = f"nobody knows how the call of {', '.join(failing)} ended (on_unknown='fail')"
        events.append(RunFailed(reason="outcome_unknown", error=error))
    return events, again


def _startable(exchange: Exchange, program: Program) -> tuple[OpenCall, ...]:
    """The calls that may start now: in order, at most `parallel` at once, one alone where its tool says so, the exit last."""
    unanswered = list(exchange.unanswered)
    running = [open_call for open_call in unanswered if open_call.mark is Mark.STARTED]
    waiting = [open_call for open_call in unanswered if open_call.mark is Mark.PLANNED]
    others = [open_call for open_call in waiting if open_call.call.name != program.exit.name]
    chosen: list[OpenCall] = []
    for open_call in others or waiting[:1]:
        busy = len(running) + len(chosen)
        alone = not _is_parallel(open_call, program) or open_call.call.name == program.exit.name
        if busy >= program.parallel or (
            busy and (alone or any(not _is_parallel(c, program) for c in (*running, *chosen)))
        ):
            break
        chosen.append(open_call)
    return tuple(chosen)


def _is_parallel(open_call: OpenCall, program: Program) -> bool:
    tool = program.registry.get_tool(open_call.call.name)
    return tool is None or tool.parallel


def _refused_calls(
    calls: Sequence[ToolCall], state: RunState, program: Program, asked: AskModel, active_ms: int
) -> Iterable[Event]:
    """Answers to the calls that will not be executed: unusable arguments, unknown tools, no tool calls left."""
    limit = state.head.budget.max_tool_calls
    room = None if limit is None else limit - state.head.usage.tool_calls
    for index, call in enumerate(calls):
        key = OpenCall(f"{asked.asking.step}.{index}", call)
        if call.problem is not None:
            outcome: Outcome = "cut_off" if call.problem == CUT_OFF else "invalid"
            yield from tool_events(program, key, outcome, call.problem, ms=0, active_ms=active_ms)
        elif program.registry.get_tool(call.name) is None:
            yield from tool_events(program, key, "invalid", unknown_tool(call.name, program), ms=0, active_ms=active_ms)
        elif room is not None and call.name != program.exit.name:
            if room <= 0:
                text = f"Not executed: the budget of {limit} tool calls is used up."
                yield from tool_events(program, key, "over_budget", text, ms=0, active_ms=active_ms)
            room -= 1


def cancel_events(
    state: RunState, program: Program, asked: AskModel | None, reason: str, *, active_ms: int
) -> list[Event]:
    """The end of a run that somebody cancelled: what was under way is interrupted, an open model call is charged."""
    events: list[Event] = []
    if asked is not None:
        events += lost_call_events(state, asked.reservation, active_ms=active_ms, error="the run was cancelled")
    if state.exchange is not None:
        for call in state.exchange.unanswered:
            if call.mark is not Mark.PLANNED:
                events += tool_events(program, call, "interrupted", INTERRUPTED, ms=0, active_ms=active_ms)
    return [*events, RunCancelled(reason=reason, active_ms=active_ms)]


def _final(text: str, program: Program, step: int) -> Event:
    """The answer in plain text: the result where it fits, else a reminder of the exit."""
    if program.output is None:
        reminder = f"Call a tool. Once the task is done, call `{program.exit.name}` with the result."
        return ReplyRejected(step=step, reason="unusable_reply", message=reminder)
    try:
        return completed(program.output.to_json(program.output.of_text(text)))
    except InvalidArguments as problem:
        reminder = f"That is not the result in the asked form. Call `{program.exit.name}` with it.\n{problem}"
        return ReplyRejected(step=step, reason="invalid_output", message=bounded(reminder, 4000))


def _distinct(calls: tuple[ToolCall, ...], state: RunState, step: int) -> tuple[ToolCall, ...]:
    """The calls with ids that no earlier call has; some servers count from 0 in every reply."""
    return tuple(
        call.model_copy(update={"id": f"{call.id}_{step}_{index}"}) if call.id in state.call_ids else call
        for index, call in enumerate(calls)
    )


def _usage_of(reply: ModelReply, asked: AskModel, price: Price | None) -> Usage:
    """What a reply is charged. Tokens that the server did not report are estimated, and marked as such."""
    input_tokens, output_tokens, estimated = reply.input_tokens, reply.output_tokens, 0
    if input_tokens is None:
        input_tokens = asked.reservation.input_tokens
        estimated += input_tokens
    if output_tokens is None:
        arguments = "".join(str(call.arguments) for call in reply.tool_calls)
        output_tokens = estimate((reply.content or "") + (reply.reasoning or "") + arguments) + 1
        estimated += output_tokens
    cost = reply.cost
    if cost is None and price is not None:
        cost = price.cost(input_tokens, output_tokens)
    return Usage(
        model_calls=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_nanousd=cost or 0,
        unpriced_calls=int(cost is None),
        estimated_tokens=estimated,
    )


def _corrected(request_tokens: int, state: RunState) -> int:
    """The estimated size of a request, corrected by how the last estimate compared with what the server reported."""
    head = state.head
    if not head.reported_tokens or not head.estimated_tokens:
        return request_tokens
    return max(1, request_tokens * head.reported_tokens // head.estimated_tokens)


def _retry_ms(error: ModelError, attempt: int, jitter: float) -> int:
    """Milliseconds until the next attempt: what the server asked for, else twice as long each time, spread by half."""
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    if asked is not None:
        return int(min(max(asked, 0.0) * 1000, RETRY_AFTER_CAP_MS))
    return int(min(RETRY_BASE_MS * 2 ** (attempt - 1), RETRY_CAP_MS) * (0.5 + jitter / 2))


def _time_left(timeout: float, state: RunState, elapsed: Elapsed) -> float:
    """Seconds that an attempt may take: the agent's timeout, or what the time limits leave."""
    budget = state.head.budget
    limits = [timeout]
    if budget.max_active_seconds is not None:
        limits.append(budget.max_active_seconds - elapsed.active_ms / 1000)
    if budget.max_wall_seconds is not None:
        limits.append(budget.max_wall_seconds - elapsed.wall_ms / 1000)
    return max(min(limits), 0.001)
