"""A conversation goes on behind an outage, with the run that it had lost sight of. The client is played."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from agent.errors import StoreUnavailable
from agent.events import Event, Recorded, RunCompleted, RunCreated, RunReleased
from scheduler.client import Request
from worker.cli.conversation import Conversation
from worker.cli.typed_lines import Lines

AWAY = StoreUnavailable("Redis cannot be reached")


@dataclass
class PlayedLines:
    """What a person types, and what it was typed behind."""

    typed: list[str]
    prompts: list[str] = field(default_factory=list[str])

    def read(self, prompt: str, *, afresh: bool = False) -> str | None:
        self.prompts.append(prompt)
        return self.typed.pop(0) if self.typed else None


@dataclass
class PlayedRun:
    """A run that asks something; Redis goes away when the answer is sent, or when its events are read."""

    failures: dict[str, int]
    id: str = "0-run"
    answers: list[str] = field(default_factory=list[str])

    def fails(self, what: str) -> None:
        if self.failures.get(what, 0):
            self.failures[what] -= 1
            raise AWAY

    def info(self) -> PlayedRun:
        return self

    @property
    def active(self) -> str:
        return self.id

    @property
    def requests(self) -> list[Request]:
        return [] if self.answers else [Request("1.0", "reply", question="Which?")]

    def events(self, after: int = 0, *, follow: bool = False) -> Iterator[Recorded]:
        told: list[Event] = [
            RunCreated(agent="clerk", task="go"),
            RunReleased(why="waiting"),
            RunCompleted(output="red"),
        ]
        for seq, event in enumerate(told, 1):
            if seq > after:
                self.fails(event.type)
                yield Recorded(seq, 0, event)

    def reply(self, text: str, *, request: str = "") -> None:
        self.fails("reply")
        self.answers.append(text)


@dataclass
class PlayedClient:
    """A client whose only run is already there."""

    run: PlayedRun
    sent: list[str] = field(default_factory=list[str])

    def session(self, session: str, *, tenant: str = "") -> PlayedRun:
        return self.run

    def get(self, run_id: str) -> PlayedRun:
        return self.run

    def submit(self, agent: str, text: str, **options: str) -> PlayedRun:
        self.sent.append(text)
        return self.run


class Talk(Conversation):
    """Begins in a session that is new."""

    def _enter(self, session: str) -> None:
        self._session = session


def talk(run: PlayedRun, *typed: str) -> tuple[PlayedLines, PlayedClient]:
    lines, client = PlayedLines(list(typed)), PlayedClient(run)
    Talk(cast(Any, client), "clerk", "", cast(Lines, lines)).talk("s1")
    return lines, client


def test_an_answer_that_an_outage_swallowed_is_asked_for_again(capsys: pytest.CaptureFixture[str]) -> None:
    run = PlayedRun({"reply": 1})
    lines, client = talk(run, "go", "red", "", "red again")

    assert run.answers == ["red again"]
    assert [prompt for prompt in lines.prompts if "Which?" in prompt] == ["Which?\n? ", "Which?\n? "]
    assert client.sent == ["go"]
    printed = capsys.readouterr()
    assert printed.out == "red\n"
    assert "run 0-run goes on all the same; Enter looks at it again" in printed.err


def test_a_result_that_came_during_an_outage_is_shown_and_a_new_message_not_mixed_up_with_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = PlayedRun({"run_completed": 1})
    _, client = talk(run, "go", "blue", "and this?", "and that?")

    printed = capsys.readouterr()
    assert printed.out == "red\nred\n"
    assert "not sent: and this?" in printed.err
    assert client.sent == ["go", "and that?"]
