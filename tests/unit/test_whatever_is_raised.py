"""Whatever code of the author's raises harms its own run only: an error for the model, or a failure with words."""

import asyncio
from typing import NoReturn

import pytest

from agent import ActionContext, Agent, RunIdentity, ScriptedModel, tool
from agent.agent import RunResult
from agent.errors import ConfigurationError, RunFailed, ToolError
from agent.events import ToolReturned
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.scripted import call, say
from agent.text import words_of
from tests.support import virtual_time


class Silent(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Exiting(Exception):
    """Its text ends the process."""

    def __str__(self) -> str:
        raise SystemExit(3)


ENDING = [
    SystemExit(1),
    KeyboardInterrupt(),
    GeneratorExit(),
    BaseException("bare"),
    BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError("no")]),
]
"""What is no `Exception`, and ends processes where nobody catches it."""

ERRORS = [
    *ENDING,
    ExceptionGroup("several", [ValueError("no")]),
    Silent(),
    Exiting(),
    MemoryError(),
    StopIteration(1),
    StopAsyncIteration(),
    TimeoutError("its own"),
    ValueError("\ud800\x00"),
]
each_error = pytest.mark.parametrize(
    "error", [*ERRORS, asyncio.CancelledError()], ids=lambda error: type(error).__name__
)


def run(agent: Agent[str]) -> RunResult[str]:
    return virtual_time.run(agent.run("go"))


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@each_error
def test_a_tool_that_raises_it_tells_the_model(error: BaseException, is_async: bool) -> None:
    async def fail_async() -> str:
        raise error

    def fail_sync() -> str:
        raise error

    failing = tool(fail_async if is_async else fail_sync, name="fail")
    result = run(Agent("Go.", tools=[failing], model=ScriptedModel([call("fail"), say("done")])))
    (returned,) = [one.event for one in result.events if isinstance(one.event, ToolReturned)]
    assert (result.output, returned.outcome) == ("done", "error")
    assert returned.content


@each_error
def test_a_validator_that_raises_it_refuses_the_result(error: BaseException) -> None:
    def check(output: str) -> NoReturn:
        raise error

    script = ScriptedModel([call("terminate", result="no")] * 9)
    with pytest.raises(RunFailed):
        run(Agent("Go.", output_schema=str, output_validators=[check], model=script))


@each_error
def test_a_model_client_that_raises_it_fails_its_run(error: BaseException) -> None:
    async def fail(request: ModelRequest) -> ModelReply:
        raise error

    with pytest.raises(RunFailed, match=r"function: |no reply from function|cancelled by the model client's own code"):
        run(Agent("Go.", model=FunctionModel(fail)))


@pytest.mark.parametrize("error", [*ENDING, asyncio.CancelledError()], ids=lambda error: type(error).__name__)
def test_dependencies_of_a_run_that_raise_it_are_a_wrong_configuration(error: BaseException) -> None:
    async def make(identity: RunIdentity) -> ActionContext:
        raise error

    with pytest.raises(ConfigurationError, match=f"action_context=make: {type(error).__name__}"):
        run(Agent("Go.", model=ScriptedModel([say("done")]), action_context=make))


@pytest.mark.parametrize("answer", [None, 3, b"text", ["text"], {"content": "text"}])
def test_a_function_that_answers_something_else_fails_its_run(answer: object) -> None:
    with pytest.raises(RunFailed, match=f"must return a ModelReply or a text, not {type(answer).__name__}"):
        run(Agent("Go.", model=FunctionModel(lambda request: answer)))  # pyright: ignore[reportArgumentType]


def test_the_words_of_an_error_can_always_be_had() -> None:
    assert words_of(ValueError("no")) == "ValueError: no"
    assert words_of(Silent()) == "Silent (its text cannot be had)"
    assert words_of(Exiting()) == "Exiting (its text cannot be had)"
    assert words_of(ToolError("told")) == "ToolError: told"
