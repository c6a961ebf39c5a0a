"""The Redis form of the journal: every commit is one script call, fenced, and safe to send again."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import structlog
from pydantic_core import from_json

from agent.budget import Budget, Reservation, Usage
from agent.conversation import ContextState
from agent.errors import BrokenRecord, LeaseLost, StoreUnavailable
from agent.events import (
    AnswerKind,
    Event,
    RecordWentBack,
    RequestOpened,
    RunBudgetExceeded,
    RunFailed,
    RunReleased,
    encode,
)
from agent.journal import Commit, News
from agent.requests import Answer
from agent.state import Mark
from scheduler.inputs import Entry, NewAsk, PoisonEvent
from scheduler.lifecycle import STATUSES, Status
from scheduler.replies import Behind, Claimed, Committed, InboxEntry, Refused
from scheduler.scripting import ScriptCall
from scheduler.scripts import Scripts
from scheduler.tenants import breach_of
from worker.batches import Batches
from worker.durability import Durability
from worker.failpoints import reach
from worker.leases import Lease

KEPT_SECONDS: Final = 10.0
KEPT_COMMITS: Final = 32
LONGEST_PAUSE: Final = 1.0
RELEASE_DELAY_MS: Final = 500

FRESH_SECONDS: Final = 1.0
"""A lease that was renewed so lately is not renewed by a commit: at many steps a second that is nearly all of them."""

CommitCall = ScriptCall[Committed | Behind | Refused]


class RedisJournal:
    """Commits one activation of one run.

    Attributes:
        committing: A commit is on its way.
        reason: Why the run left `running`, in few words, once it has.

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
        durability: Durability,
        promoted: Callable[[str], None],
    ) -> None:
        self._run = lease.run
        self._lease = lease
        self._scripts = scripts
        self._batches = batches
        self._lease_seconds = scripts.policy.lease_ms / 1000
        self._fresh_seconds = min(FRESH_SECONDS, self._lease_seconds / 8)
        self._rev = claimed.rev
        self._age_ms = claimed.now - claimed.created_at
        self._claimed_at = time.monotonic()
        self._tenant = claimed.tenant
        self._has_session = bool(claimed.session)
        self._day_fields = {metric: json.dumps([claimed.agent, model, claimed.tenant, metric]) for metric in METRICS}
        self._open: Reservation | None = None
        self._stated = False  # the first commit says so itself: what an earlier owner left open is not open any more
        self._hold: list[Entry] = []
        self._step = claimed.step
        self._model_calls = -1  # not known yet
        self._sent: deque[tuple[float, int, CommitCall]] = deque(maxlen=KEPT_COMMITS)
        self._durability = durability
        self._promoted = promoted
        self.committing = False
        self.reason = ""
        self._log = structlog.get_logger("pawl.journal")

    def wall_ms(self) -> int:
        """Milliseconds since the run was submitted, by the clock of Redis."""
        return self._age_ms + int((time.monotonic() - self._claimed_at) * 1000)

    def owns_run(self) -> bool:
        """Whether the last renewal is so fresh that nobody else can own the run."""
        return time.monotonic() < self._lease.deadline

    async def permit(self) -> None:
        """Waits for such a renewal."""
        while not self.owns_run():  # noqa: ASYNC110 - another thread moves the deadline
            await asyncio.sleep(0.05)

    async def secure(self) -> None:
        """Waits for the disk or a replica, where the settings ask for it."""
        await self._durability.wait()

    async def commit(self, commit: Commit) -> News:
        """Writes one commit, however long Redis is away.

        Raises:
            LeaseLost: Another worker owns the run now.
            StoreError: Redis refuses this commit for good, such as one that is too large.
        """
        renews = time.monotonic() - self._lease.renewed > self._fresh_seconds
        call = self._call(commit, renews=renews)
        reach("before_commit")
        committed = await self._send(call, renews=renews)
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
            arrived=arrivals_of(committed.inbox),
            over=breach_of(self._tenant, committed.over) if committed.over else None,
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
            nonce=f"{self._nonce()}/end",  # whether the commit that failed was written or not
            to=to,
            events=[encode(event)],
            delay_ms=RELEASE_DELAY_MS if blame else None,
            reason=reason[:500],
            blame=blame,
        )
        return (await self._send(call, renews=False)).status

    def _nonce(self) -> str:
        return f"{self._lease.token}/{self._rev}"

    def _call(self, commit: Commit, *, renews: bool) -> CommitCall:
        settled = self._settled(commit.charge) if commit.charge else []
        opening = self._opening(commit)
        stepped = commit.checkpoint.step != self._step
        self._step = commit.checkpoint.step
        # People look at the step and at what was charged; the events since the last checkpoint say the rest.
        charged = commit.checkpoint.usage.model_calls != self._model_calls
        self._model_calls = commit.checkpoint.usage.model_calls
        state = commit.checkpoint.to_bytes() if stepped or charged or commit.to != "running" else None
        self.reason = _reason(commit.events[-1]) if commit.events and commit.to != "running" else ""
        return self._scripts.commit(
            self._run,
            token=self._lease.token,
            base=self._rev,
            nonce=self._nonce(),
            to=STATUSES[commit.to],
            renews=renews,
            events=[encode(event) for event in commit.events],
            delay_ms=commit.delay_ms,
            wait=commit.wait,
            reason=self.reason,
            consumed=commit.acknowledged,
            step=commit.checkpoint.step if stepped else None,
            state=state,
            limits=commit.budget.model_dump_json().encode() if commit.budget else None,
            open=opening,
            settled=settled,
            hold=self._hold if opening else (),
            session_state=_session_state(commit.context) if self._has_session else None,
            session_cursor=commit.context.run if commit.context else "",
            marks=commit.marks,
            asks={request.request: _ask(request) for request in commit.requests},
        )

    def _opening(self, commit: Commit) -> bytes | None:
        """The model call that is under way behind the commit: b'' for none, None for the same as before."""
        if self._stated and commit.opening is self._open and commit.charge is None:
            return None
        self._stated, self._open = True, commit.opening
        if commit.opening is None:
            self._hold = []
            return b""
        self._hold = self._of_tenant(commit.opening.as_usage()) if self._tenant else []
        return commit.opening.to_bytes()

    def _settled(self, charge: Usage) -> list[Entry]:
        """What a model call used, for the ledger of the day and for the tenant's.

        A call that an earlier owner left open was charged to the tenant when the run was taken from that owner, but not to
        the day: a day has no limits, so that nothing is held on it.
        """
        today = self._scripts.keys.usage(datetime.now(UTC).date())
        entries = [Entry(today, self._day_fields[metric], amount) for metric, amount in _amounts(charge)]
        return [*entries, *self._of_tenant(charge)] if self._open is not None and self._tenant else entries

    def _of_tenant(self, usage: Usage) -> list[Entry]:
        """What a model call uses, for the tenant's ledger."""
        ledger = self._scripts.keys.tenant(self._tenant)
        entries = [Entry(ledger, metric, amount) for metric, amount in _amounts(usage)]
        return [*entries, Entry(ledger, "total_tokens", usage.total_tokens)]

    async def _send(self, call: CommitCall, *, renews: bool) -> Committed:
        """Sends a commit until it is answered. Only the answer `stale` means that the run is lost."""
        self.committing = True
        pause = 0.05
        try:
            while True:
                sent = time.monotonic()
                try:
                    reply = await self._batches.send(call)
                    if isinstance(reply, Behind):
                        await self._replay(reply.rev)
                        continue
                except StoreUnavailable as error:
                    self._log.warning("commit_waits", run=self._run, error=str(error))
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
                    continue
                if isinstance(reply, Refused):
                    raise LeaseLost(f"{self._run}: {reply.code}")
                if reply.own and renews and reply.code == "done":  # what was done long ago renewed nothing now
                    self._lease.granted(sent, self._lease_seconds)
                return reply
        finally:
            self.committing = False

    async def _replay(self, rev: int) -> None:
        """Redis lost commits of this owner: sends those that it still has once more."""
        now, lost = time.monotonic(), self._rev - rev
        kept = [call for at, after, call in self._sent if after > rev and now - at < KEPT_SECONDS]
        self._log.warning("record_went_back", run=self._run, lost=lost, kept=len(kept))
        if len(kept) < lost:
            self._rev = rev
            await self._end(Status.QUEUED, RecordWentBack(lost=lost), f"Redis lost {lost} commits", None)
            raise LeaseLost(
                f"{self._run}: Redis lost {lost} commits, and {len(kept)} are still here: it was given back"
            )
        for call in kept:
            await self._batches.send(call)


METRICS: Final = ("model_calls", "unpriced_calls", "input_tokens", "output_tokens", "cost_nanousd")


def _amounts(usage: Usage) -> list[tuple[str, int]]:
    return [(metric, amount) for metric in METRICS if (amount := getattr(usage, metric))]


def arrivals_of(inbox: tuple[InboxEntry, ...]) -> tuple[Budget | Answer, ...]:
    """What came into the inbox, in order, in the engine's words.

    Raises:
        BrokenRecord: It cannot be read.
    """
    try:
        return tuple(_arrival(entry) for entry in inbox)
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenRecord("the inbox cannot be read") from error


def _arrival(entry: InboxEntry) -> Budget | Answer:
    if entry.kind == "top_up":
        return Budget.model_validate_json(entry.body)
    body: dict[str, Any] = from_json(entry.body or b"{}")
    kind: AnswerKind = cast("AnswerKind", entry.kind)
    return Answer(entry.ask, kind, body.get("text") or body.get("reason") or "", body.get("arguments"))


def _session_state(context: ContextState | None) -> bytes | None:
    return None if context is None else context.to_bytes()


def _ask(request: RequestOpened) -> NewAsk:
    kind = "reply" if request.kind == "clarification" else "approval"
    return NewAsk(kind, request.deadline_ms, request.question)


def marks_of(calls: Mapping[str, str]) -> dict[str, Mark]:
    """The marks of a claimed run's calls: whatever was started by an earlier activation is in doubt."""
    return {call: Mark.DOUBTFUL if mark.startswith("started") else Mark.PLANNED for call, mark in calls.items()}


def _reason(event: Event) -> str:
    """Why a run left `running`, in few words, for the record."""
    match event:
        case RunFailed():
            return f"{event.reason}: {event.error}"[:500]
        case RunBudgetExceeded():
            return f"{event.limit}: used {event.used} of {event.allowed}"
        case RunReleased():
            return event.why
        case _:
            return event.type.removeprefix("run_")
