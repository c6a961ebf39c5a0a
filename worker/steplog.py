"""One structured log line for each step of a run."""

from typing import Any, Final

import structlog

from agent.budget import NANO
from agent.report import StepReport
from agent.text import bounded
from worker.claims import Claim

TEXT_CHARACTERS: Final = 500

_log: Final[Any] = structlog.get_logger("pawl.steps")


class StepLog:
    """Writes the steps of one activation.

    Args:
        texts: Also what the model wrote and what the tools answered, the beginning of each.
    """

    def __init__(self, claim: Claim, worker: str, *, texts: bool = False) -> None:
        self._texts = texts
        claimed = claim.claimed
        self._log = _log.bind(
            run=claim.run,
            session=claimed.session,
            tenant=claimed.tenant,
            agent=claimed.agent,
            worker=worker,
            token=claimed.token,
        )

    def step(self, report: StepReport) -> None:
        """Writes the line of a step that was committed."""
        log = self._log
        if self._texts:
            answers = [bounded(tool.content, TEXT_CHARACTERS) for tool in report.tools]
            log = log.bind(text=bounded(report.text or "", TEXT_CHARACTERS), answers=answers)
        log.info(
            "step",
            step=report.step,
            attempt=report.attempt,
            outcome=report.outcome,
            model=report.model,
            finish_reason=report.finish_reason,
            tools=[f"{tool.name}:{tool.outcome}:{tool.ms}ms" for tool in report.tools],
            input_tokens=report.input_tokens,
            output_tokens=report.output_tokens,
            cost_usd=None if report.cost_nanousd is None else report.cost_nanousd / NANO,
            budget_left=report.budget_left,
            queued_ms=report.queued_ms,
            model_ms=report.model_ms,
            tools_ms=report.tools_ms,
            commit_ms=report.commit_ms,
            error=report.error,
        )
