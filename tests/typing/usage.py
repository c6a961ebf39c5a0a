"""What type checkers know of the public face. Nothing here runs: pyright and mypy check it, and each error must be one."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_type

from pydantic import BaseModel
from typing_extensions import TypedDict

from agent import ActionContext, Agent, Budget, RunResult, ScriptedModel, Tool, ToolContext, build_tool, tool
from agent.events import Recorded
from agent.toolbox import ask_user, calculator, file_tools, now


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
    add("one")  # type: ignore[arg-type]
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


class Missing(BaseModel):
    """A result of another kind."""

    why: str


@dataclass
class Point:
    """A result that is a dataclass."""

    x: int


class Route(TypedDict):
    """A result that is a dict."""

    stops: list[str]


def every_type_will_do() -> None:
    assert_type(Agent("Count.", output_schema=int), Agent[int])
    assert_type(Agent("Point.", output_schema=Point).run_sync("Go.").output.x, int)
    assert_type(Agent("Plan.", output_schema=Route).run_sync("Go.").output["stops"], list[str])
    assert_type(Agent("List.", output_schema=list[Answer]).run_sync("Go.").output, list[Answer])
    assert_type(Agent("Map.", output_schema=dict[str, list[int]]).run_sync("Go.").output, dict[str, list[int]])
    assert_type(Agent("Find.", output_schema=Answer | Missing).run_sync("Go.").output, Answer | Missing)
    assert_type(Agent("Look.", output_schema=Answer | None).run_sync("Go.").output, Answer | None)
    assert_type(Agent("Decide.", output_schema=Literal["yes", "no"]).run_sync("Go.").output, Literal["yes", "no"])
    assert_type(Agent("Act.", output_schema=None), Agent[None])


def positive(answer: Answer) -> Answer:
    """A validator."""
    return answer


async def known(answer: Answer) -> Answer:
    """Another one."""
    return answer


def short(text: str) -> str:
    """One for texts."""
    return text


def validators_take_the_type_of_the_result() -> None:
    assert_type(Agent("Answer.", output_schema=Answer, output_validators=[positive, known]), Agent[Answer])
    assert_type(Agent("Write.", output_validators=[short]), Agent[str])
    Agent("Answer.", output_schema=Answer, output_validators=[short])  # type: ignore[list-item]
    Agent("Write.", output_validators=[positive])  # type: ignore[list-item]


def what_is_no_type_is_an_error() -> None:
    Agent("Answer.", output_schema=3)  # type: ignore[call-overload]


def ready_made_tools_are_tools() -> None:
    assert_type(calculator("1 + 1"), int | float)
    Agent("Help.", tools=[*file_tools("data"), file_tools("notes").read_file, calculator, now, ask_user])
