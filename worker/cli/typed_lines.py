"""What a person types, line by line: in a terminal, or in a pipe."""

from __future__ import annotations

import contextlib
import select
import sys
from importlib import import_module
from typing import Any

from scheduler.printable import printable
from worker.cli.output import say


class Lines:
    """What a person types, line by line; in a pipe, the lines of stdin."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._termios: Any = None
        if self._terminal:
            with contextlib.suppress(ImportError):  # not on every system
                readline = import_module("readline")  # input() then edits lines, and knows earlier ones
                readline.parse_and_bind(
                    "set enable-bracketed-paste on"
                )  # a pasted text is one message, whatever its lines
                self._termios = import_module("termios")

    def read(self, prompt: str, *, afresh: bool = False) -> str | None:
        """The next line; None when there is no more.

        Args:
            afresh: In a terminal only what is typed from now on counts. What was typed before a question was shown, or pasted,
                is no answer to it.
        """
        if not self._terminal:
            say(prompt.rstrip())
            line = sys.stdin.readline()
            return line.rstrip("\n") if line else None
        if afresh:
            self._drop_what_was_typed()
        try:
            return input(printable(prompt))
        except EOFError:
            say("")
            return None

    def _drop_what_was_typed(self) -> None:
        if self._termios is None:
            return
        if select.select([sys.stdin], [], [], 0)[0]:
            say("  (what was typed before this was asked is dropped)")
        self._termios.tcflush(sys.stdin, self._termios.TCIFLUSH)
