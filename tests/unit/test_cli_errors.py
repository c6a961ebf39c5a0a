"""Errors of Pawl become one line and an exit code; bugs stay what they are."""

import pytest
import redis.exceptions
import typer

from agent.errors import (
    AgentDefinitionError,
    BrokenRecord,
    BudgetExceeded,
    ConfigurationError,
    Conflict,
    NotResumable,
    RunCancelled,
    RunFailed,
    RunNotFound,
    RunWaiting,
    StoreUnavailable,
    TooLarge,
    UnknownPriceError,
)
from worker.cli.errors import ExitCode, reported
from worker.cli.working import run


def outcome_of(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    def verb() -> int:
        raise error

    with pytest.raises(typer.Exit) as exited:
        reported(verb)()
    return exited.value.exit_code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunFailed("x", run_id="r", reason="refused"), ExitCode.FAILED),
        (BudgetExceeded("x", run_id="r", limit="max_steps"), ExitCode.FAILED),
        (RunCancelled("x", run_id="r"), ExitCode.FAILED),
        (RunNotFound("x"), ExitCode.FAILED),
        (Conflict("x"), ExitCode.FAILED),
        (NotResumable("x"), ExitCode.FAILED),
        (BrokenRecord("x"), ExitCode.FAILED),
        (TooLarge("x"), ExitCode.FAILED),
        (ConfigurationError("x"), ExitCode.USAGE),
        (AgentDefinitionError("x"), ExitCode.USAGE),
        (UnknownPriceError("x"), ExitCode.USAGE),
        (StoreUnavailable("x"), ExitCode.UNREACHABLE),
        (ExceptionGroup("many", [StoreUnavailable("x")]), ExitCode.UNREACHABLE),
        (RunWaiting("x", run_id="r"), ExitCode.WAITING),
        (TimeoutError("x"), ExitCode.TIMEOUT),
    ],
)
def test_each_error_has_its_exit_code_and_one_line(
    error: Exception, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome_of(error, capsys) == (code, "pawl: x\n")


def test_an_error_of_redis_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, words = outcome_of(redis.exceptions.ConnectionError("refused"), capsys)

    assert (code, words.count("\n")) == (3, 1)
    assert words.startswith("pawl: Redis cannot be reached")


def test_an_interrupt_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome_of(KeyboardInterrupt(), capsys) == (130, "")


def test_a_message_of_many_lines_is_one_line_that_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome_of(ConfigurationError("first\n  second \x1b[2J"), capsys) == (2, "pawl: first second \\x1b[2J\n")


@pytest.mark.parametrize("bug", [ZeroDivisionError("x"), ExceptionGroup("two", [Conflict("a"), Conflict("b")])])
def test_a_bug_keeps_its_traceback(bug: Exception) -> None:
    def verb() -> int:
        raise bug

    with pytest.raises(type(bug)):
        reported(verb)()


def test_a_verb_that_ends_well_gives_its_own_code() -> None:
    with pytest.raises(typer.Exit) as exited:
        reported(lambda: ExitCode.TIMEOUT)()

    assert exited.value.exit_code == 5


def test_a_run_in_process_that_asks_says_how_a_person_answers_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def untouched(**_: object) -> None: ...

    monkeypatch.setattr("scheduler.log.configure", untouched)  # the log of the process that tests
    with pytest.raises(typer.Exit) as exited:
        reported(run)(limits={}, target="examples.assistant", task="Multiply two numbers.")

    said = capsys.readouterr().err.splitlines()[-1]
    assert exited.value.exit_code == ExitCode.WAITING
    assert " asks: Which numbers? (" in said
    for verb in ("pawl submit assistant ...", "pawl reply RUN TEXT", "pawl approve RUN", "pawl chat assistant"):
        assert f"`{verb}`" in said
    assert "answer=" not in said
