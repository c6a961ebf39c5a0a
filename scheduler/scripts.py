"""One typed method for each Lua file. A method sends nothing: it returns a `ScriptCall`.

Every refusal happens inside the script, but for sizes, which are refused here before anything is sent (TooLarge).
Times are milliseconds; bodies are opaque bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic_core import to_json

from agent.errors import ConfigurationError, TooLarge
from scheduler.inputs import ASK_OF, Entry, NewAsk, NewRun, PoisonEvent
from scheduler.keys import Keys, Life, name, scoped
from scheduler.lifecycle import COMMITTED, CancelReason, Status
from scheduler.policy import Policy
from scheduler.replies import (
    Behind,
    Claimed,
    Committed,
    Created,
    Deferred,
    Outcome,
    Refused,
    Renewed,
    Swept,
    read_claimed,
    read_committed,
    read_created,
    read_deferred,
    read_outcome,
    read_refused,
    read_renewed,
    read_swept,
)
from scheduler.scripting import Library, ScriptCall, read_library
from scheduler.sessions import OnBusy
from scheduler.wire import Argument

MAX_RENEWALS = 200


class Scripts:
    """Calls of one deployment's scripts."""

    def __init__(self, keys: Keys | None = None, policy: Policy | None = None, library: Library | None = None) -> None:
        self.keys = keys or Keys()
        self.policy = policy or Policy()
        self._scripts = library or read_library()
        self._lives = (self.policy.run_retention_ms, self.policy.session_retention_ms)

    def create(self, new: NewRun) -> ScriptCall[Created | Refused]:
        """Accepts a run, with its record, its first event and its place in its session."""
        self.policy.check_task(len(new.event))
        fields: list[Argument] = ["agent", name("agent", new.agent), "queue", name("queue", new.queue)]
        if new.tenant:
            fields += ("tenant", name("tenant", new.tenant))
        if new.session:
            fields += ("session", scoped(new.tenant, name("session", new.session)))
        if new.idempotency_key:
            fields += ("idem", scoped(new.tenant, name("idempotency key", new.idempotency_key)))
        fields += ("limits", new.limits, "metadata", new.metadata)
        arguments: list[Argument] = [
            new.id, *self._lives, new.digest, new.on_busy.value, *_moment(new.at_ms, new.delay_ms), new.event,
            new.overtaken_event, self.policy.max_behind, len(fields), *fields,
        ]  # fmt: skip
        return ScriptCall(self._scripts["create"], (self.keys.run(new.id),), arguments, read_created)

    def claim(
        self,
        run: str,
        *,
        activation: str,
        worker: str,
        newest_schema: int,
        event: bytes,
        agents: Sequence[str] = (),
        room_for_one_crash: bool = True,
        room_for_more: bool = True,
    ) -> ScriptCall[Claimed | Refused]:
        """Makes `worker` the owner of a queued run. `agents`: those that it has; none given: any."""
        arguments: list[Argument] = [
            run, *self._lives, activation, worker, newest_schema, int(room_for_one_crash), int(room_for_more),
            self.policy.lease_ms, event, len(agents), *agents,
        ]  # fmt: skip
        return ScriptCall(self._scripts["claim"], (self.keys.run(run),), arguments, read_claimed)

    def commit(
        self,
        run: str,
        *,
        token: str,
        base: int,
        nonce: str,
        to: Status,
        renews: bool = True,
        events: Sequence[bytes] = (),
        at_ms: int | None = None,
        delay_ms: int | None = None,
        wait: str = "",
        reason: str = "",
        consumed: int = 0,
        step: int | None = None,
        state: bytes | None = None,
        limits: bytes | None = None,
        open: bytes | None = None,
        settled: Sequence[Entry] = (),
        hold: Sequence[Entry] = (),
        marks: Mapping[str, str | None] | None = None,
        asks: Mapping[str, NewAsk | None] | None = None,
        blame: PoisonEvent | None = None,
        session_state: bytes | None = None,
        session_cursor: str = "",
    ) -> ScriptCall[Committed | Behind | Refused]:
        """Carries what happened and announces what comes next.

        Args:
            base: The `rev` that it builds on; `nonce` is made once for each commit.
            to: The status to come; a run with news stays running instead of waiting or budget_exceeded.
            renews: Whether it renews the lease as well.
            at_ms, delay_ms: When a queued run is due or a wait is over.
            consumed: How many inbox entries, of those last seen, are now events.
            open: The model call under way: None: as it is; empty: none, its hold is dropped; else a new one with `hold`.
            settled: What was used.
            marks: Tool calls that are `planned`, `started` or `asked`; None: answered.
            asks: Requests that are opened; None: closed.
            session_state: What the session shall know when this run ends, if it is not rolled back; with its cursor, the
                first run that its memory is still built from.
            blame: Set if this release counts as a crash.
        """
        policy = self.policy
        for body in events:
            policy.check_event(len(body))
        if state is not None:
            policy.check_state(len(state))
        if to is not Status.RUNNING:
            if to not in COMMITTED:
                raise ValueError(f"an owner cannot commit to {to}")
            if open:
                raise ValueError("only a running run has a model call under way")
        lives: list[str | int] = []
        for key in {ledger.key for ledger, _, _ in (*settled, *hold) if ledger.life is Life.LEDGER}:
            lives += (key, policy.ledger_retention_ms)
        words = to_json((
            token, base, nonce, to, consumed, policy.lease_ms if renews else "", "" if step is None else step,
            "keep" if open is None else "open" if open else "settle",
            _amounts(settled), _amounts(hold), lives, self._marks(marks) if marks else (), _asks(asks) if asks else (),
        ))  # fmt: skip
        arguments: list[Argument] = [run, *self._lives, words, state or b"", open or b""]
        few: list[Argument] = []
        if at_ms is not None:
            few += ("at", at_ms)
        if delay_ms is not None:
            few += ("delay", delay_ms)
        if wait:
            few += ("wait", wait)
        if reason:
            few += ("reason", reason)
        if limits:
            few += ("limits", limits)
        if session_state:
            few += ("context", session_state, "cursor", session_cursor)
        if blame:
            few += ("poison_event", blame.body, "poison_reason", blame.reason)
            few += ("crashes_at_a_step", policy.crashes_at_a_step, "crashes_in_all", policy.crashes_in_all)
        arguments += (len(few), *few, len(events))
        arguments += events
        return ScriptCall(self._scripts["commit"], (self.keys.run(run),), arguments, read_committed)

    def renew(self, runs: Iterable[tuple[str, str]]) -> ScriptCall[Renewed]:
        """Renews the leases of (run, token) pairs, at most 200 in one call."""
        flat = [value for pair in runs for value in pair]
        if len(flat) > 2 * MAX_RENEWALS:
            raise ValueError(f"at most {MAX_RENEWALS} leases are renewed in one call")
        arguments: list[Argument] = ["", *self._lives, self.policy.lease_ms, len(flat), *flat]
        return ScriptCall(self._scripts["renew"], (self.keys.run(""),), arguments, read_renewed)

    def reap(
        self,
        run: str,
        *,
        token: str,
        dead: bool,
        requeued_event: bytes,
        cancelled_event: bytes,
        poison: PoisonEvent,
    ) -> ScriptCall[Outcome | Refused]:
        """Takes a run from an owner whose lease is over or, with `dead`, who is known to be gone."""
        arguments: list[Argument] = [
            run, *self._lives, token, "dead" if dead else "expired", requeued_event, cancelled_event, *poison,
            self.policy.crashes_at_a_step, self.policy.crashes_in_all,
        ]  # fmt: skip
        return ScriptCall(self._scripts["reap"], (self.keys.run(run),), arguments, read_outcome)

    def signal(self, run: str, *, sid: str, kind: str, body: bytes, ask: str = "") -> ScriptCall[Refused]:
        """Brings a `reply`, `approve`, `reject` or `top_up`. `ask` names the request; empty: the only open one.

        Answers `woken` or `kept`, or why not; `already` with the first answer.
        """
        self.policy.check_event(len(body))
        arguments: list[Argument] = [
            run, *self._lives, _word("signal id", sid), kind, ASK_OF[kind], ask and _word("request", ask), body,
            self.policy.max_inbox, self.policy.max_signals,
        ]  # fmt: skip
        return ScriptCall(self._scripts["signal"], (self.keys.run(run),), arguments, read_refused)

    def cancel(
        self, run: str, *, sid: str, event: bytes, reason: CancelReason = CancelReason.USER
    ) -> ScriptCall[Outcome | Refused]:
        """Asks a running run to end (`asked`); ends any other with `event` (`cancelled`)."""
        arguments: list[Argument] = [run, *self._lives, _word("signal id", sid), reason.value, event]
        return ScriptCall(self._scripts["cancel"], (self.keys.run(run),), arguments, read_outcome)

    def resume(
        self,
        run: str,
        *,
        sid: str,
        event: bytes,
        limits: bytes | None = None,
        on_busy: OnBusy = OnBusy.ENQUEUE,
        overtaken_event: bytes = b"",
    ) -> ScriptCall[Refused]:
        """Lets a failed or budget_exceeded run go on: `resumed`, `behind`, or why not."""
        arguments: list[Argument] = [
            run, *self._lives, _word("signal id", sid), limits or b"", on_busy.value, event, overtaken_event,
        ]  # fmt: skip
        return ScriptCall(self._scripts["resume"], (self.keys.run(run),), arguments, read_refused)

    def sweep(self, *, most: int = 100, most_tended: int = 100) -> ScriptCall[Swept]:
        """Finds what is over. `most_tended` = 0 leaves out RQ's mirror and the runs whose retention is over."""
        arguments: list[Argument] = ["", *self._lives, most, most_tended, self.policy.lease_ms]
        return ScriptCall(self._scripts["sweep"], (self.keys.run(""), self.keys.swept_at), arguments, read_swept)

    def ring(self, run: str, *, rq_keys: Sequence[str], rq_words: tuple[str, ...]) -> ScriptCall[Refused]:
        """Tells RQ that a run wants a worker: `rung`, `waits`, `no_job` (make the job, which rings), `cancel`, or `no`.

        `rq_keys`: the queue, its intermediate list, its scheduled jobs, the job. `rq_words`: the job's field of status and
        the word that says queued, then
        those that say that a person cancelled it.
        """
        arguments: list[Argument] = [run, *self._lives, *rq_words[:2], len(rq_words) - 2, *rq_words[2:]]
        return ScriptCall(self._scripts["ring"], (self.keys.run(run), *rq_keys), arguments, read_refused)

    def defer(self, run: str, *, deferral: str, reason: str) -> ScriptCall[Deferred | Refused]:
        """Puts off a queued run that this worker cannot run; `deferral` is made once for each refused claim."""
        arguments: list[Argument] = [
            run, *self._lives, deferral, reason, self.policy.defer_first_ms, self.policy.defer_longest_ms,
        ]  # fmt: skip
        return ScriptCall(self._scripts["defer"], (self.keys.run(run),), arguments, read_deferred)

    def hasten(self, run: str) -> ScriptCall[Refused]:
        """Makes a queued run that was taken in vain due now: `hastened` and its queue, or `no`."""
        return ScriptCall(self._scripts["hasten"], (self.keys.run(run),), [run, *self._lives], read_refused)

    def delete(self, run: str) -> ScriptCall[Refused]:
        """Removes an ended run before its time: `deleted`, or `live` with its status."""
        return ScriptCall(self._scripts["delete"], (self.keys.run(run),), [run, *self._lives], read_refused)

    def forget(self, session: str, tenant: str, *, last_activity: int) -> ScriptCall[Refused]:
        """Takes the memory from a session that nobody has used since: `forgotten`, `moved`, `missing`, or `busy`."""
        arguments: list[Argument] = ["", *self._lives, scoped(tenant, name("session", session)), last_activity]
        return ScriptCall(self._scripts["forget"], (self.keys.run(""),), arguments, read_refused)

    def _marks(self, marks: Mapping[str, str | None]) -> list[str]:
        if len(marks) > self.policy.max_calls:
            raise TooLarge(f"A step with {len(marks):,} tool calls is beyond max_calls = {self.policy.max_calls:,}.")
        return [word for call, mark in marks.items() for word in (call, mark or "")]


def _asks(asks: Mapping[str, NewAsk | None]) -> list[str | int]:
    words: list[str | int] = []
    for ask, new in asks.items():
        kind, delay_ms, question = new or NewAsk("")
        words += (_word("request", ask), kind, "" if delay_ms is None else delay_ms, question)
    return words


def _amounts(entries: Sequence[Entry]) -> list[str]:
    """Amounts are texts, since Lua's numbers are exact up to 2 ** 53 only."""
    words: list[str] = []
    for ledger, field, amount in entries:
        if amount < 0:
            raise ValueError(f"{field}: an amount on a ledger is not negative")
        words += (ledger.key, field, str(amount))
    return words


def _moment(at_ms: int | None, delay_ms: int | None) -> tuple[Argument, Argument]:
    return "" if at_ms is None else at_ms, "" if delay_ms is None else delay_ms


def _word(kind: str, value: str) -> str:
    if " " in name(kind, value):
        raise ConfigurationError(f"The {kind} {value!r} must not contain a space.")
    return value
