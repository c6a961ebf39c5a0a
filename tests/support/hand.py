"""A worker by hand: claims runs and commits real events, one at a time, so that a test says what happens when."""

from __future__ import annotations

from typing import Any, cast

import redis

from agent.budget import Budget, Usage
from agent.events import (
    Event,
    ModelReplied,
    RequestOpened,
    RunBudgetExceeded,
    RunCancelled,
    RunClaimed,
    RunCompleted,
    RunFailed,
    RunReleased,
    ToolReturned,
    encode,
)
from agent.messages import ToolCall
from agent.state import Checkpoint
from scheduler.cards import AgentCard
from scheduler.inputs import Entry, NewAsk
from scheduler.keys import Keys
from scheduler.lifecycle import Status
from scheduler.replies import Claimed, Committed
from scheduler.scripting import run_blocking
from scheduler.scripts import Scripts

ENDS: dict[type[Event], Status] = {
    RunCompleted: Status.COMPLETED,
    RunFailed: Status.FAILED,
    RunCancelled: Status.CANCELLED,
    RunBudgetExceeded: Status.BUDGET_EXCEEDED,
}


class Hand:
    """Works on a server as a worker would."""

    def __init__(self, client: redis.Redis) -> None:
        self.redis = cast(Any, client)
        self.scripts = Scripts()
        self.keys: Keys = self.scripts.keys

    @classmethod
    def at(cls, url: str) -> Hand:
        """A hand at a real server."""
        return cls(cast(Any, redis.Redis).from_url(url, protocol=2))

    def publish(self, card: AgentCard) -> None:
        """Publishes a card that counts for an hour."""
        now = self.redis.time()[0] * 1000
        value = b"%d hand\n%s" % (now + 3_600_000, card.model_dump_json().encode())
        self.redis.hset(self.keys.cards, card.name, value)

    def take(self, run: str) -> Held:
        """Claims a run."""
        call = self.scripts.claim(
            run, activation="a1", worker="hand", newest_schema=1, event=encode(RunClaimed(worker="hand"))
        )
        claimed = run_blocking(self.redis, call)
        assert isinstance(claimed, Claimed), claimed
        return Held(self, run, claimed)

    def finish(self, run: str, output: object = "done") -> None:
        """Claims a run and completes it."""
        self.take(run).end(RunCompleted(output=output))


class Held:
    """A run that the hand has."""

    def __init__(self, hand: Hand, run: str, claimed: Claimed) -> None:
        self._hand = hand
        self._run = run
        self.claimed = claimed
        self._rev = claimed.rev
        self._head = Checkpoint.of(claimed.state)

    def step(
        self,
        text: str = "thinking",
        *,
        calls: tuple[ToolCall, ...] = (),
        usage: Usage | None = None,
        settled: tuple[Entry, ...] = (),
    ) -> None:
        """Commits one reply of a model."""
        used = usage or Usage(model_calls=1, input_tokens=10, output_tokens=5)
        self._head.step += 1
        self._head.usage = self._head.usage.plus(used, active_ms=100)
        reply = ModelReplied(step=self._head.step, content=text, calls=calls, usage=used, model="hand")
        self._commit(Status.RUNNING, reply, settled=settled)

    def answer(self, call: str, name: str, content: str) -> None:
        """Commits the result of a tool call."""
        self._head.usage = self._head.usage.plus(Usage(tool_calls=1), active_ms=100)
        self._commit(Status.RUNNING, ToolReturned(call=call, name=name, outcome="ok", content=content))

    def ask(self, name: str, kind: str) -> None:
        """Lets the run wait for a person."""
        opened = RequestOpened(
            request=name,
            kind="approval" if kind == "approval" else "clarification",
            tool="ask_user",
            question="Which one?",
        )
        self._commit(Status.RUNNING, opened)
        self._commit(
            Status.WAITING, RunReleased(why="waiting"), wait=kind, asks={name: NewAsk(kind, words="Which one?")}
        )

    def end(self, event: Event) -> None:
        """Ends the run."""
        self._commit(ENDS[type(event)], event, reason=event.type.removeprefix("run_"))

    def _commit(self, to: Status, event: Event, **fields: Any) -> None:
        self._head.seq += 1
        call = self._hand.scripts.commit(
            self._run,
            token=self.claimed.token,
            base=self._rev,
            nonce=f"{self.claimed.token}/{self._rev}",
            to=to,
            events=[encode(event)],
            step=self._head.step,
            state=self._head.to_bytes(),
            limits=Budget.model_validate_json(self.claimed.limits).model_dump_json().encode(),
            **fields,
        )
        committed = run_blocking(self._hand.redis, call)
        assert isinstance(committed, Committed), committed
        self._rev = committed.rev
