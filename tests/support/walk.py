"""A random walk through the store: owners that come and go, calls that are sent again at any later time, leases that expire,
a clock that jumps, and a Redis that comes back with an older state. After each step all invariants must hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from pydantic_core import from_json

from scheduler.inputs import Entry, NewAsk, PoisonEvent
from scheduler.lifecycle import LIVE, RESUMABLE, TRANSITIONS, CancelReason, Status
from scheduler.records import RunRecord, parse_record
from scheduler.replies import Behind, Claimed, Committed, Outcome, Renewed
from scheduler.scripting import ScriptCall
from scheduler.sessions import OnBusy
from tests.support import invariants
from tests.support.runs import RQ_WORDS, Desk, Owner, rq_keys
from tests.support.snapshot import Snapshot, put_back

SESSIONS = {"0-a": "s", "0-b": "s", "0-c": "", "0-d": ""}
IDEMS = {"0-a": "k1", "0-b": "", "0-c": "k2", "0-d": ""}
RUNS = tuple(SESSIONS)
LIMIT = 250  # tokens that the tenant of all runs may use: two calls of a hundred at once

WEIGHTS = {
    "create": 4,
    "claim": 10,
    "commit": 16,
    "renew": 2,
    "reap": 4,
    "signal": 6,
    "cancel": 3,
    "resume": 4,
    "sweep": 6,
    "ring": 1,
    "defer": 1,
    "hasten": 1,
    "delete": 1,
    "forget": 1,
    "send_again": 12,
    "jump": 2,
    "go_back": 4,
}
"""How often each of the methods below is a walk's next step."""

steps = st.sampled_from([step for step, weight in WEIGHTS.items() for _ in range(weight)])
mostly = st.sampled_from([True, True, True, True, False])
Data = st.DataObject


class Walk(RuleBasedStateMachine):
    """The machine. The test that runs it says `at` which desk.

    It has one rule only, for hypothesis would leave out most of several: what befalls a run must come in any order.
    """

    at: ClassVar[Desk]

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(self.at.redis, self.at.scripts)
        self.desk.redis.hset(self.desk.keys.tenant("t").key, "limit:tokens", LIMIT)
        self.numbers = itertools.count(1)
        self.owners: list[Owner] = []
        self.sent: list[tuple[str, ScriptCall[Any]]] = []
        self.history = [self.desk.snapshot()]

    @initialize()
    def begin(self) -> None:
        for run in RUNS:
            self.send("create", self.desk.scripts.create(self.new_run(run)))

    @rule(data=st.data(), step=steps)
    def step(self, data: Data, step: str) -> None:
        getattr(self, step)(data)

    # ---- the ways a run goes ----------------------------------------------------------------------------------------

    def create(self, data: Data) -> None:
        new = self.new_run(
            data.draw(st.sampled_from(RUNS)),
            delay_ms=data.draw(st.sampled_from([None, None, 3_000])),
            on_busy=data.draw(st.sampled_from(OnBusy)),
            overtaken_event=self.event("interrupted"),
        )
        self.send("create", self.desk.scripts.create(new))

    def claim(self, data: Data) -> None:
        run, room = self.pick(data, Status.QUEUED, also=lambda record: not record.behind), data.draw(mostly)
        call = self.desk.claim_call(
            run,
            f"A{next(self.numbers)}",
            event=self.event("claimed"),
            room_for_one_crash=room,
            room_for_more=room,
        )
        answer = self.send("claim", call)
        if isinstance(answer, Claimed):
            self.owners.append(Owner(self.desk, run, answer))

    def commit(self, data: Data) -> None:
        owner = self.pick_owner(data)
        if owner is None:
            return
        to = data.draw(st.sampled_from([*[Status.RUNNING] * 4, *[Status.WAITING] * 4, *Status]))
        fields: dict[str, Any] = {}
        if to is Status.RUNNING and data.draw(mostly):
            ledger = self.desk.keys.tenant("t")
            fields = {"open": b"{}", "hold": [Entry(ledger, "tokens", 100)], "settled": [Entry(ledger, "tokens", 7)]}
        if to in (Status.WAITING, Status.QUEUED):
            fields["delay_ms"] = data.draw(st.sampled_from([None, 1_000]))
        if to is Status.QUEUED and data.draw(mostly):
            fields["blame"] = PoisonEvent(self.event("poison"), "poison")
        if data.draw(st.booleans()):
            fields["asks"] = {f"q{next(self.numbers)}": NewAsk("reply", data.draw(st.sampled_from([None, 1_000])))}
        unread = len(self.history[-1].list(self.desk.keys.inbox(owner.run)))
        call = owner.call(
            to=to,
            events=[self.event("committed")],
            step=data.draw(st.integers(0, 3)),
            consumed=unread if data.draw(st.booleans()) else 0,
            marks={"1.0": "started", "1.1": None},
            session_state=b"memory",
            **fields,
        )
        answer = self.send("commit", call)
        # An owner that never hears the answer goes on from what it knew.
        if isinstance(answer, Committed) and data.draw(mostly):
            owner.rev = answer.rev

    def renew(self, data: Data) -> None:
        pairs = [(owner.run, owner.token) for owner in self.owners[-3:]]
        self.send("renew", self.desk.scripts.renew(pairs))

    def reap(self, data: Data) -> None:
        if self.owners:
            owner = data.draw(st.sampled_from(self.owners[-8:]))
            self.send("reap", self.reap_call(owner.run, owner.token, dead=data.draw(st.booleans())))

    def signal(self, data: Data) -> None:
        kind = data.draw(st.sampled_from(["reply", "reply", "top_up"]))
        run = self.pick(data, Status.WAITING, Status.RUNNING)
        self.send("signal", self.desk.scripts.signal(run, sid=f"s{next(self.numbers)}", kind=kind, body=b"{}"))

    def cancel(self, data: Data) -> None:
        run, reason = self.pick(data, *LIVE), data.draw(st.sampled_from(CancelReason))
        sid = f"c{next(self.numbers)}"
        self.send("cancel", self.desk.scripts.cancel(run, sid=sid, event=self.event("cancelled"), reason=reason))

    def resume(self, data: Data) -> None:
        call = self.desk.scripts.resume(
            self.pick(data, *RESUMABLE),
            sid=f"r{next(self.numbers)}",
            event=self.event("resumed"),
            limits=b"{}",
            on_busy=data.draw(st.sampled_from(OnBusy)),
            overtaken_event=self.event("interrupted"),
        )
        self.send("resume", call)

    def sweep(self, data: Data) -> None:
        self.desk.pass_time(data.draw(st.sampled_from([500, 500, 2_000])))
        for run, token in self.send("sweep", self.desk.scripts.sweep()).expired:
            self.send("reap", self.reap_call(run, token, dead=False))

    def ring(self, data: Data) -> None:
        run = self.pick(data, Status.QUEUED)
        self.send("ring", self.desk.scripts.ring(run, rq_keys=rq_keys(run), rq_words=RQ_WORDS))

    def defer(self, data: Data) -> None:
        run = self.pick(data, Status.QUEUED)
        self.send("defer", self.desk.scripts.defer(run, deferral=f"d{next(self.numbers)}", reason="no agent"))

    def hasten(self, data: Data) -> None:
        self.send("hasten", self.desk.scripts.hasten(self.pick(data, Status.QUEUED)))

    def delete(self, data: Data) -> None:
        self.send("delete", self.desk.scripts.delete(data.draw(st.sampled_from(RUNS))))

    def forget(self, data: Data) -> None:
        at = self.history[-1].scores(self.desk.keys.sessions).get("t:s", 0)
        self.send("forget", self.desk.scripts.forget("s", "t", last_activity=int(at)))

    # ---- what befalls a distributed system --------------------------------------------------------------------------

    def send_again(self, data: Data) -> None:
        if self.sent:
            name, call = data.draw(st.sampled_from(self.sent[-3:] if data.draw(st.booleans()) else self.sent[-40:]))
            self.send(name, call, again=True)

    def jump(self, data: Data) -> None:
        self.desk.pass_time(data.draw(st.sampled_from([1_000, 7_000, 60_000, -20_000])))

    def go_back(self, data: Data) -> None:
        put_back(self.desk.redis, data.draw(st.sampled_from(self.history[-10:])))
        self.desk.pass_time(0)
        self.history.append(self.desk.snapshot())

    # ---- sending, and what must hold of the answers -----------------------------------------------------------------

    def send(self, name: str, call: ScriptCall[Any], *, again: bool = False) -> Any:
        before = self.history[-1]
        answer = self.desk.do(call)
        self.history.append(after := self.desk.snapshot())
        invariants.check(self.desk.keys, after)
        for run in RUNS:
            self.check_transition(name, self.read(run, before), self.read(run, after))
        match name:
            case "commit":
                self.check_commit(call, answer, before, after)
            case "reap":
                self.check_reap(call, answer, before)
            case "renew":
                self.check_renewed(call, answer, before, after)
            case _:
                pass
        if not again:
            self.sent.append((name, call))
        return answer

    def check_transition(self, name: str, before: RunRecord | None, after: RunRecord | None) -> None:
        source, target = before and before.status, after and after.status
        if source is not target and target is not None:
            scripts = TRANSITIONS.get((source, target), frozenset())
            assert name in scripts, f"{name} led from {source} to {target}"

    def check_commit(self, call: ScriptCall[Any], answer: Any, before: Snapshot, after: Snapshot) -> None:
        run, (token, base, nonce, *_) = str(call.arguments[0]), from_json(cast("bytes", call.arguments[3]))
        was, now = self.read(run, before), self.read(run, after)
        if not isinstance(answer, Committed):
            assert self.same(before, after) or isinstance(answer, Behind)
            assert was is None or was.last != nonce, "what has been done was refused when it was sent again"
            return
        assert was is not None
        assert now is not None
        if answer.code == "already":
            assert self.same(before, after)
        else:
            assert was.token == token, f"the owner was {was.token}, but {token} could commit"
            assert was.rev == base, f"the record stood at {was.rev}, but a commit on {base} was taken"
        assert answer.own == (now.token == token), f"{token} was told own={answer.own}, but the owner is {now.token}"
        assert answer.own or not answer.inbox

    def check_reap(self, call: ScriptCall[Any], answer: Any, before: Snapshot) -> None:
        run, token, why = str(call.arguments[0]), call.arguments[3], call.arguments[4]
        was = self.read(run, before)
        if isinstance(answer, Outcome):
            assert was is not None
            assert was.token == token, f"{token} was reaped, but the owner was {was.token}"
            assert why == "dead" or before.scores(self.desk.keys.leases)[run] <= self.desk.now

    def check_renewed(self, call: ScriptCall[Any], answer: Renewed, before: Snapshot, after: Snapshot) -> None:
        flat = [str(value) for value in call.arguments[5:]]
        pairs = set(zip(flat[::2], flat[1::2], strict=True))
        owned = {(run, token) for run, token in pairs if (was := self.read(run, before)) and was.token == token}
        assert set(answer.lost) == {run for run, _ in pairs - owned}
        for run in {run for run, _ in pairs} - {run for run, _ in owned}:
            assert before.scores(self.desk.keys.leases).get(run) == after.scores(self.desk.keys.leases).get(run)

    # ---- choosing ---------------------------------------------------------------------------------------------------

    def pick(self, data: Data, *statuses: Status, also: Callable[[RunRecord], bool] = lambda _: True) -> str:
        """A run, mostly in one of these statuses."""
        found = [self.read(run) for run in RUNS]
        fitting = [record.id for record in found if record and record.status in statuses and also(record)]
        return data.draw(st.sampled_from(fitting if fitting and data.draw(mostly) else RUNS))

    def pick_owner(self, data: Data) -> Owner | None:
        """An owner, mostly one that still is."""
        if not self.owners:
            return None
        tokens = {record.token for run in RUNS if (record := self.read(run))}
        true = [owner for owner in self.owners if owner.token in tokens]
        return data.draw(st.sampled_from(true if true and data.draw(mostly) else self.owners))

    def same(self, before: Snapshot, after: Snapshot) -> bool:
        return before.without(self.desk.keys.clock) == after.without(self.desk.keys.clock)

    def read(self, run: str, snapshot: Snapshot | None = None) -> RunRecord | None:
        fields = (snapshot or self.history[-1]).hash(self.desk.keys.run(run))
        return parse_record(run, fields) if fields else None

    def new_run(self, run: str, **fields: Any) -> Any:
        given = {"event": self.event("created"), "session": SESSIONS[run], "tenant": "t", "idempotency_key": IDEMS[run]}
        return self.desk.new_run(run, **(given | fields))

    def reap_call(self, run: str, token: str, *, dead: bool) -> ScriptCall[Any]:
        return self.desk.scripts.reap(
            run,
            token=token,
            dead=dead,
            requeued_event=self.event("requeued"),
            cancelled_event=self.event("cancelled"),
            poison=PoisonEvent(self.event("poison"), "poison"),
        )

    def event(self, kind: str) -> bytes:
        """A body that can be told from all others. A claim or a cancel that comes late may well be granted again."""
        once = kind == "committed"
        return b'{"type":"%s","%s":%d}' % (kind.encode(), b"once" if once else b"n", next(self.numbers))
