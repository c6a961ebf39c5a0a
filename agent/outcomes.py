"""What an outcome means, as events. PURE: no await, no clock, no I/O.

The end of a model call, of a tool, of a wait for a person, or of the run itself: each becomes events, which
`RunState.apply` folds, live and on replay alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from agent.aside import ResultReader, read_on
from agent.budget import NO_USAGE, Breach, Reservation, Usage
from agent.context_window import Compaction
from agent.dialects.base import Calls, Declined, Reading, Unusable
from agent.dialects.base import Final as FinalText
from agent.dialects.calls import CUT_OFF, read_calls
from agent.errors import ContextExceeded, InvalidArguments, ModelError, ModelUnavailable, UnrenderableResult
from agent.events import (
    ContextCompacted,
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
from agent.intents import AskModel, Summarise
from agent.messages import INTERRUPTED, ToolCall
from agent.models.base import ModelReply, Price, RawToolCall
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.program import Program, unknown_tool
from agent.redaction import redact
from agent.requests import doubt
from agent.state import Exchange, Mark, OpenCall, RunState
from agent.text import bounded, well_formed
from agent.tokens import estimate

RETRY_AFTER_CAP_MS: Final = 3_600_000
RATE_LIMITED: Final = 429
PARTIAL_LIMIT: Final = 64_000

RESULT_LIMIT: Final = 1_000_000
"""Bytes of a result, or of a reply, as JSON."""

TOO_LONG: Final = (
    "even with the newest messages only the request is longer than the model can read; give the agent "
    "context=ContextManager(max_tokens=...) below that, or a model that reads more. "
)
TOO_LARGE: Final = "Your reply was too large to be kept. Say it in less."


class _Backoff(NamedTuple):
    """The own waits between attempts, in milliseconds: the first, how many times as long each next one is, and the longest."""

    first: int
    growth: int
    longest: int


_SHORT: Final = _Backoff(500, 2, 30_000)
_LONG: Final = _Backoff(1_000, 4, 60_000)
"""For a rate limit: most are by the minute, and six attempts last longer than that, however they are spread."""


def exceeded(state: RunState, breach: Breach) -> RunBudgetExceeded:
    """The end of a run at a limit, with what there is of an answer."""
    return RunBudgetExceeded(limit=breach.limit, used=breach.used, allowed=breach.allowed, partial=partial(state))


def partial(state: RunState) -> str | None:
    """The last text that the model wrote, bounded."""
    text = state.last_text
    return bounded(text, PARTIAL_LIMIT) if text else None


def reply_events(
    state: RunState, program: Program, asked: AskModel, reply: ModelReply, *, ms: int, active_ms: int
) -> list[Event]:
    """What a reply means: the reply itself, the answers to calls that cannot be executed, and the end where it is one. One that
    was cut since the model's context is full makes room for the next."""
    events = _reply_events(state, program, asked, reply, ms=ms, active_ms=active_ms)
    if _says_full(reply.finish_reason) and not isinstance(events[-1], RunCompleted | RunFailed):
        events += _halved(state, program, active_ms=active_ms)
    return events


def _says_full(finish_reason: str | None) -> bool:
    """Whether it was the model's context that cut a reply, and not its output limit."""
    return finish_kind(finish_reason) is FinishKind.LENGTH and "context" in (finish_reason or "").lower()


def _reply_events(
    state: RunState, program: Program, asked: AskModel, reply: ModelReply, *, ms: int, active_ms: int
) -> list[Event]:
    reading = _for_validators(program.dialect.read(reply, program, asked.asking), program, asked.asking.step)
    calls = _distinct(reading.calls, state, asked.asking.step) if isinstance(reading, Calls) else ()
    usage = _usage_of(reply, asked, program.model.price)
    replied = ModelReplied(
        step=asked.asking.step,
        content=reading.text,
        calls=calls,
        reasoning=well_formed(reply.reasoning) if reply.reasoning else None,
        finish_reason=well_formed(reply.finish_reason) if reply.finish_reason else None,
        provider_fields=reply.provider_fields,
        model=well_formed(reply.model) or program.model.name,
        usage=usage,
        request_tokens=0 if usage.estimated_tokens else asked.request_tokens,
        ms=ms,
        active_ms=active_ms,
    )
    if _too_large(replied):
        emptied = replace(replied, content=None, calls=(), reasoning=None, provider_fields=None)
        return [emptied, ReplyRejected(step=replied.step, reason="unusable_reply", message=TOO_LARGE)]
    match reading:
        case Calls():
            return [replied, *_refused_calls(calls, state, program, asked, active_ms)]
        case FinalText(answer=answer):
            return [replied, _final(answer, program, asked.asking.step)]
        case Declined(text=text):
            return [
                replied,
                RunFailed(reason="refused", error=f"the model declined: {bounded(text, 2000)}", partial=text),
            ]
        case Unusable(reason=reason, reminder=reminder):
            return [replied, ReplyRejected(step=asked.asking.step, reason=reason, message=reminder)]


def compacted_event(
    state: RunState, compaction: Compaction, *, usage: Usage = NO_USAGE, model: str = "", ms: int = 0, active_ms: int
) -> ContextCompacted:
    """What it means that older messages leave the window."""
    run, offset = state.conversation.position_of(compaction.index)
    return ContextCompacted(
        run=run, offset=offset, summary=compaction.summary, usage=usage, model=model, ms=ms, active_ms=active_ms
    )


def _halved(state: RunState, program: Program, *, active_ms: int) -> list[Event]:
    """The older half of the window leaves it, for the model can read less than was thought; nothing where only the newest
    exchange is left. No model is asked: it has just shown that it cannot read this much."""
    index = program.context.halved(state.conversation)
    if index is None:
        return []
    compaction = program.context.compact(state.conversation, state.context, index)
    return [compacted_event(state, compaction, active_ms=active_ms)]


def summary_events(
    state: RunState, program: Program, asked: Summarise, reply: ModelReply, *, ms: int, active_ms: int
) -> list[Event]:
    """What the model's summary means. Where it wrote none, the beginnings of the messages serve."""
    text = well_formed(reply.content or "").strip()
    compaction = (
        Compaction(asked.index, bounded(text, program.context.summary_characters))
        if text
        else program.context.compact(state.conversation, state.context, asked.index)
    )
    usage = _usage_of(reply, asked, program.model.price)
    model = well_formed(reply.model) or program.model.name
    return [compacted_event(state, compaction, usage=usage, model=model, ms=ms, active_ms=active_ms)]


def failure_events(
    state: RunState, program: Program, asked: AskModel, error: ModelError, *, jitter: float, ms: int, active_ms: int
) -> list[Event]:
    """What a failed attempt means: a later attempt, or the end. Where no summary can be had the free one serves, and where the
    request was longer than the model can read, the next one is shorter: each time messages leave the window, so it ends.

    Args:
        jitter: A number from 0 to 1 that spreads the attempts of many runs.
    """
    retryable = isinstance(error, ModelUnavailable)
    attempt = state.head.attempts + 1
    retry_ms = _retry_ms(error, attempt, jitter) if retryable and attempt < program.max_attempts else None
    too_long = isinstance(error, ContextExceeded) and not isinstance(asked, Summarise)
    shorter = _halved(state, program, active_ms=active_ms) if too_long else []
    reason = "model_unavailable" if retryable else "model_refused_request"
    said = bounded(redact(well_formed(str(error))), 1000)
    failed = ModelFailed(
        step=asked.asking.step,
        error=said,
        reason=reason,
        usage=asked.reservation.as_usage() if error.billed else Usage(),
        retry_ms=0 if shorter else retry_ms,
        ms=ms,
        active_ms=active_ms,
    )
    if failed.retry_ms is not None:
        return [failed, *shorter]
    if isinstance(asked, Summarise):
        compaction = program.context.compact(state.conversation, state.context, asked.index)
        return [failed, compacted_event(state, compaction, active_ms=active_ms)]
    words = f"no reply from {program.model.name} after {attempt} attempts: " if retryable else f"{program.model.name}: "
    error_words = words + (TOO_LONG if too_long else "") + said
    return [failed, RunFailed(reason=reason, error=error_words, partial=partial(state))]


def lost_call_events(
    state: RunState, reservation: Reservation, *, active_ms: int, error: str = "the call was cut off with its worker"
) -> list[Event]:
    """A model call whose worker was lost, or that was given up, may have been billed: it is charged as reserved."""
    return [
        ModelFailed(
            step=state.head.step + 1,
            error=f"{error}; it may have been billed",
            reason="call_lost",
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
        result: What a terminal tool returned, as JSON can carry it, or why it cannot.
    """
    long = outcome == "ok" and len(content) > program.context.result_preview and call.call.name != program.exit.name
    returned = ToolReturned(
        call=call.key,
        name=call.call.name,
        outcome=outcome,
        content=content,
        shown=program.context.result_preview if long else 0,
        ms=ms,
        active_ms=active_ms,
    )
    if outcome == "ok" and call.call.name == program.exit.name:
        return [returned, completed(result)]
    return [returned]


def _too_large(replied: ModelReplied) -> bool:
    """Whether a reply is beyond what an event may hold. Encoding is the measure, but only where it may matter."""
    size = (
        len(replied.content or "") + len(replied.reasoning or "") + sum(len(call.arguments) for call in replied.calls)
    )
    return size > RESULT_LIMIT // 8 and len(encode(replied)) > RESULT_LIMIT


def read_events(
    state: RunState, program: Program, call: OpenCall, tool: ResultReader, *, active_ms: int
) -> list[Event]:
    """What a call that reads on in a long result means: the next part of it."""
    try:
        content = read_on(tool, call.call.arguments, state.aside, program.context.result_preview)
        outcome: Outcome = "ok"
    except InvalidArguments as problem:
        outcome, content = "invalid", str(problem)
    returned = ToolReturned(call=call.key, name=tool.name, outcome=outcome, content=content, active_ms=active_ms)
    return [returned]


def completed(output: object) -> RunCompleted | RunFailed:
    """The end with a result; one that cannot be kept is a failure that says so."""
    if isinstance(output, UnrenderableResult):
        return RunFailed(reason="result_not_json", error=f"{output}; return what JSON can carry")
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
        if tool is not None and tool.on_unknown == "ask":
            events.append(doubt(open_call, active_ms=active_ms))
            continue
        events += tool_events(program, open_call, "unknown", INTERRUPTED, ms=0, active_ms=active_ms)
        if tool is not None and tool.on_unknown == "fail":
            failing.append(tool.name)
    if failing:
        error = f"nobody knows how the call of {', '.join(failing)} ended (on_unknown='fail')"
        events.append(RunFailed(reason="outcome_unknown", error=error))
    return events, again


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
            if call.mark in (Mark.STARTED, Mark.DOUBTFUL):
                events += tool_events(program, call, "interrupted", INTERRUPTED, ms=0, active_ms=active_ms)
    return [*events, RunCancelled(reason=reason, active_ms=active_ms)]


def _for_validators(reading: Reading, program: Program, step: int) -> Reading:
    """An answer in plain text becomes a call of the exit where validators have to see it: they run where tools run."""
    output = program.output
    if not isinstance(reading, FinalText) or output is None or not output.validators:
        return reading
    try:
        output.of_text(reading.answer)
    except InvalidArguments:
        return reading  # it fits no type, which needs no validator to be said
    handed_in = RawToolCall(program.exit.name, output.exit_arguments(reading.answer))
    return Calls(read_calls([handed_in], step=step, finish_reason=None), reading.text)


def _final(text: str, program: Program, step: int) -> Event:
    """The answer in plain text: the result where it fits, else a reminder of the exit."""
    if program.output is None:
        reminder = f"Call a tool. Once the task is done, call `{program.exit.name}` with the result."
        return ReplyRejected(step=step, reason="unusable_reply", message=reminder)
    try:
        return completed(program.output.to_json(program.output.of_text(text)))
    except UnrenderableResult as error:
        return completed(error)
    except InvalidArguments as problem:
        words = f"That is not the result in the asked form. Give it once more, or call `{program.exit.name}` with it."
        return ReplyRejected(step=step, reason="invalid_output", message=bounded(f"{words}\n{problem}", 4000))


def _distinct(calls: tuple[ToolCall, ...], state: RunState, step: int) -> tuple[ToolCall, ...]:
    """The calls with ids that no earlier call has; some servers count from 0 in every reply."""
    return tuple(
        replace(call, id=f"{call.id}_{step}_{index}") if call.id in state.conversation.call_ids else call
        for index, call in enumerate(calls)
    )


def _usage_of(reply: ModelReply, asked: AskModel, price: Price | None) -> Usage:
    """What a reply is charged. Tokens that the server did not report are estimated, and marked as such: some servers report 0
    for what they did not count. So is a cost of 0, where the price says otherwise: who pays the provider reports none."""
    input_tokens, output_tokens, estimated = reply.input_tokens, reply.output_tokens, 0
    arguments = "".join(str(call.arguments) for call in reply.tool_calls)
    written = (reply.content or "") + (reply.reasoning or "") + arguments
    is_empty = not (written or reply.tool_calls or reply.refusal)
    if not input_tokens:
        input_tokens = asked.reservation.input_tokens
        estimated += input_tokens
    if output_tokens is None or (output_tokens == 0 and not is_empty):
        output_tokens = estimate(written) + 1
        estimated += output_tokens
    cost = reply.cost
    if not cost and price is not None:
        cost = price.cost(input_tokens, output_tokens)
    return Usage(
        model_calls=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost_nanousd=cost or 0,
        unpriced_calls=int(cost is None),
        estimated_tokens=estimated,
    )


def _retry_ms(error: ModelError, attempt: int, jitter: float) -> int:
    """Milliseconds until the next attempt: what the server asked for, and not less than the own wait, which is longer each time
    and spread by half."""
    asked = error.retry_after if isinstance(error, ModelUnavailable) else None
    backoff = _LONG if error.status == RATE_LIMITED else _SHORT
    own = min(backoff.first * backoff.growth ** (attempt - 1), backoff.longest) * (0.5 + jitter / 2)
    return int(min(max(own, (asked or 0.0) * 1000), RETRY_AFTER_CAP_MS))
