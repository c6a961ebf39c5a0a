"""Plays: what a model shall say, step by step, written down as the task of a run.

The agent `player` reads its task as a play. So each test says in one place what its run does, and a worker process needs to
know nothing but that one agent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError


@dataclass(frozen=True, slots=True)
class Use:
    """A call of a tool of the player."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model: tools to call, or an answer.

    Attributes:
        seconds: How long the model thinks.
        gate: The model waits until the test opens this gate.
        refuses_until: The model refuses until the test opens this gate.
        retry_after: The first attempts at this step fail as those at a busy server do, with these `Retry-After` (seconds).
    """

    text: str = ""
    uses: tuple[Use, ...] = ()
    seconds: float = 0.0
    gate: str = ""
    refuses_until: str = ""
    retry_after: tuple[float, ...] = ()


def use(*uses: Use, **how: Any) -> Step:
    """The model calls tools; see `Step` for how."""
    return Step(uses=uses, **how)


def say(text: str, **how: Any) -> Step:
    """The model answers, which ends the run; see `Step` for how."""
    return Step(text, **how)


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


def seize(seconds: int) -> Use:
    """Keeps the interpreter lock: no thread of the process runs meanwhile. Not idempotent."""
    return Use("seize", {"seconds": seconds})


def boom() -> Use:
    """Kills its process. Idempotent, so that it does so again and again."""
    return Use("boom")


def big(characters: int, letter: str = "x") -> Use:
    """Returns a long text."""
    return Use("big", {"characters": characters, "letter": letter})


def grumble() -> Use:
    """Raises an error that holds a lock."""
    return Use("grumble")


def overdue(seconds: float) -> Use:
    """Takes as long as its time-out, which is the lease of the tests. Not idempotent."""
    return Use("overdue", {"seconds": seconds})


def ask(question: str) -> Use:
    """Asks the user."""
    return Use("ask_user", {"question": question})


def ask_soon(question: str) -> Use:
    """Asks the user, who has a second to answer; then "blue" is taken for the answer."""
    return Use("ask_soon", {"question": question})


def pay(amount: int) -> Use:
    """Leaves a trace, if a person allows it. Not idempotent."""
    return Use("pay", {"amount": amount})


def ship(text: str) -> Use:
    """Leaves a trace, unless a person forbids it within a second."""
    return Use("ship", {"text": text})


def launch(gate: str) -> Use:
    """Leaves a trace and waits for the gate; where it is cut off, a person says whether it may be done again."""
    return Use("launch", {"gate": gate})


def transfer(amount: int) -> Use:
    """Leaves a trace, if a person allows it. Idempotent."""
    return Use("transfer", {"amount": amount})


def tell(words: int) -> Use:
    """Returns so many words. Idempotent."""
    return Use("tell", {"words": words})


def remember(text: str) -> Use:
    """Keeps something in the memory of the session."""
    return Use("remember", {"text": text})


_PLAY: Final = TypeAdapter(tuple[Step, ...])


def task(*steps: Step) -> str:
    """The play as the task of a run."""
    return _PLAY.dump_json(steps, exclude_defaults=True).decode()


def read(text: str) -> tuple[Step, ...]:
    """The steps of a play; none where the text is no play."""
    try:
        return _PLAY.validate_json(text)
    except ValidationError:
        return ()
