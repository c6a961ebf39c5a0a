"""Long results: the model reads the beginning, and may read on."""

import asyncio

from agent import Agent, FunctionModel, ModelReply, ModelRequest, tool
from agent.aside import READ_RESULT
from agent.context_window import ContextManager
from agent.events import ToolReturned
from agent.models.scripted import call, say

TEXT = "".join(f"{number:04d} " for number in range(100))  # 500 characters


@tool(idempotent=True)
async def fetch() -> str:
    """Fetches a long text."""
    return TEXT


def run_of(*replies: ModelReply) -> tuple[list[ToolReturned], list[ModelRequest]]:
    seen: list[ModelRequest] = []

    def reply(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return replies[request.step - 1]

    agent = Agent("Read.", tools=[fetch], model=FunctionModel(reply), context=ContextManager(result_preview=200))
    result = asyncio.run(agent.run("Read it."))
    return [one.event for one in result.events if isinstance(one.event, ToolReturned)], seen


def test_the_model_reads_the_beginning_and_then_the_rest():
    returned, seen = run_of(
        call("fetch"), call(READ_RESULT, call="1.0", offset=200), call(READ_RESULT, call="1.0", offset=400), say("read")
    )
    assert READ_RESULT not in [one.name for one in seen[0].tools], "there is nothing to read on yet"
    assert READ_RESULT in [one.name for one in seen[1].tools]
    (first, second, third) = [message.content or "" for message in seen[3].messages if message.tool_call_id]
    assert first.startswith(TEXT[:200])
    assert "offset=200" in first
    assert (first[:200] + second[:200] + third) == TEXT
    assert returned[0].content == TEXT, "the whole is in the events"


def test_reading_on_where_there_is_nothing_says_so():
    returned, _ = run_of(
        call("fetch"), call(READ_RESULT, call="7.7", offset=0), call(READ_RESULT, call="1.0", offset=900), say("no")
    )
    assert [one.outcome for one in returned] == ["ok", "invalid", "invalid"]
    assert "1.0" in returned[1].content
    assert "500 characters" in returned[2].content
