"""What one step has to tell: the canonical line of the log, as a value, gathered from what was committed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.budget import Amount
from agent.events import (
    Event,
    ModelFailed,
    ModelReplied,
    ReplyRejected,
    RunBudgetExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolReturned,
)
from agent.values import value


@value
class ToolReport:
    """One tool call of a step; `ms` are milliseconds, `content` is what the model reads."""

    name: str
    outcome: str
    ms: int
    content: str = ""


@dataclass(slots=True)
class StepReport:
    """One step, or one failed attempt at it.

    Attributes:
        outcome: `tools` (the loop goes on), `retry`, `rejected`, or the status in which the run ended.
        cost_nanousd: None where the price is not known.
        queued_ms: Milliseconds from being due to being claimed; only at an activation's first step.
        model_ms, tools_ms, commit_ms: Milliseconds that went into each.
        text: What the model wrote beside its calls. For logs that were asked to hold texts.
        budget_left: What is left of every limit that the run has, by the limit's name.
    """

    step: int
    attempt: int = 1
    outcome: str = "tools"
    model: str = ""
    finish_reason: str | None = None
    tools: list[ToolReport] = field(default_factory=list[ToolReport])
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nanousd: int | None = 0
    queued_ms: int = 0
    model_ms: int = 0
    tools_ms: int = 0
    commit_ms: int = 0
    budget_left: Mapping[str, Amount] = field(default_factory=dict[str, Amount])
    error: str | None = None
    text: str | None = None


class Observer(Protocol):
    """Hears of every step, once it is committed. Must neither block nor raise."""

    def step(self, report: StepReport) -> None:
        """A step, or an attempt at it, is over."""
        ...


class SilentObserver:
    """Hears and says nothing."""

    def step(self, report: StepReport) -> None:
        """Says nothing."""


class StepReporter:
    """Gathers the events of a step into its report, and hands it on when the step is over."""

    def __init__(self, observer: Observer, queued_ms: int) -> None:
        self._observer = observer
        self._queued_ms = queued_ms
        self._current: StepReport | None = None
        self._replied_at = 0
        self._attempt = 1

    def committed(
        self, events: Sequence[Event], *, exchange_open: bool, ms: int, budget_left: Callable[[], Mapping[str, Amount]]
    ) -> None:
        """These events were committed; the commit took `ms` milliseconds."""
        for event in events:
            self._hear(event)
        report = self._current
        if report is None:
            return
        report.commit_ms += ms
        if not exchange_open or report.outcome != "tools":
            report.queued_ms, self._queued_ms = self._queued_ms, 0
            report.budget_left = budget_left()
            self._current = None
            self._observer.step(report)

    def _hear(self, event: Event) -> None:
        match event:
            case ModelReplied():
                self._replied_at = event.active_ms
                usage = event.usage
                self._current = StepReport(
                    step=event.step,
                    attempt=self._attempt,
                    model=event.model,
                    finish_reason=event.finish_reason,
                    text=event.content,
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    cost_nanousd=None if usage.unpriced_calls else usage.cost_nanousd,
                    model_ms=event.ms,
                )
                self._attempt = 1
            case ToolReturned():
                report = self._report(int(event.call.partition(".")[0]))
                report.tools.append(ToolReport(event.name, event.outcome, event.ms, event.content))
                report.tools_ms = max(event.active_ms - self._replied_at, 0) if self._replied_at else event.ms
            case ModelFailed():
                report = self._report(event.step)
                report.outcome, report.error, report.model_ms = "retry", event.error, event.ms
                report.input_tokens, report.output_tokens = event.usage.input_tokens, event.usage.output_tokens
                report.cost_nanousd = None if event.usage.unpriced_calls else event.usage.cost_nanousd
                report.attempt = self._attempt
                self._attempt += 1
            case ReplyRejected():
                self._report(event.step).outcome = "rejected"
                self._report(event.step).error = event.reason
            case RunCompleted():
                self._end("completed")
            case RunCancelled():
                self._end("cancelled")
            case RunFailed():
                self._end("failed", event.error)
            case RunBudgetExceeded():
                self._end("budget_exceeded", event.limit)
            case _:
                pass

    def _report(self, step: int) -> StepReport:
        """The step's report; a fresh one where an earlier activation began the step."""
        if self._current is None:
            self._current = StepReport(step=step)
        return self._current

    def _end(self, status: str, error: str | None = None) -> None:
        if self._current is not None:
            self._current.outcome, self._current.error = status, error
