"""The step machine: what to do next. PURE: no await, no clock, no I/O.

A step is one reply of the model and the tool calls that it asks for. `decide` looks at the state and says what comes next;
`agent.outcomes` says what an outcome means, as events; `RunState.apply` folds them. Whoever performs (`agent.driver`) commits
the events of an outcome together with the announcement of what is decided next, and only then performs it.
"""

from agent.aside import ResultReader
from agent.budget import Breach, Elapsed, Reservation, in_words, left, low, out_of_time, reserve
from agent.dialects.base import Asking
from agent.events import Event, RunFailed
from agent.intents import AskModel, AwaitPerson, Ended, Happen, Hold, Intent, StartTools, Summarise
from agent.outcomes import compacted_event, exceeded, partial, read_events
from agent.program import Program
from agent.requests import Note, needs_person, noted, opening, waits_for
from agent.state import Exchange, Mark, OpenCall, RunState
from agent.tokens import estimate


def decide(state: RunState, program: Program, run_id: str, elapsed: Elapsed) -> Intent:
    """What to do next. Asked again with the same state it gives the same answer."""
    head = state.head
    if head.ended:
        return Ended(head.ended)
    if state.exchange is not None:
        return _work_on(state, state.exchange, program, elapsed)
    if head.unusable >= program.max_unusable:
        reason = head.unusable_reason or "unusable_reply"
        error = f"{head.unusable} replies in a row could not be used (the last one: {reason})"
        return Happen((RunFailed(reason=reason, error=error, partial=partial(state)),))
    if head.budget.max_cost_usd is not None and program.model.price is None:
        name = program.model.name
        error = f"max_cost_usd is set, but no price is known for {name}; give it one, or resume without max_cost_usd"
        return Happen((RunFailed(reason="unknown_price", error=error, partial=partial(state)),))
    window = program.context.measured_in_estimates(state.correction)
    index = window.due(state.conversation, state.context, program.overhead)
    if index is not None:
        return _compaction(state, program, run_id, elapsed, index)
    request_tokens = window.tokens(state.conversation, state.context, program.overhead)
    reserved = reserve(
        head.budget,
        head.usage,
        head.step,
        elapsed,
        input_tokens=corrected(request_tokens, state),
        price=program.model.price,
        wanted_output=program.max_tokens,
    )
    if isinstance(reserved, Breach):
        return Happen((exceeded(state, reserved),))
    return AskModel(_asking(state, program, run_id, elapsed, reserved), reserved, request_tokens)


def budget_note(state: RunState, elapsed: Elapsed) -> str | None:
    """A word to the model on what is left, once a limit gets low."""
    rest = low(state.head.budget, left(state.head.budget, state.head.usage, state.head.step, elapsed))
    if not rest:
        return None
    words = ", ".join(
        f"{in_words(value)} {name.removeprefix('max_').replace('_', ' ')}" for name, value in rest.items()
    )
    return f"[Budget left: {words}. Come to an end before it is used up.]"


def _compaction(state: RunState, program: Program, run_id: str, elapsed: Elapsed, index: int) -> Summarise | Happen:
    """How the messages before `index` leave the window. The last answer is not spent on a summary."""
    if program.context.strategy == "llm_summary":
        output = program.context.summary_tokens
        room = program.context.max_tokens - output
        tokens = min(state.conversation.window_tokens + estimate(state.context.summary), room)
        reserved = reserve(
            state.head.budget,
            state.head.usage,
            state.head.step,
            elapsed,
            input_tokens=corrected(tokens, state),
            price=program.model.price,
            wanted_output=output,
        )
        if isinstance(reserved, Reservation) and not reserved.last:
            return Summarise(_asking(state, program, run_id, elapsed, reserved), reserved, tokens, index)
    compacted = program.context.compact(state.conversation, state.context, index)
    return Happen((compacted_event(state, compacted, active_ms=elapsed.active_ms),))


def _asking(state: RunState, program: Program, run_id: str, elapsed: Elapsed, reserved: Reservation) -> Asking:
    return Asking(
        run_id=run_id,
        step=state.head.step + 1,
        attempt=state.head.attempts + 1,
        max_tokens=reserved.output_tokens,
        timeout=_time_left(program.model_timeout, state, elapsed),
        last=reserved.last,
        reminded=state.head.unusable > 0,
        note=budget_note(state, elapsed),
    )


def _work_on(state: RunState, exchange: Exchange, program: Program, elapsed: Elapsed) -> Intent:
    """The next move within an exchange: ask a person, start tools, or wait; the end, where no time is left for that."""
    over = out_of_time(state.head.budget, elapsed)
    if over and not any(open_call.mark is Mark.STARTED for open_call in exchange.unanswered):
        return Happen((exceeded(state, over),))
    startable = _startable(exchange, program)
    events: list[Event] = []
    for open_call in startable:
        tool = program.registry.get_tool(open_call.call.name)
        if isinstance(tool, ResultReader):
            events += read_events(state, program, open_call, tool, active_ms=elapsed.active_ms)
        elif isinstance(tool, Note):
            events += noted(open_call, tool, active_ms=elapsed.active_ms)
        elif tool is not None and needs_person(open_call, tool):
            events.append(opening(open_call, tool, active_ms=elapsed.active_ms))
    if events:
        return Happen(tuple(events))
    if startable:
        return StartTools(startable)
    wait = waits_for(exchange)
    return AwaitPerson(wait) if wait else Hold()


def _startable(exchange: Exchange, program: Program) -> tuple[OpenCall, ...]:
    """The calls that may start now: in order, at most `parallel` at once, one alone where its tool says so, the exit last."""
    unanswered = list(exchange.unanswered)
    if len(unanswered) == 1:
        return tuple(unanswered) if unanswered[0].mark is Mark.PLANNED else ()
    running = [open_call for open_call in unanswered if open_call.mark is Mark.STARTED]
    waiting = [open_call for open_call in unanswered if open_call.mark is Mark.PLANNED]
    others = [open_call for open_call in waiting if open_call.call.name != program.exit.name]
    only_exits = all(open_call.call.name == program.exit.name for open_call in unanswered)
    chosen: list[OpenCall] = []
    for open_call in waiting[:1] if only_exits else others:
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


def corrected(request_tokens: int, state: RunState) -> int:
    """The estimated size of a request, corrected by how the last estimate compared with what the server reported."""
    return max(1, int(request_tokens * state.correction))


def _time_left(timeout: float, state: RunState, elapsed: Elapsed) -> float:
    """Seconds that an attempt may take: the agent's timeout, or what the time limits leave."""
    budget = state.head.budget
    limits = [timeout]
    if budget.max_active_seconds is not None:
        limits.append(budget.max_active_seconds - elapsed.active_ms / 1000)
    if budget.max_wall_seconds is not None:
        limits.append(budget.max_wall_seconds - elapsed.wall_ms / 1000)
    return max(min(limits), 0.001)
