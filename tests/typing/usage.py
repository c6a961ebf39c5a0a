"""What a type checker knows of the public face. Nothing here runs: checking this file is the test."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Sequence
from typing import assert_type

from pydantic import BaseModel

from agent import ActionContext, Agent, Budget, RunResult, ScriptedModel, Tool, ToolContext, build_tool, tool
from agent.events import Recorded


class Answer(BaseModel):
    """A typed result."""

    value: int


class Shop(ActionContext):
    """Dependencies."""

    stock: int


@tool
def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@tool(idempotent=True, timeout=3.0, on_unknown="retry")
async def fetch(url: str, shop: Shop, tool_context: ToolContext) -> list[str]:
    """Fetches."""
    return [url, str(shop.stock), tool_context.call_key]


async def a_tool_keeps_its_signature(shop: Shop, context: ToolContext) -> None:
    assert_type(add(1), int)
    assert_type(add(a=1, b=3), int)
    assert_type(await fetch("https://example.org", shop, context), list[str])
    add("one")  # pyright: ignore[reportArgumentType]
    assert_type(build_tool(add), Tool)


async def the_result_has_the_type_of_the_schema() -> None:
    agent = Agent("Answer.", output_schema=Answer, tools=[add, fetch], action_context=Shop(stock=1))
    assert_type(agent, Agent[Answer])
    result = await agent.run("Go.", budget=Budget(max_steps=3))
    assert_type(result, RunResult[Answer])
    assert_type(result.output.value, int)
    assert_type(result.events, Sequence[Recorded])
    assert_type(agent.run_sync("Go.").output, Answer)


def without_a_schema_the_result_is_text() -> None:
    agent = Agent("Write.", model=ScriptedModel([]))
    assert_type(agent, Agent[str])
    assert_type(agent.run_sync("Go.").output, str)


def other_types_will_do() -> None:
    assert_type(Agent("List.", output_schema=list[int]).run_sync("Go.").output, list[int])
    assert_type(Agent("Count.", output_schema=int), Agent[int])
