"""PURE. One event as one line for people."""

from __future__ import annotations

import json

from agent.budget import NANO
from agent.events import (
    BudgetChanged,
    ContextCompacted,
    Event,
    ModelFailed,
    ModelReplied,
    Recorded,
    RecordWentBack,
    Remembered,
    ReplyRejected,
    RequestAnswered,
    RequestOpened,
    RunBudgetExceeded,
    RunCancelled,
    RunClaimed,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunReleased,
    RunRequeued,
    RunResumed,
    ToolReturned,
    UnknownEvent,
)
from scheduler.client.run_info import moment
from worker.cli.text import lasting, one_line

ANSWERS = {
    "reply": "was answered",
    "approve": "was allowed",
    "reject": "was not allowed",
    "expired": "got no answer in time",
}


def event_line(recorded: Recorded) -> str:
    """Number, time and what happened."""
    return f"{recorded.seq:>5}  {moment(recorded.at):%H:%M:%S}  {happened(recorded.event)}"


def happened(event: Event) -> str:
    """What an event says, in few words."""
    match event:
        case RunCreated():
            return f"submitted to {one_line(event.agent)}: {one_line(event.task)}"
        case RunClaimed():
            return f"taken by {one_line(event.worker)}"
        case ModelReplied():
            return _reply(event)
        case ModelFailed():
            again = "" if event.retry_ms is None else f"; again in {lasting(event.retry_ms / 1000)}"
            return f"step {event.step}: the model failed: {one_line(event.error)}{again}"
        case ReplyRejected():
            return f"step {event.step}: the reply cannot be used: {one_line(event.message)}"
        case ToolReturned():
            took = lasting(event.ms / 1000)
            return f"  {event.call} {one_line(event.name)}: {event.outcome} in {took}: {one_line(event.content)}"
        case RequestOpened():
            wanted = "an answer" if event.kind == "clarification" else "an approval"
            return f"  {event.request} asks for {wanted}: {one_line(event.question)}"
        case RequestAnswered():
            said = f": {one_line(event.text)}" if event.text else ""
            changed = f", with {one_line(event.arguments)}" if event.arguments is not None else ""
            return f"  {event.request} {ANSWERS[event.answer]}{changed}{said}"
        case Remembered():
            return f"  remembered: {one_line(event.text)}"
        case ContextCompacted():
            cost = f" by {one_line(event.model)}" if event.model else ""
            return f"older messages are summarised{cost}: {one_line(event.summary)}"
        case BudgetChanged():
            return f"budget: {event.budget.model_dump_json(exclude_none=True)}"
        case RunReleased():
            return f"given back ({event.why})"
        case RunRequeued():
            return f"queued again: {one_line(event.why)}"
        case RecordWentBack():
            return f"Redis lost {event.lost} commits"
        case RunResumed():
            return "resumed"
        case _:
            return _end(event)


def _reply(event: ModelReplied) -> str:
    said = ", ".join(f"{one_line(call.name)}({one_line(call.arguments, 40)})" for call in event.calls)
    usage = event.usage
    cost = f", ${usage.cost_nanousd / NANO:.6f}" if usage.cost_nanousd else ""
    figures = f"{usage.input_tokens} + {usage.output_tokens} tokens{cost}, {lasting(event.ms / 1000)}"
    return f"step {event.step}: {said or one_line(event.content or '(nothing)')}  [{figures}]"


def _end(event: Event) -> str:
    match event:
        case RunCompleted():
            return f"completed: {one_line(json.dumps(event.output, ensure_ascii=False))}"
        case RunFailed():
            return f"failed ({event.reason}): {one_line(event.error, 200)}"
        case RunCancelled():
            return f"cancelled ({one_line(event.reason)})"
        case RunBudgetExceeded():
            return f"budget exceeded: {event.limit} (used {event.used} of {event.allowed})"
        case UnknownEvent():
            return f"{one_line(event.kind)} (of a newer version)"
        case _:
            return event.type
