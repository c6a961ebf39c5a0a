"""A desk for tests of the store: scripts are sent one at a time, the clock stands still until it is moved."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import redis

from scheduler.inputs import Entry, NewAsk, NewRun, PoisonEvent
from scheduler.keys import Keys
from scheduler.lifecycle import Status
from scheduler.records import RunRecord, parse_record
from scheduler.replies import Behind, Claimed, Committed, Created, Outcome, Refused
from scheduler.scripting import ScriptCall, run_blocking
from scheduler.scripts import Scripts
from scheduler.sessions import OnBusy
from tests.support.snapshot import Snapshot, take

R = TypeVar("R")
Client: TypeAlias = "redis.Redis"

START = 4_000_000_000_000
"""The desk's clock starts here: in the future, so that a real server expires nothing while a test runs."""

POISON = PoisonEvent(b'{"type":"poison"}', "poison")
RQ_WORDS = ("status", "queued", "canceled", "stopped")


def rq_keys(run: str, queue: str = "default") -> tuple[str, str, str, str]:
    return f"rq:queue:{queue}", f"rq:queue:{queue}:intermediate", f"rq:scheduled:{queue}", f"rq:job:{run}"


class Desk:
    """Sends calls to one server and moves its clock."""

    def __init__(self, client: Client, scripts: Scripts | None = None) -> None:
        self.redis = cast(Any, client)
        self.scripts = scripts or Scripts()
        self.keys: Keys = self.scripts.keys
        self.now = START
        self.redis.flushall()
        self.redis.set(self.keys.clock, self.now)

    def do(self, call: ScriptCall[R]) -> R:
        return run_blocking(cast("redis.Redis", self.redis), call)

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.redis.set(self.keys.clock, self.now)

    def new_run(self, run: str, **fields: Any) -> NewRun:
        given: dict[str, Any] = {"digest": "d", "event": b'{"type":"created"}', "agent": "calc", "queue": "default"}
        return NewRun(id=run, **(given | fields))

    def create(self, run: str, **fields: Any) -> Created:
        answer = self.do(self.scripts.create(self.new_run(run, **fields)))
        assert isinstance(answer, Created), answer
        return answer

    def claim_call(self, run: str, activation: str = "A", **fields: Any) -> ScriptCall[Claimed | Refused]:
        given: dict[str, Any] = {"worker": "w1", "newest_schema": 1, "event": b'{"type":"claimed"}'} | fields
        return self.scripts.claim(run, activation=activation, **given)

    def claim(self, run: str, activation: str = "A", **fields: Any) -> Owner:
        answer = self.do(self.claim_call(run, activation, **fields))
        assert isinstance(answer, Claimed), answer
        return Owner(self, run, answer)

    def running(self, run: str, **fields: Any) -> Owner:
        """A new run with an owner."""
        self.create(run, **fields)
        return self.claim(run)

    def ended(self, run: str, to: Status = Status.COMPLETED, **fields: Any) -> Owner:
        owner = self.running(run, **fields)
        owner.commit(to=to)
        return owner

    def reap_call(self, run: str, token: str, *, dead: bool = False) -> ScriptCall[Outcome | Refused]:
        return self.scripts.reap(
            run,
            token=token,
            dead=dead,
            requeued_event=b'{"type":"requeued"}',
            cancelled_event=b'{"type":"cancelled"}',
            poison=POISON,
        )

    def reap(self, run: str, token: str, *, dead: bool = False) -> Outcome | Refused:
        return self.do(self.reap_call(run, token, dead=dead))

    def signal(self, run: str, sid: str, kind: str = "reply", **fields: Any) -> Refused:
        given: dict[str, Any] = {"body": b"{}"}
        return self.do(self.scripts.signal(run, sid=sid, kind=kind, **(given | fields)))

    def cancel(self, run: str, sid: str = "cancel", **fields: Any) -> Outcome | Refused:
        return self.do(self.scripts.cancel(run, sid=sid, event=b'{"type":"cancelled"}', **fields))

    def resume(self, run: str, sid: str = "resume", on_busy: OnBusy = OnBusy.ENQUEUE, **fields: Any) -> Refused:
        return self.do(self.scripts.resume(run, sid=sid, event=b'{"type":"resumed"}', on_busy=on_busy, **fields))

    def ring(self, run: str) -> Refused:
        return self.do(self.scripts.ring(run, rq_keys=rq_keys(run), rq_words=RQ_WORDS))

    def record(self, run: str) -> RunRecord:
        return parse_record(run, self.redis.hgetall(self.keys.run(run)))

    def event_bodies(self, run: str) -> list[bytes]:
        return [fields[b"b"] for _, fields in self.redis.xrange(self.keys.events(run))]

    def snapshot(self) -> Snapshot:
        return take(self.redis)


class Owner:
    """What a worker knows of a run that it has claimed."""

    _nonces = itertools.count(1)

    def __init__(self, desk: Desk, run: str, claimed: Claimed) -> None:
        self.desk = desk
        self.run = run
        self.claimed = claimed
        self.token = claimed.token
        self.rev = claimed.rev

    def call(
        self,
        *,
        to: Status = Status.RUNNING,
        events: Sequence[bytes] = (b"{}",),
        settled: Sequence[Entry] = (),
        hold: Sequence[Entry] = (),
        marks: Mapping[str, str | None] | None = None,
        asks: Mapping[str, NewAsk | None] | None = None,
        **fields: Any,
    ) -> ScriptCall[Committed | Behind | Refused]:
        """The next commit, not yet sent."""
        return self.desk.scripts.commit(
            self.run,
            token=self.token,
            base=self.rev,
            nonce=f"n{next(self._nonces)}",
            to=to,
            events=events,
            settled=settled,
            hold=hold,
            marks=marks,
            asks=asks,
            **fields,
        )

    def commit(self, **fields: Any) -> Committed:
        answer = self.desk.do(self.call(**fields))
        assert isinstance(answer, Committed), answer
        self.rev = answer.rev
        return answer

    def wait(self, **fields: Any) -> Committed:
        return self.commit(to=Status.WAITING, **fields)
