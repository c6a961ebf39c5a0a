"""A model that can read less than its agent thinks: the older half of the window leaves it, and the run goes on."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.agent import Agent
from agent.context_window import ContextManager, Strategy
from agent.conversation import Conversation, tokens_of
from agent.errors import ContextExceeded, RunFailed
from agent.events import ContextCompacted, ModelFailed, ReplyRejected
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.openai import OpenAIModel
from agent.models.scripted import call, say
from agent.result import RunResult
from agent.state import Checkpoint, RunState
from agent.tools import tool
from tests.support.engine import assert_valid
from tests.support.model_server import ModelServer, chat_reply, http_answer
from tests.support.stepping import failed, next_of, program, replied, start

TOO_LONG = ContextExceeded("This model's maximum context length is less.", status=400)
STEPS = 20


@tool(idempotent=True)
async def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page} " + "of many words " * 60


def size_of(request: ModelRequest) -> int:
    return sum(tokens_of(message) for message in request.messages)


def run(
    full: Callable[[ModelRequest], ModelReply],
    can_read: int,
    *,
    context: ContextManager | None = None,
    max_attempts: int = 6,
) -> tuple[RunResult[str], list[ModelRequest]]:
    """A run of twenty steps, and its requests.

    Args:
        full: The answer to a request of more tokens than `can_read`.
    """
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> ModelReply:
        seen.append(request)
        if size_of(request) > can_read:
            return full(request)
        if request.purpose == "summary":
            return say("the summary of a model")
        return call("look", page=request.step) if request.step < STEPS else say("done")

    model = FunctionModel(reply)
    agent = Agent("Look.", tools=[look], model=model, context=context or ContextManager(), max_attempts=max_attempts)
    return agent.run_sync("The task: look at all pages."), seen


def refuse(request: ModelRequest) -> ModelReply:
    raise TOO_LONG


@pytest.mark.parametrize("strategy", ["window", "summary", "llm_summary"])
def test_the_run_goes_on_with_a_smaller_window(strategy: Strategy):
    """case-017: compact, retry. No attempt is used up by it, and no step."""
    result, seen = run(refuse, 1500, context=ContextManager(strategy=strategy), max_attempts=1)
    assert result.output == "done"
    assert result.steps == STEPS
    events = [recorded.event for recorded in result.events]
    refused = [index for index, event in enumerate(events) if isinstance(event, ModelFailed)]
    assert len(refused) > 1
    for index in refused:
        event, compaction = events[index : index + 2]
        assert isinstance(event, ModelFailed)
        assert (event.retry_ms, event.reason, event.usage.model_calls) == (0, "model_refused_request", 0)
        assert isinstance(compaction, ContextCompacted)
    for request in seen:
        assert any("look at all pages" in (message.content or "") for message in request.messages)
        assert_valid([message for message in request.messages if message.role is not Role.SYSTEM])
    again = RunState.restore(Checkpoint(), result.events)
    assert again.head.attempts == 0


def test_a_reply_that_the_full_context_cut_makes_room_as_well():
    """case-017: a success by its status, which says why it is cut."""
    cut = ModelReply(content="Half of", finish_reason="model_context_window_exceeded")
    result, _ = run(lambda request: cut, 1500)
    assert result.output == "done"
    kinds = [type(recorded.event) for recorded in result.events]
    assert ContextCompacted in kinds
    assert all(after is ContextCompacted for before, after in pairwise(kinds) if before is ReplyRejected)


def test_one_that_the_output_limit_cut_does_not():
    state, machine = start(), program()
    for _ in range(3):
        replied(state, machine, call("nothing_such"))
    assert ContextCompacted not in map(type, replied(state, machine, ModelReply(content="x", finish_reason="length")))
    assert state.conversation.window == 0


def test_where_nothing_more_can_leave_the_run_says_what_to_do():
    state, machine = start(), program()
    events = failed(state, machine, TOO_LONG)
    assert [event.type for event in events] == ["model_failed", "run_failed"]
    assert next_of(state, machine) is not None
    with pytest.raises(RunFailed) as ended:
        run(refuse, 10)
    assert ended.value.reason == "model_refused_request"
    for words in ("even with the newest messages only", "ContextManager(max_tokens=...)", "maximum context length"):
        assert words in str(ended.value)


def test_the_newest_exchange_alone_may_be_too_long():
    """Each time something leaves, so that it ends; the exchange that is too long is never parted."""
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> ModelReply:
        seen.append(request)
        if request.step > 5:
            raise TOO_LONG
        return call("look", page=request.step)

    with pytest.raises(RunFailed, match="newest messages only"):
        Agent("Look.", tools=[look], model=FunctionModel(reply)).run_sync("The task.")
    refused = seen[5:]
    assert 2 <= len(refused) <= 6
    assert [message.role for message in refused[-1].messages][-2:] == [Role.ASSISTANT, Role.TOOL]


def test_a_summary_that_is_too_long_to_be_asked_for_is_had_without_the_model():
    context = ContextManager(max_tokens=1500, recent_messages=8, strategy="llm_summary")
    summaries: list[ModelRequest] = []

    def reply(request: ModelRequest) -> ModelReply:
        if request.purpose == "summary":
            summaries.append(request)
            raise TOO_LONG
        return call("look", page=request.step) if request.step < STEPS else say("done")

    result = Agent("Look.", tools=[look], model=FunctionModel(reply), context=context).run_sync("The task.")
    assert result.output == "done"
    compactions = [one.event for one in result.events if isinstance(one.event, ContextCompacted)]
    assert len(compactions) == len(summaries) > 0


def test_a_server_says_so_and_is_asked_with_less():
    """The whole way: a refusal by HTTP, and the next request without the older half."""
    calls = [{"id": "c", "function": {"name": "look", "arguments": '{"page": 1}'}}]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    asks = http_answer(chat_reply({"content": None, "tool_calls": calls}, usage=usage))
    refusal = http_answer({"error": {"code": "context_length_exceeded", "message": "Too much."}}, status=400)
    done = http_answer(chat_reply({"content": "done"}, usage=usage))
    with ModelServer(asks, asks, asks, refusal, done) as server:
        model = OpenAIModel("m", base_url=server.url)
        assert Agent("Look.", tools=[look], model=model).run_sync("The task.").output == "done"
    before, after = (request.body["messages"] for request in server.received[-2:])
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert len(after) < len(before)  # pyright: ignore[reportUnknownArgumentType]


@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=500)), max_size=30), st.integers(2, 40))
def test_a_window_is_halved_between_exchanges_until_one_is_left(turns: list[tuple[int, str]], recent_messages: int):
    """case-066"""
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="the task"))
    for number, (calls, text) in enumerate(turns):
        made = tuple(ToolCall(id=f"c{number}.{n}", name="look") for n in range(calls))
        conversation.append(Message(role=Role.ASSISTANT, content=text, tool_calls=made))
        for one in made:
            conversation.append(Message(role=Role.TOOL, tool_call_id=one.id, name="look", content=text))
    window = ContextManager(recent_messages=recent_messages)
    newest = max(index for index, one in enumerate(conversation.messages) if one.role is not Role.TOOL)
    while (index := window.halved(conversation)) is not None:
        tokens = conversation.window_tokens
        assert conversation.window < index <= newest
        conversation.move_window(index)
        assert_valid(conversation.messages[index:])
        assert conversation.window_tokens <= tokens // 2 or index == newest
    assert conversation.window == newest
