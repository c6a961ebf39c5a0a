"""What type checkers know of the client. Nothing here runs: pyright and mypy check it, and each error must be one."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from typing import assert_type

from pydantic import BaseModel

from agent import Agent, RunResult
from agent.events import Recorded
from scheduler import AsyncClient, AsyncRunHandle, Client, RunHandle, RunInfo


class Answer(BaseModel):
    """A typed result."""

    value: int


typed = Agent("Answer.", name="typed", output_schema=Answer)
plain = Agent("Answer.", name="plain")


def an_agent_types_what_comes_back(client: Client) -> None:
    assert_type(client.submit(typed, "x"), RunHandle[Answer])
    assert_type(client.submit(typed, "x").result(timeout=1), RunResult[Answer])
    assert_type(client.submit(plain, "x").result().output, str)
    assert_type(client.get("0-1", typed), RunHandle[Answer])


def a_name_alone_does_not(client: Client) -> None:
    run = client.submit("typed", "x")
    assert_type(run, RunHandle[object])
    assert_type(run.result().output, object)
    assert_type(client.get("0-1"), RunHandle[object])
    assert_type(run.wait(), RunInfo)
    assert_type([recorded for recorded in run.events(after=3, follow=True)], list[Recorded])  # noqa: C416


async def awaited_it_is_the_same(client: AsyncClient) -> None:
    run = await client.submit(typed, "x")
    assert_type(run, AsyncRunHandle[Answer])
    assert_type((await run.result()).output, Answer)
    assert_type([recorded async for recorded in run.events()], list[Recorded])


def what_is_no_limit_and_no_priority_is_refused(client: Client) -> None:
    client.submit("typed", "x", priority="urgent")  # type: ignore[call-overload]
    client.get("0-1").add_budget(max_stepz=1)  # type: ignore[call-arg]
