"""Models that answer from a script or a function."""

import asyncio
from collections.abc import Awaitable

import pytest

from agent.errors import ModelRefusedRequest, ModelUnavailable
from agent.messages import Message, Role
from agent.models.base import ModelClient, ModelReply, ModelRequest, RawToolCall
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, calls, say, with_usage


def request(
    step: int = 1, *, run_id: str = "r1", attempt: int = 1, timeout: float = 1.0, text: str = ""
) -> ModelRequest:
    messages = [Message(role=Role.USER, content=text)]
    return ModelRequest(messages, max_tokens=10, run_id=run_id, step=step, attempt=attempt, timeout=timeout)


def ask(model: ModelClient, *requests: ModelRequest) -> list[ModelReply]:
    async def answers() -> list[ModelReply]:
        return [await model.complete(each) for each in requests]

    return asyncio.run(answers())


def test_replies_follow_the_step_and_not_the_number_of_requests():
    model = ScriptedModel([say("one"), say("two")])
    assert [reply.content for reply in ask(model, request(2), request(1), request(2))] == ["two", "one", "two"]


def test_calls_are_written_as_they_read():
    assert call("add", a=200, b=10) == ModelReply(
        tool_calls=(RawToolCall("add", {"a": 200, "b": 10}),), finish_reason="tool_calls"
    )
    together = calls(call("add", tool="x"), call("now"))
    assert together.tool_calls == (RawToolCall("add", {"tool": "x"}), RawToolCall("now", {}))
    assert with_usage(say("x"), input_tokens=3, output_tokens=1).input_tokens == 3


def test_replies_by_run_and_step():
    by_mapping = ScriptedModel({("r1", 1): say("first"), ("r2", 1): say("second")})
    assert [reply.content for reply in ask(by_mapping, request(run_id="r2"), request(run_id="r1"))] == [
        "second",
        "first",
    ]
    by_function = ScriptedModel(lambda run_id, step: say(f"{run_id} {step}"))
    assert ask(by_function, request(7))[0].content == "r1 7"


def test_a_script_that_is_used_up_says_so():
    for model in (ScriptedModel([say("only")]), ScriptedModel({("other", 2): say("x")})):
        with pytest.raises(ModelRefusedRequest, match="no reply for step 2 of run 'r1'"):
            ask(model, request(2))


def test_failures_come_at_their_step_and_attempt():
    busy = ModelUnavailable("busy", retry_after=2)
    model = ScriptedModel([say("one"), say("two")], failures={(2, 1): busy})
    assert ask(model, request(1), request(2, attempt=2))[1].content == "two"
    with pytest.raises(ModelUnavailable) as caught:
        ask(model, request(2))
    assert caught.value is busy


def test_failures_may_be_computed():
    model = ScriptedModel([say("x")], failures=lambda asked: ModelUnavailable("odd") if asked.attempt % 2 else None)
    assert ask(model, request(attempt=2))[0].content == "x"
    with pytest.raises(ModelUnavailable):
        ask(model, request(attempt=3))


def test_an_error_in_the_script_fails_every_attempt():
    model = ScriptedModel([ModelRefusedRequest("no")])
    for attempt in (1, 2):
        with pytest.raises(ModelRefusedRequest):
            ask(model, request(attempt=attempt))


def test_latency_beyond_the_timeout_times_out_and_may_be_billed():
    model = ScriptedModel([say("late")], latency=60)
    with pytest.raises(ModelUnavailable) as caught:
        ask(model, request(timeout=0.01))
    assert caught.value.billed


def test_a_function_may_answer_with_a_text_or_a_reply_at_once_or_later():
    async def later(asked: ModelRequest) -> str:
        await asyncio.sleep(0)
        return f"later: {asked.messages[-1].content}"

    def at_once(asked: ModelRequest) -> ModelReply:
        return call("echo", text=asked.messages[-1].content)

    def waits(asked: ModelRequest) -> Awaitable[str]:
        return later(asked)

    assert ask(FunctionModel(later), request(text="x"))[0] == say("later: x")
    assert ask(FunctionModel(waits), request(text="x"))[0] == say("later: x")
    assert ask(FunctionModel(at_once), request(text="x"))[0] == call("echo", text="x")
