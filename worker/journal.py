"""The Redis form of the journal: every commit is one script call, fenced, and safe to send again."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import structlog

from agent.budget import Budget, Reservation, Usage
from agent.errors import LeaseLost, StoreUnavailable
from agent.events import Event, RunFailed, RunReleased, encode
from agent.journal import Commit, News
from agent.state import Mark
from scheduler.lifecycle import Status
from scheduler.replies import Behind, Claimed, Committed, InboxEntry, Refused
from scheduler.scripting import ScriptCall
from scheduler.scripts import Entry, PoisonEvent, Scripts
from worker.batches import Batches
from worker.failpoints import reach
from worker.leases import Lease

KEPT_SECONDS: Final = 10.0
KEPT_COMMITS: Final = 32
LONGEST_PAUSE: Final = 1.0
RELEASE_DELAY_MS: Final = 500

CommitCall = ScriptCall[Committed | Behind | Refused]


class RedisJournal:
    """Commits one activation of one run.

    Args:
        promoted: Called with the session's next run, where a commit ended this one, so that it is rung at once.
    """

    def __init__(
        self,
        claimed: Claimed,
        lease: Lease,
        scripts: Scripts,
        batches: Batches,
        *,
        model: str,
        promoted: Callable[[str], None],
    ) -> None:
        self._run = lease.run
        self._lease = lease
        self._scripts = scripts
        self._batches = batches
        self._lease_seconds = scripts.policy.lease_ms / 1000
        self._rev = claimed.rev
        self._age_ms = claimed.now - claimed.created_at
        self._claimed_at = time.monotonic()
        self._tenant = claimed.tenant
        self._ledger_fields = {metric: json.dumps([claimed.agent, model, claimed.tenant, metric]) for metric in METRICS}
        self._open: Reservation | None = None
        self._hold: list[Entry] = []
        self._step = claimed.step
        self._sent: deque[tuple[float, int, CommitCall]] = deque(maxlen=KEPT_COMMITS)
        self._promoted = promoted
        self._log = structlog.get_logger("pawl.journal")

    def wall_ms(self) -> int:
        """Milliseconds since the run was submitted, by the clock of Redis."""
        return self._age_ms + int((time.monotonic() - self._claimed_at) * 1000)

    async def permit(self) -> None:
        """Waits until a renewal is so fresh that nobody else can own the run."""
        while time.monotonic() >= self._lease.deadline:  # noqa: ASYNC110 - another thread moves the deadline
            await asyncio.sleep(0.05)

    async def commit(self, commit: Commit) -> News:
        """Writes one commit, however long Redis is away.

        Raises:
            LeaseLost: Another worker owns the run now.
                StoreError: Redis refuses this commit for good, such as one that is too large.
        """
        call = self._call(commit)
        reach("before_commit")
        committed = await self._send(call)
        reach("after_commit")
        if commit.to == "running" and not committed.own:  # sent again, done long ago, and taken over since
            raise LeaseLost(f"{self._run}: committed, and taken over since")
        self._rev += 1
        self._sent.append((time.monotonic(), self._rev, call))
        if committed.promoted:
            self._promoted(committed.promoted)
        if committed.over:
            self._open, self._hold = None, []
        return News(
            cancel=committed.cancel,
            added=budgets_of(committed.inbox),
            over=f"the limit of tenant {self._tenant}" if committed.over else "",
            stayed=committed.own and commit.to != "running",
        )

    async def release(self, words: str) -> Status:
        """Gives the run back after a failure of the worker's or the agent's own code: it counts like a crash.

        Returns:
            Where the run stands now: queued, or failed where this was one crash too many.
        """
        poison = RunFailed(reason="agent_error", error=words)
        return await self._end(
            Status.QUEUED,
            RunReleased(why="failure"),
            words,
            PoisonEvent(encode(poison), f"agent_error: {words}"[:500]),
        )

    async def fail(self, event: RunFailed) -> Status:
        """Ends a run that cannot be driven at all, such as one whose record cannot be read."""
        return await self._end(Status.FAILED, event, f"{event.reason}: {event.error}", None)

    async def _end(self, to: Status, event: Event, reason: str, blame: PoisonEvent | None) -> Status:
        call = self._scripts.commit(
            self._run,
            token=self._lease.token,
            base=self._rev,
            nonce=self._nonce(),
            to=to,
            events=[encode(event)],
            delay_ms=RELEASE_DELAY_MS if blame else None,
            reason=reason[:500],
            blame=blame,
        )
        return (await self._send(call)).status

    def _nonce(self) -> str:
        return f"{self._lease.token}/{self._rev}"

    def _call(self, commit: Commit) -> CommitCall:
        settled = self._entries(commit.charge) if commit.charge else []
        opening = self._opening(commit)
        stepped = commit.checkpoint.step != self._step
        self._step = commit.checkpoint.step
        return self._scripts.commit(
            self._run,
            token=self._lease.token,
            base=self._rev,
            nonce=self._nonce(),
            to=Status(commit.to),
            events=[encode(event) for event in commit.events],
            delay_ms=commit.delay_ms,
            wait=commit.wait,
            reason=_reason(commit.events[-1]) if commit.events and commit.to != "running" else "",
            consumed=commit.acknowledged,
            step=commit.checkpoint.step if stepped else None,
            state=commit.checkpoint.to_bytes(),
            limits=commit.budget.model_dump_json().encode() if commit.budget else None,
            open=opening,
            settled=settled,
            hold=self._hold if opening else (),
            marks={call: None if mark is None else mark.value for call, mark in commit.marks.items()},
        )

    def _opening(self, commit: Commit) -> bytes | None:
        """The model call that is under way behind the commit: b'' for none, None for the same as before."""
        if commit.opening is self._open and commit.charge is None:
            return None
        self._open = commit.opening
        if commit.opening is None:
            self._hold = []
            return b""
        self._hold = self._entries(commit.opening.as_usage())
        return commit.opening.model_dump_json(exclude_defaults=True).encode()

    def _entries(self, usage: Usage) -> list[Entry]:
        """The amounts of a model call, for the ledger of the day and for the tenant's."""
        today = self._scripts.keys.usage(datetime.now(UTC).date())
        amounts = {metric: getattr(usage, metric) for metric in METRICS}
        entries = [Entry(today, self._ledger_fields[metric], amount) for metric, amount in amounts.items() if amount]
        if self._tenant:
            ledger = self._scripts.keys.tenant(self._tenant)
            entries += [Entry(ledger, metric, amount) for metric, amount in amounts.items() if amount]
            entries.append(Entry(ledger, "total_tokens", usage.total_tokens))
        return entries

    async def _send(self, call: CommitCall) -> Committed:
        """Sends a commit until it is answered. Only the answer `stale` means that the run is lost."""
        pause = 0.05
        while True:
            sent = time.monotonic()
            try:
                reply = await self._batches.send(call)
            except StoreUnavailable as error:
                self._log.warning("commit_waits", run=self._run, error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            match reply:
                case Committed():
                    if reply.own:
                        self._lease.granted(sent, self._lease_seconds)
                    return reply
                case Behind(rev=rev):
                    await self._replay(rev)
                case Refused(code=code):
                    raise LeaseLost(f"{self._run}: {code}")

    async def _replay(self, rev: int) -> None:
        """Redis lost commits of this owner: sends those that it still has once more."""
        now = time.monotonic()
        kept = [call for at, after, call in self._sent if after > rev and now - at < KEPT_SECONDS]
        self._log.warning("record_went_back", run=self._run, lost=self._rev - rev, kept=len(kept))
        if len(kept) < self._rev - rev:
            raise LeaseLost(f"{self._run}: Redis lost {self._rev - rev} commits, of which {len(kept)} are still here")
        for call in kept:
            await self._batches.send(call)


METRICS: Final = ("model_calls", "input_tokens", "output_tokens", "cost_nanousd")


def budgets_of(inbox: tuple[InboxEntry, ...]) -> tuple[Budget, ...]:
    """The limits that were added meanwhile."""
    return tuple(Budget.model_validate_json(entry.body) for entry in inbox if entry.kind == "top_up")


def marks_of(calls: Mapping[str, str]) -> dict[str, Mark]:
    """The marks of a claimed run's calls: whatever was started by an earlier activation is in doubt."""
    return {call: Mark.DOUBTFUL if mark.startswith("started") else Mark.PLANNED for call, mark in calls.items()}


def _reason(event: Event) -> str:
    """Why a run left `running`, in few words, for the record."""
    match event:
        case RunFailed():
            return f"{event.reason}: {event.error}"[:500]
        case RunReleased():
            return event.why
        case _:
            return event.type.removeprefix("run_")
