"""What a run came to: the same shape for a run in process and for a durable one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agent.budget import Usage
from agent.errors import BudgetExceeded, RunCancelled, RunError, RunFailed
from agent.events import Event, Recorded
from agent.events import RunBudgetExceeded as BudgetEnd
from agent.events import RunCancelled as CancelEnd
from agent.events import RunFailed as FailureEnd

Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class RunResult(Generic[Output]):
    """A completed run.

    Attributes:
        output: The result, of the type of the agent's output schema.
        steps: Model replies that it took.
        events: All that happened, in order.
    """

    run_id: str
    output: Output
    usage: Usage
    steps: int
    events: Sequence[Recorded] = field(default=(), repr=False)


def error_of(event: Event, run_id: str, *, stored: bool = True) -> RunError | None:
    """The error that a run's last event means; None where it completed, or has not ended.

    Args:
        stored: Whether the run can go on later; one that lived in this process only cannot.
    """
    match event:
        case FailureEnd(reason=reason, error=error, partial=partial):
            return RunFailed(f"run {run_id} failed ({reason}): {error}", run_id=run_id, reason=reason, partial=partial)
        case BudgetEnd(limit=limit, used=used, allowed=allowed, partial=partial):
            advice = "raise the limit and resume it" if stored else "raise the limit and run it again"
            words = f"run {run_id} reached {limit} (used {used} of {allowed}): {advice}"
            return BudgetExceeded(words, run_id=run_id, limit=limit, partial=partial)
        case CancelEnd(reason=reason):
            return RunCancelled(f"run {run_id} was cancelled ({reason})", run_id=run_id)
        case _:
            return None
