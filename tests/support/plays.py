"""Plays: what a model shall say, step by step, written down as the task of a run.

The agent `player` reads its task as a play. So each test says in one place what its run does, and a worker process needs to
know nothing but that one agent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a tool of the player."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model.

    Attributes:
        seconds: How long the model thinks.
        gate: The model waits until the test opens this gate.
        fails: The attempts at this step that fail as a busy server does, with these seconds of `Retry-After`.
    """

    text: str = ""
    uses: tuple[Use, ...] = ()
    seconds: float = 0.0
    gate: str = ""
    fails: tuple[float, ...] = ()


def use(*uses: Use, seconds: float = 0.0, gate: str = "", fails: tuple[float, ...] = ()) -> Step:
    """The model calls tools."""
    return Step("", uses, seconds, gate, fails)


def say(text: str, *, seconds: float = 0.0, gate: str = "", fails: tuple[float, ...] = ()) -> Step:
    """The model answers, which ends the run."""
    return Step(text, (), seconds, gate, fails)


def note(text: str) -> Use:
    """Leaves a trace. Not idempotent."""
    return Use("note", {"text": text})


def put(text: str, *, seconds: float = 0.0) -> Use:
    """Leaves a trace, and takes some seconds. Idempotent."""
    return Use("put", {"text": text, "seconds": seconds})


def hold(gate: str) -> Use:
    """Waits on the event loop until the test opens the gate. Not idempotent."""
    return Use("hold", {"gate": gate})


def hold_again(gate: str) -> Use:
    """Waits on the event loop until the test opens the gate. Idempotent."""
    return Use("hold_again", {"gate": gate})


def block(seconds: float) -> Use:
    """Sleeps in a thread. Not idempotent."""
    return Use("block", {"seconds": seconds})


def hog(seconds: float) -> Use:
    """Blocks the event loop. Not idempotent."""
    return Use("hog", {"seconds": seconds})


def boom() -> Use:
    """Kills its process. Idempotent, so that it does so again and again."""
    return Use("boom")


def big(characters: int, letter: str = "x") -> Use:
    """Returns a long text."""
    return Use("big", {"characters": characters, "letter": letter})


def grumble() -> Use:
    """Raises an error that holds a lock."""
    return Use("grumble")


def task(*steps: Step) -> str:
    """The play as the task of a run."""
    return json.dumps(
        [
            {
                "text": step.text,
                "uses": [{"tool": one.tool, "arguments": dict(one.arguments)} for one in step.uses],
                "seconds": step.seconds,
                "gate": step.gate,
                "fails": step.fails,
            }
            for step in steps
        ]
    )


def read(play: str) -> list[Step]:
    """The steps of a play."""
    steps: list[dict[str, Any]] = json.loads(play)
    return [
        Step(
            step["text"],
            tuple(Use(one["tool"], one["arguments"]) for one in step["uses"]),
            step["seconds"],
            step["gate"],
            tuple(step["fails"]),
        )
        for step in steps
    ]
