"""`pawl chat` and `pawl sessions`: a conversation in a terminal or a pipe, with questions, approvals and interrupts."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from scheduler.lifecycle import Status
from tests.support.plays import ask, hold, note, pay, say, task, use
from tests.support.site import ROOT, Site

CLERK = "tests.support.clerk"
PAWL = [sys.executable, "-m", "worker.cli"]


@pytest.fixture
def desk(site: Site) -> Iterator[Site]:
    """A deployment with a worker that has the clerk."""
    site.worker(targets=CLERK)
    yield site


def pawl(site: Site, *arguments: str, lines: tuple[str, ...] = (), code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*PAWL, *arguments],
        cwd=ROOT,
        env={**os.environ, **site.environment},
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done


def session_of(done: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r"go on with: pawl chat clerk --session (\S+)", done.stderr)
    assert found is not None, done.stderr
    return found[1]


def test_a_conversation_in_a_pipe_with_a_question_an_approval_and_a_second_session(desk: Site) -> None:
    done = pawl(
        desk,
        *("chat", "clerk", "--tenant", "acme"),
        lines=(
            task(use(ask("Which colour?")), use(pay(1), pay(2), note("a")), say("painted")),
            *("", "red"),
            *("yellow", "e", "not json", "e", '{"amout": 7}', "e", '{"amount": 7}'),
            *("n", "too much"),
            task(say("second")),
            "/new",
            task(say("third")),
            "/sessions",
            "/what",
            "/exit",
            task(say("never read")),
        ),
    )
    answers, table = done.stdout.split("SESSION", 1)
    assert answers.splitlines() == ["painted", "second", "third"]
    assert "Which colour?" in done.stderr
    assert 'May pay be called with {"amount":2}?' in done.stderr
    assert done.stderr.count("Which colour?") == 3, "in the call, and asked again where nothing was said"
    assert "not JSON" in done.stderr
    assert "The arguments do not fit pay: amout: there is no such parameter (there is: amount)" in done.stderr
    assert "/switch SESSION" in done.stderr, "what is no command is answered with those there are"
    assert "1.0 ask_user: ok" in done.stderr
    assert [trace.text for trace in desk.traces.found("pay")] == ["7"]
    assert len(re.findall(r"chat-[0-9a-f]{8}", table)) == 2
    last = session_of(done)
    assert [run.status for run in desk.client.runs(session=last, tenant="acme").runs] == [Status.COMPLETED]


def test_a_conversation_is_gone_on_with_where_it_was_left(desk: Site) -> None:
    left = pawl(desk, "chat", "clerk", "--session", "s1", lines=(task(use(ask("Which?")), say("done")),))
    assert "waits for you" in left.stderr
    assert left.stdout == ""
    assert session_of(left) == "s1"

    again = pawl(desk, "chat", "clerk", "--session", "s1", lines=("this one", task(say("more"))))
    assert again.stdout.splitlines() == ["done", "more"]
    assert "it began with: [" in again.stderr
    switched = pawl(desk, "chat", "clerk", lines=("/switch s1", task(say("and more"))))
    assert switched.stdout.splitlines() == ["and more"]
    assert session_of(switched) == "s1"
    assert len(desk.client.runs(session="s1").runs) == 3


def test_a_run_of_somebody_else_that_waits_is_answered_first(desk: Site) -> None:
    desk.client.submit("clerk", task(use(ask("Which?")), say("first")), session="s1")
    done = pawl(desk, "chat", "clerk", "--session", "s2", lines=("/switch s1", "this", task(say("mine"))))
    assert done.stdout.splitlines() == ["first", "mine"]
    other = desk.client.submit("clerk", task(use(ask("Which?")), say("second")), session="s3")
    desk.reaches(other.id, Status.WAITING)
    done = pawl(desk, "chat", "clerk", "--session", "s3", lines=("that", task(say("mine"))))
    assert done.stdout.splitlines() == ["second", "mine"]


def test_only_ones_own_conversations_are_listed_and_a_bad_name_is_not_entered(desk: Site) -> None:
    for tenant in ("", "acme"):
        desk.client.submit("clerk", task(say("done")), session="s1", tenant=tenant).result(timeout=30)
    done = pawl(
        desk, "chat", "clerk", "--session", "s1", lines=("/sessions", f"/switch {'x' * 300}", task(say("here")))
    )
    assert "acme" not in done.stdout
    assert done.stdout.splitlines()[-1] == "here"
    assert session_of(done) == "s1"


def test_what_goes_wrong_does_not_end_the_conversation(desk: Site) -> None:
    done = pawl(desk, "chat", "clerk", lines=("no play", task(say("well"))))
    assert done.stdout.splitlines() == ["well"]
    assert "pawl: model_refused_request" in done.stderr


def test_an_interrupt_ends_the_run_and_keeps_the_conversation(desk: Site) -> None:
    chat = subprocess.Popen(
        [*PAWL, "chat", "clerk", "--session", "s1"],
        cwd=ROOT,
        env={**os.environ, **desk.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert chat.stdin is not None
    chat.stdin.write(task(use(hold("never")), say("never")) + "\n")
    chat.stdin.flush()
    desk.leaves("hold")
    chat.send_signal(signal.SIGINT)
    output, errors = chat.communicate(task(say("still here")) + "\n", timeout=30)

    assert chat.returncode == 0, errors
    assert output.splitlines() == ["still here"]
    assert "is cancelled" in errors
    last, first = desk.client.runs(session="s1").runs
    assert (first.status, last.status) == (Status.CANCELLED, Status.COMPLETED)


class Terminal:
    """A terminal, seen from its user's side."""

    def __init__(self) -> None:
        self._mine, self.device = pty.openpty()
        self._seen = ""

    def type(self, line: str) -> None:
        """Types a line."""
        os.write(self._mine, f"{line}\n".encode())

    def paste(self, text: str) -> None:
        """Pastes a text, as terminals do that mark what was pasted."""
        os.write(self._mine, f"\x1b[200~{text}\x1b[201~".encode())

    def shows(self, words: str, *, upon: Callable[[], None] | None = None) -> str:
        """Waits until it shows something, behind what was waited for before. Returns what it showed until then.

        Args:
            upon: What makes it show that; done again as long as nothing is shown, for an interrupt that comes while a program
                turns to its input may be heard only with the next one.
        """
        deadline = time.monotonic() + 30
        if upon is not None:
            upon()
        while words not in self._seen:
            assert time.monotonic() < deadline, self._seen
            if select.select([self._mine], [], [], 1)[0]:
                self._seen += os.read(self._mine, 65536).decode(errors="replace")
            elif upon is not None:
                upon()
        before, _, self._seen = self._seen.partition(words)
        return before

    def close(self) -> None:
        """Takes it away."""
        os.close(self._mine)
        os.close(self.device)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal."""
    opened = Terminal()
    yield opened
    opened.close()


@pytest.fixture
def chat(site: Site, terminal: Terminal) -> Iterator[subprocess.Popen[bytes]]:
    """A conversation in the terminal."""
    process = subprocess.Popen(
        [*PAWL, "chat", "clerk", "--session", "s1"],
        cwd=ROOT,
        env={**os.environ, **site.environment, "TERM": "xterm"},
        stdin=terminal.device,
        stdout=terminal.device,
        stderr=terminal.device,
        start_new_session=True,
    )
    terminal.shows("> ")
    yield process
    process.kill()
    process.wait()


def test_a_terminal_shows_prompts_and_an_interrupt_at_one_says_how_to_leave(
    desk: Site, terminal: Terminal, chat: subprocess.Popen[bytes]
) -> None:
    terminal.type(task(use(pay(3)), say("paid")))
    terminal.shows("[y]es, [n]o, [e]dit?")
    terminal.type("y")
    terminal.shows("\npaid")
    terminal.shows("> ")
    terminal.shows("/exit leaves", upon=lambda: chat.send_signal(signal.SIGINT))
    terminal.shows("go on with", upon=lambda: terminal.type("/exit"))
    assert chat.wait(20) == 0


def test_a_pasted_text_is_one_message_and_nothing_typed_before_a_question_answers_it(
    desk: Site, terminal: Terminal, chat: subprocess.Popen[bytes]
) -> None:
    play = json.dumps(json.loads(task(use(hold("gate")), use(pay(3)), say("not paid"))), indent=1)
    terminal.paste(play.replace("\n", "\r"))
    terminal.type("")
    desk.leaves("hold")
    terminal.type("yes")
    desk.traces.open("gate")
    terminal.shows("(what was typed before this was asked is dropped)")
    terminal.shows("[y]es, [n]o, [e]dit?")
    terminal.type("no")
    terminal.shows("why?")
    terminal.type("too much")
    terminal.shows("\nnot paid")
    assert not desk.traces.found("pay")
    assert desk.client.session("s1").info().first_task.splitlines() == play.splitlines()
    assert len(desk.client.runs(session="s1").runs) == 1


def test_leaving_where_something_is_asked_keeps_the_question(
    desk: Site, terminal: Terminal, chat: subprocess.Popen[bytes]
) -> None:
    terminal.type(task(use(ask("Which?")), say("done")))
    terminal.shows("\n? ")
    terminal.type("/exit")
    terminal.shows("waits for you")
    terminal.shows("go on with")
    assert chat.wait(20) == 0
    (run,) = desk.client.runs(session="s1").runs
    assert [request.question for request in run.requests] == ["Which?"]


def test_why_a_message_is_not_answered_is_said_and_an_interrupt_that_no_worker_hears_ends_nothing_else(
    site: Site, terminal: Terminal, chat: subprocess.Popen[bytes]
) -> None:
    terminal.type(task(use(hold("never")), say("never")))
    terminal.shows("queued: no worker has the agent 'clerk'")
    worker = site.worker(targets=CLERK)
    site.leaves("hold")
    worker.kill()
    chat.send_signal(signal.SIGINT)
    terminal.shows("is asked to end; its worker has not answered yet")
    terminal.shows("> ")
    terminal.type(task(say("still here")))
    terminal.shows("queued: behind run")
    site.worker(targets=CLERK)
    terminal.shows("\nstill here")


def test_sessions_are_listed_shown_forgotten_and_deleted(desk: Site) -> None:
    for name in ("s1", "s2"):
        desk.client.submit("clerk", task(say(name)), session=name, tenant="acme").result(timeout=15)

    table = pawl(desk, "sessions").stdout.splitlines()
    assert table[0].split() == ["SESSION", "TENANT", "STATUS", "RUNS", "LAST", "ACTIVE", "BEGAN", "WITH"]
    assert [line.split()[:4] for line in table[1:]] == [["s2", "acme", "idle", "1"], ["s1", "acme", "idle", "1"]]
    page = pawl(desk, "sessions", "--tenant", "acme", "--limit", "1", "--json")
    place = re.search("--page '(.+)'", page.stderr)
    assert place is not None
    assert json.loads(page.stdout)["id"] == "s2"
    assert json.loads(pawl(desk, "sessions", "--json", "--limit", "1", "--page", place[1]).stdout)["id"] == "s1"

    shown = pawl(desk, "sessions", "show", "s1", "--tenant", "acme").stdout
    assert "status     idle" in shown
    assert 'began with [{"text":"s1"}]' in shown
    assert "completed" in shown
    whole = json.loads(pawl(desk, "sessions", "show", "s1", "--tenant", "acme", "--json").stdout)
    assert [run["status"] for run in whole["runs"]] == ["completed"]
    assert "There is no session 's1'" in pawl(desk, "sessions", "show", "s1", code=1).stderr

    assert pawl(desk, "sessions", "forget", "s1", "--tenant", "acme").stdout == "s1 forgotten\n"
    assert desk.client.session("s1", tenant="acme").info().first_task == ""
    assert pawl(desk, "sessions", "delete", "s2", "--tenant", "acme").stdout == "s2 deleted\n"
    assert [one.id for one in desk.client.sessions(tenant="acme").sessions] == ["s1"]
