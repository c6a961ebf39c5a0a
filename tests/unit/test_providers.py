"""Where dependencies come from, and how long they live."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from agent.context import ActionContext, RunIdentity
from agent.errors import AgentDefinitionError, ContextTypeError
from agent.providers import ContextProvider, Lifetime

ONE, TWO = RunIdentity(run_id="one"), RunIdentity(run_id="two")

happened: list[str] = []


class Shop(ActionContext):
    name: str = "shop"


class Needy(ActionContext):
    api_key: str


def make() -> Shop:
    happened.append("made")
    return Shop()


async def make_async() -> Shop:
    happened.append("made")
    return Shop()


def make_later() -> Awaitable[Shop]:
    return make_async()


def make_for_run(run: RunIdentity) -> Shop:
    happened.append(f"made for {run.run_id}")
    return Shop(name=run.run_id)


async def make_for_run_async(run: RunIdentity, greeting: str = "made") -> "Shop":
    happened.append(f"{greeting} for {run.run_id}")
    return Shop(name=run.run_id)


@asynccontextmanager  # pyright: ignore[reportDeprecated] - as users write it
async def opening() -> AsyncIterator[Shop]:
    happened.append("opened")
    yield Shop()
    happened.append("closed")


async def generating() -> AsyncGenerator[Shop, None]:
    happened.append("opened")
    yield Shop()
    happened.append("closed")


def opening_plainly() -> AbstractAsyncContextManager[Shop]:
    return opening()


def contexts_of(source: object) -> tuple[ActionContext, ActionContext]:
    """What two runs of one process get."""
    happened.clear()

    async def work() -> tuple[ActionContext, ActionContext]:
        async with ContextProvider.of(source).opened() as opened:
            return await opened.for_run(ONE), await opened.for_run(TWO)

    return asyncio.run(work())


def test_an_instance_is_used_as_it_is() -> None:
    given = Shop()

    assert contexts_of(given) == (given, given)
    assert ContextProvider.of(given).provides is Shop


def test_none_is_an_empty_one() -> None:
    one, other = contexts_of(None)

    assert one is other
    assert type(one) is ActionContext


@pytest.mark.parametrize("source", [make, make_async, make_later])
def test_a_function_is_called_once_in_a_process(source: object) -> None:
    one, other = contexts_of(source)

    assert one is other
    assert happened == ["made"]
    assert ContextProvider.of(source).provides is Shop


def test_a_class_is_a_function_that_makes_itself() -> None:
    one, other = contexts_of(Shop)

    assert one is other
    assert isinstance(one, Shop)


@pytest.mark.parametrize("source", [make_for_run, make_for_run_async])
def test_a_function_of_a_run_is_called_for_each(source: object) -> None:
    one, other = contexts_of(source)

    assert (one, other) == (Shop(name="one"), Shop(name="two"))
    assert happened == ["made for one", "made for two"]
    assert ContextProvider.of(source).provides is Shop


@pytest.mark.parametrize("source", [opening, generating, opening_plainly])
def test_what_is_opened_is_opened_once_and_closed(source: object) -> None:
    one, other = contexts_of(source)

    assert one is other
    assert happened == ["opened", "closed"]
    assert ContextProvider.of(source).provides is Shop
    assert ContextProvider.of(source).lifetime is Lifetime.OPENED


def test_it_can_be_opened_in_many_processes_or_loops() -> None:
    provider = ContextProvider.of(opening)
    happened.clear()

    async def work() -> None:
        async with provider.opened() as opened:
            await opened.for_run(ONE)

    asyncio.run(work())
    asyncio.run(work())

    assert happened == ["opened", "closed", "opened", "closed"]


def says_nothing():
    return Shop()


def says_something_else() -> dict[str, str]:
    return {}


def takes_two(run: RunIdentity, other: str) -> Shop:
    return Shop()


@asynccontextmanager
async def opens_for_run(run: RunIdentity) -> AsyncGenerator[Shop, None]:
    yield Shop()


@pytest.mark.parametrize("source", [says_nothing, says_something_else, "shop", 3, dict])
def test_what_does_not_say_that_it_gives_dependencies_is_refused_at_construction(source: object) -> None:
    with pytest.raises(ContextTypeError, match="action_context"):
        ContextProvider.of(source)


@pytest.mark.parametrize("source", [takes_two, opens_for_run, opening(), Needy])
def test_what_cannot_be_called_is_refused_at_construction(source: object) -> None:
    with pytest.raises(AgentDefinitionError, match="action_context"):
        ContextProvider.of(source)


def lies() -> Shop:
    return ActionContext()  # pyright: ignore[reportReturnType]


def lies_for_run(run: RunIdentity) -> Shop:
    return ActionContext()  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("source", [lies, lies_for_run])
def test_what_gives_something_else_than_it_says_is_refused_when_it_does(source: object) -> None:
    with pytest.raises(ContextTypeError, match="gave ActionContext, not Shop"):
        contexts_of(source)


def test_the_provider_shows_no_values() -> None:
    assert "sk-TEST" not in repr(ContextProvider.of(Needy(api_key="sk-TEST")))
