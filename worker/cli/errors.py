"""What goes wrong, as one line on stderr and an exit code. No traceback for what a user can mend."""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Generator
from enum import IntEnum
from typing import cast

import typer

from scheduler.printable import printable

Verb = Callable[..., int]
"""What a verb is: it takes what the command line says, and returns an exit code."""


class ExitCode(IntEnum):
    """How `pawl` ends."""

    OK = 0
    FAILED = 1  # the run came to no result, or what was asked for cannot be done
    USAGE = 2  # arguments, settings or agents are wrong
    UNREACHABLE = 3  # Redis
    WAITING = 4  # the run waits for a person
    TIMEOUT = 5  # the run goes on
    INTERRUPTED = 130


EXIT_CODES = (
    "Exit codes: 0 done; 1 the run came to no result, or what was asked for cannot be done; 2 wrong arguments or settings; "
    "3 Redis cannot be reached; 4 the run waits for a person; 5 it did not end in time and goes on; 130 interrupted."
)


def reported(verb: Verb) -> Callable[..., None]:
    """Runs a verb. Errors of Pawl become one line; others are bugs and stay what they are."""

    @functools.wraps(verb)
    def run(**arguments: object) -> None:
        try:
            code = verb(**arguments)
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:  # `pawl runs | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.OK) from None
        except Exception as error:
            known = _known(error)
            if known is None:
                raise
            complain(str(known))
            raise typer.Exit(exit_code_of(known)) from None
        raise typer.Exit(code)

    return run


@contextlib.contextmanager
def complaining_of_warnings() -> Generator[None]:
    """Warnings of the block become lines on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        complain(str(warning.message))


def complain(words: str) -> None:
    """One line on stderr."""
    typer.echo(f"pawl: {printable(' '.join(words.split()))}", err=True)


def exit_code_of(error: Exception) -> ExitCode:
    """The exit code that an error means."""
    from agent.errors import ConfigurationError, RunWaiting, StoreUnavailable  # noqa: PLC0415

    match error:
        case StoreUnavailable():
            return ExitCode.UNREACHABLE
        case ConfigurationError():
            return ExitCode.USAGE
        case RunWaiting():
            return ExitCode.WAITING
        case TimeoutError():
            return ExitCode.TIMEOUT
        case _:
            return ExitCode.FAILED


def _known(error: Exception) -> Exception | None:
    """The error that a user can understand, if it is one; also where it comes alone in a group."""
    from agent.errors import PawlError  # noqa: PLC0415
    from scheduler.unavailable import mapped_if_redis  # noqa: PLC0415

    alone = _alone(error)
    return alone if isinstance(alone, PawlError | TimeoutError) else mapped_if_redis(alone)


def _alone(error: Exception) -> Exception:
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        return _alone(group.exceptions[0]) if len(group.exceptions) == 1 else group
    return error
