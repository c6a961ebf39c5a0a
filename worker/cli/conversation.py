"""A conversation in the terminal: what a person types becomes runs, and what runs ask is asked."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from dataclasses import replace
from typing import Any, Final, cast

from agent.errors import ConfigurationError, Conflict, PawlError, SessionNotFound
from agent.events import (
    ContextCompacted,
    Event,
    ModelFailed,
    ModelReplied,
    Remembered,
    ReplyRejected,
    RunBudgetExceeded,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunReleased,
    RunRequeued,
    ToolReturned,
)
from scheduler.client import Client, Request, RunHandle
from scheduler.client.run_info import error_in
from worker.cli.chat import new_session
from worker.cli.errors import complain, complaining_of_warnings
from worker.cli.event_lines import happened
from worker.cli.output import print_table, say
from worker.cli.sessions import COLUMNS, session_rows
from worker.cli.standstill import Standstill
from worker.cli.submitting import print_output
from worker.cli.text import clock, one_line
from worker.cli.typed_lines import Lines

CANCEL_SECONDS: Final = 5.0
SHOWN: Final = (ModelFailed, ReplyRejected, ToolReturned, Remembered, ContextCompacted, RunRequeued)
"""Events that are worth a line while a run goes on; a reply is, if it calls tools."""

EXIT: Final = "/exit"
HELP: Final = """\
/sessions        list your conversations
/switch SESSION  go on with another one
/new             begin a new one
/exit            leave, also where something is asked; the conversation is kept
Ctrl-C           end the run at work
A message that begins with / needs a space in front."""


class _Leaves(Exception):
    """There is nobody any more who could answer."""


class Conversation:
    """One person's talk with one agent, in one session at a time."""

    def __init__(self, client: Client, agent: str, tenant: str, lines: Lines) -> None:
        self._client = client
        self._agent = agent
        self._tenant = tenant
        self._lines = lines
        self._session = ""
        self._unseen: tuple[RunHandle[object], int] | None = (
            None  # a run that an outage took out of sight, and behind what
        )

    def talk(self, session: str) -> None:
        """Talks until the person leaves."""
        with contextlib.suppress(_Leaves):  # as at the end of the lines
            self._enter(session)
            while (line := self._next_line()) is not None and line.rstrip() != EXIT:
                self._hear(line)
        tenant = f" --tenant {shlex.quote(self._tenant)}" if self._tenant else ""
        say(f"go on with: pawl chat {self._agent} --session {shlex.quote(self._session)}{tenant}")

    def _hear(self, line: str) -> None:
        """Does what a line says. What goes wrong with it does not end the conversation."""
        try:
            if line.startswith("/"):
                self._obey(line.strip())
            elif self._unseen is not None:
                self._catch_up(*self._unseen)
                if line.strip():
                    say(f"not sent: {one_line(line)}")
            else:
                self._say(line.strip())
        except KeyboardInterrupt:
            say(f"\ninterrupted; whether it was sent is not known: /switch {self._session} shows it")
        except PawlError as error:
            complain(str(error))
            if self._unseen is not None:
                say(f"run {self._unseen[0].id} goes on all the same; Enter looks at it again")

    def _next_line(self) -> str | None:
        try:
            return self._lines.read("> ")
        except KeyboardInterrupt:
            say("\n/exit leaves")
            return ""

    def _obey(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        match command:
            case "/sessions":
                found = self._client.sessions(tenant=self._tenant)
                mine = [one for one in found.sessions if one.tenant == self._tenant]
                print_table(COLUMNS, session_rows(replace(found, sessions=mine)))
            case "/switch" if argument.strip():
                self._enter(argument.strip())
            case "/new":
                self._enter(new_session())
            case "/help":
                say(HELP)
            case _:
                say(f"{line} is no command; these are:\n{HELP}")

    def _enter(self, session: str) -> None:
        """Goes to a session, and on with the run that it works on."""
        try:
            info = self._client.session(session, tenant=self._tenant).info()
        except SessionNotFound:
            info = None
        self._session, self._unseen = session, None
        say(f"session {session}")
        if info is None:
            return
        say(f"it began with: {one_line(info.first_task)}")
        if info.active:
            self._follow(self._client.get(info.active))

    def _say(self, text: str) -> None:
        if text:
            with complaining_of_warnings():
                run = self._client.submit(self._agent, text, session=self._session, tenant=self._tenant)
            self._answer_the_one_before(run)
            self._follow(run)

    def _answer_the_one_before(self, run: RunHandle[object]) -> None:
        """A run of somebody else in this conversation that waits for a person would let this one wait for ever."""
        active = self._client.session(self._session, tenant=self._tenant).info().active
        if active and active != run.id:
            before = self._client.get(active)
            if before.info().requests:
                say(f"run {active} of this conversation waits for you first")
                self._catch_up(before, 0)

    def _catch_up(self, run: RunHandle[object], seen: int) -> None:
        """Asks what a run asks now, and goes on with it behind what was seen of it."""
        self._unseen = (run, seen)
        self._answer(run)
        self._follow(run, seen)

    def _follow(self, run: RunHandle[object], seen: int = 0) -> None:
        """Shows how a run goes on, asks what it asks, and shows what it comes to. An interrupt ends the run."""
        standstill = Standstill(run)
        self._unseen = (run, seen)
        try:
            for recorded in run.events(seen, follow=True):
                event = recorded.event
                self._unseen = (run, recorded.seq)
                standstill.heed(event)
                self._show(event)
                if isinstance(event, RunCompleted | RunFailed | RunCancelled):
                    break
                if isinstance(event, RunReleased) and event.why == "waiting":
                    standstill.stop()
                    self._answer(run)
                    standstill.start()
        except KeyboardInterrupt:
            self._end(run)
        except _Leaves:
            say(f"run {run.id} waits for you")
            raise
        finally:
            standstill.stop()
        self._unseen = None

    def _end(self, run: RunHandle[object]) -> None:
        outcome = run.cancel()
        try:
            status = run.wait(CANCEL_SECONDS).status
        except TimeoutError:
            say(f"\nrun {run.id} is asked to end; its worker has not answered yet")
            return
        say(f"\nrun {run.id} {'had ended before' if outcome == 'over' else f'is {status}'}")

    def _show(self, event: Event) -> None:
        match event:
            case RunCompleted(output=output):
                print_output(output)
                sys.stdout.flush()
            case RunFailed() | RunBudgetExceeded() | RunCancelled():
                complain(error_in(event))
            case ModelReplied(calls=calls) if calls:
                say(f"  {happened(event)}")
            case _ if isinstance(event, SHOWN):
                say(f"  {happened(event).lstrip()}")
            case _:
                pass

    def _answer(self, run: RunHandle[object]) -> None:
        """Asks the person all that a run asks now."""
        for request in run.info().requests:
            try:
                self._reply(run, request) if request.kind == "reply" else self._decide(run, request)
            except Conflict as error:  # somebody else was faster, or its deadline is past
                complain(str(error))

    def _ask(self, prompt: str, *, afresh: bool = False) -> str:
        line = self._lines.read(prompt, afresh=afresh)
        if line is None or line.strip() == EXIT:
            raise _Leaves
        return line.strip()

    def _reply(self, run: RunHandle[object], request: Request) -> None:
        prompt = f"{request.question}{_until(request)}\n? "
        text = self._ask(prompt, afresh=True)
        while not text:
            text = self._ask(prompt)
        run.reply(text, request=request.id)

    def _decide(self, run: RunHandle[object], request: Request) -> None:
        prompt, afresh = f"{request.question}{_until(request)}\n[y]es, [n]o, [e]dit? ", True
        while True:
            choice = self._ask(prompt, afresh=afresh).lower()
            afresh = False
            if choice in ("y", "yes"):
                return run.approve(request.id)
            if choice in ("n", "no"):
                return run.reject(request.id, reason=self._ask("why? "))
            if choice in ("e", "edit") and (arguments := _object(self._ask("arguments (JSON)? "))) is not None:
                try:
                    return run.approve(request.id, arguments=arguments)
                except ConfigurationError as error:
                    complain(str(error))


def _until(request: Request) -> str:
    return "" if request.deadline is None else f" (until {clock(request.deadline)})"


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that was typed; None, and a word why, where it is none."""
    try:
        found: object = json.loads(text)
    except ValueError as error:
        say(f"not JSON: {error}")
        return None
    if not isinstance(found, dict):
        say("not a JSON object")
        return None
    return cast("dict[str, Any]", found)
