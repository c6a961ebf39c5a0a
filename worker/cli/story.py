"""PURE. A run's events told as steps, and who had the run when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from agent.budget import Usage
from agent.events import (
    ModelFailed,
    ModelReplied,
    Recorded,
    ReplyRejected,
    RequestAnswered,
    RunBudgetExceeded,
    RunCancelled,
    RunClaimed,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunReleased,
    RunRequeued,
    ToolReturned,
)
from scheduler.client.run_info import moment


@dataclass(slots=True)
class CallTold:
    """A tool call: `outcome` is '' until it is answered; `ms` are milliseconds. `is_changed`: a person gave its arguments."""

    key: str
    name: str
    arguments: str
    is_changed: bool = False
    outcome: str = ""
    content: str = ""
    ms: int = 0


@dataclass(slots=True)
class StepTold:
    """One reply of the model with its calls, and the attempts that failed before it."""

    step: int
    model: str = ""
    content: str = ""
    usage: Usage = field(default_factory=Usage)
    ms: int = 0
    calls: list[CallTold] = field(default_factory=list[CallTold])
    failures: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class HolderTold:
    """A worker that had the run. `until` is None while it has it; `why` it has it no more."""

    worker: str
    since: datetime
    until: datetime | None = None
    why: str = ""


@dataclass(slots=True)
class Story:
    """All that happened."""

    task: str = ""
    steps: list[StepTold] = field(default_factory=list[StepTold])
    holders: list[HolderTold] = field(default_factory=list[HolderTold])


def story_of(events: Iterable[Recorded]) -> Story:
    """Tells a run from its events."""
    story = Story()
    for recorded in events:
        match recorded.event:
            case RunCreated() as created:
                story.task = created.task
            case RunClaimed() as claimed:
                story.holders.append(HolderTold(claimed.worker, moment(recorded.at)))
            case RunReleased(why=why) | RunRequeued(why=why):
                _leaves(story, recorded, why)
            case ModelReplied() as reply:
                _told(story, reply)
            case ModelFailed(step=step, error=error):
                _step(story, step).failures.append(error)
            case ReplyRejected(step=step, message=message):
                _step(story, step).failures.append(message)
            case RequestAnswered(arguments=arguments) as changed if arguments is not None:
                _changed(story, changed.request, arguments)
            case ToolReturned() as answer:
                _answered(story, answer)
            case RunCompleted() | RunFailed() | RunCancelled() | RunBudgetExceeded() as end:
                _leaves(story, recorded, end.type.removeprefix("run_"))
            case _:
                pass
    return story


def _leaves(story: Story, recorded: Recorded, why: str) -> None:
    if story.holders and story.holders[-1].until is None:
        story.holders[-1].until = moment(recorded.at)
        story.holders[-1].why = why


def _told(story: Story, reply: ModelReplied) -> None:
    step = _step(story, reply.step)
    step.model, step.content, step.usage, step.ms = reply.model, reply.content or "", reply.usage, reply.ms
    step.calls = [
        CallTold(f"{reply.step}.{index}", call.name, call.arguments) for index, call in enumerate(reply.calls)
    ]


def _changed(story: Story, key: str, arguments: str) -> None:
    """A person allowed a call with other arguments: those were executed."""
    call = _call(story, key)
    if call is not None:
        call.arguments, call.is_changed = arguments, True


def _answered(story: Story, answer: ToolReturned) -> None:
    call = _call(story, answer.call)
    if call is not None:
        call.outcome, call.content, call.ms = answer.outcome, answer.content, answer.ms


def _call(story: Story, key: str) -> CallTold | None:
    return next((call for step in reversed(story.steps) for call in step.calls if call.key == key), None)


def _step(story: Story, number: int) -> StepTold:
    if not story.steps or story.steps[-1].step != number:
        story.steps.append(StepTold(number))
    return story.steps[-1]
