"""The border between the model and the world: how a tool's function is called."""

import asyncio
import contextvars
import itertools
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from dataclasses import replace
from typing import cast

import pytest

from agent.context import ActionContext, ToolContext
from agent.environment import MOST_ITEMS, Environment, RunNotOwned
from agent.errors import ContextTypeError, ToolError, ToolTimeout
from agent.tools import ToolOptions, build_tool

CALL = ToolContext(run_id="r1", step=2, call_key="2.0", idempotency_key="r1:2.0")

request = contextvars.ContextVar("request", default="none")


class Shop(ActionContext):
    name: str


def execute(
    function: Callable[..., object],
    arguments: dict[str, object] | None = None,
    context: ActionContext | None = None,
    environment: Environment | None = None,
    **options: object,
) -> object:
    made = build_tool(function, name="tool", **cast(ToolOptions, options))
    return asyncio.run((environment or Environment()).execute_action(made, arguments or {}, context, CALL))


# What is called where.


def test_an_async_function_runs_on_the_loop() -> None:
    async def where() -> int:
        return threading.get_ident()

    assert execute(where) == threading.get_ident()


def test_a_sync_function_runs_in_a_thread_with_the_context_of_its_caller() -> None:
    def where() -> tuple[int, str]:
        return threading.get_ident(), request.get()

    token = request.set("seven")
    try:
        thread, seen = cast("tuple[int, str]", execute(where))
    finally:
        request.reset(token)

    assert thread != threading.get_ident()
    assert seen == "seven"


def test_sync_functions_run_beside_each_other() -> None:
    barrier = threading.Barrier(3, timeout=10)

    def meet() -> int:
        return barrier.wait()

    async def all_at_once() -> list[object]:
        environment, made = Environment(), build_tool(meet)
        calls = [environment.execute_action(made, {}, None, CALL) for _ in range(3)]
        return list(await asyncio.gather(*calls))

    assert sorted(cast("list[int]", asyncio.run(all_at_once()))) == [0, 1, 2]


def test_no_more_sync_functions_run_at_once_than_there_are_threads() -> None:
    running, most = 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    async def all_at_once() -> None:
        environment, made = Environment(threads=2), build_tool(work)
        await asyncio.gather(*(environment.execute_action(made, {}, None, CALL) for _ in range(6)))

    asyncio.run(all_at_once())

    assert most == 2


def test_an_environment_works_in_one_loop_after_another() -> None:
    environment = Environment()

    def answer() -> int:
        return 42

    assert execute(answer, environment=environment) == 42
    assert execute(answer, environment=environment) == 42


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_threads_of_its_own() -> None:
    """case-090"""
    environment = Environment()
    assert execute(os.getpid, environment=environment) == os.getpid()

    child = os.fork()
    if child == 0:
        os._exit(0 if execute(os.getpid, environment=environment) == os.getpid() else 1)

    assert os.waitpid(child, 0)[1] == 0


# What is injected.


def test_the_dependencies_and_the_circumstances_are_injected() -> None:
    async def refund(order: str, shop: Shop, call: ToolContext) -> tuple[str, str, str]:
        return order, shop.name, call.idempotency_key

    assert execute(refund, {"order": "7", "shop": "mine"}, Shop(name="ours")) == ("7", "ours", "r1:2.0")


def test_wrong_dependencies_are_refused() -> None:
    def refund(shop: Shop) -> None: ...

    with pytest.raises(ContextTypeError):
        execute(refund, {}, ActionContext())


# What comes back.


class Answer:
    async def __call__(self, question: str) -> str:
        await asyncio.sleep(0)
        return f"{question}!"


def hidden_coroutine(question: str) -> Awaitable[str]:
    return Answer()(question)


def test_awaitables_are_awaited_whatever_shape_the_callable_has() -> None:
    """case-048"""
    shapes: list[Callable[..., object]] = [
        Answer(),
        Answer().__call__,
        hidden_coroutine,
        lambda question: hidden_coroutine(question),  # pyright: ignore  # noqa: PLW0108
    ]
    for function in shapes:
        assert execute(function, {"question": "a"}) == "a!"


def rows() -> Generator[int]:
    yield 1
    yield 2


async def rows_later() -> AsyncGenerator[int]:
    yield 1
    await asyncio.sleep(0)
    yield 2


async def rows_inside() -> Iterator[int]:
    return iter([1, 2])


@pytest.mark.parametrize("function", [rows, rows_later, rows_inside])
def test_generators_are_read_into_lists(function: Callable[..., object]) -> None:
    """case-048"""
    assert execute(function) == [1, 2]


def test_a_generator_runs_in_a_thread() -> None:
    def where() -> Generator[int]:
        yield threading.get_ident()

    assert execute(where) != [threading.get_ident()]


def endless() -> Iterator[int]:
    return itertools.count()


async def endless_later() -> AsyncGenerator[int]:
    for number in itertools.count():
        yield number


@pytest.mark.parametrize("function", [endless, endless_later])
def test_endless_generators_are_cut_and_it_is_said(function: Callable[..., object]) -> None:
    taken = cast("list[object]", execute(function))

    assert taken[:MOST_ITEMS] == list(range(MOST_ITEMS))
    assert taken[MOST_ITEMS:] == ["… only the first 1,000 items were taken"]


# What goes wrong.


def raising(error: BaseException) -> tuple[Callable[[], object], Callable[[], object]]:
    """A sync and an async function that raise an error."""

    def fail() -> object:
        raise error

    async def fail_later() -> object:
        raise error

    return fail, fail_later


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("the service's"), ToolError("told")])
def test_exceptions_pass_through(error: Exception) -> None:
    for function in raising(error):
        with pytest.raises(type(error), match=str(error)) as raised:
            execute(function, timeout=60)
        assert type(raised.value) is type(error)


def test_a_tool_that_leaves_the_process_only_fails() -> None:
    for function in raising(SystemExit(1)):
        with pytest.raises(ToolError, match="tried to end the process"):
            execute(function)


def test_a_tool_that_cancels_itself_only_fails() -> None:
    for function in raising(asyncio.CancelledError()):
        with pytest.raises(ToolError, match="cancelled by its own code"):
            execute(function)


def test_stop_iteration_does_not_hang() -> None:
    for function in raising(StopIteration()):
        with pytest.raises(RuntimeError, match="StopIteration"):
            execute(function)


def test_a_cancelled_call_is_cancelled() -> None:
    cancelled: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("tool")
            raise

    async def cancel() -> None:
        call = asyncio.create_task(Environment().execute_action(build_tool(wait), {}, None, CALL))
        await asyncio.sleep(0)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert cancelled == ["tool"]


def test_an_async_tool_is_stopped_when_its_time_is_over() -> None:
    async def wait() -> None:
        await asyncio.sleep(60)

    with pytest.raises(ToolTimeout, match=r"longer than 0.01 s and was stopped"):
        execute(wait, timeout=0.01)


def test_a_sync_tool_cannot_be_stopped_and_its_outcome_is_unknown() -> None:
    done = threading.Event()

    def wait() -> None:
        done.wait(60)

    try:
        with pytest.raises(ToolTimeout, match=r"longer than 0.01 s.*outcome is unknown") as raised:
            execute(wait, timeout=0.01)
    finally:
        done.set()
    assert isinstance(raised.value, ToolError)


def test_the_time_that_a_sync_tool_waits_for_a_thread_does_not_count() -> None:
    release = threading.Event()

    def hold() -> str:
        release.wait(60)
        return "held"

    def quick() -> str:
        return "done"

    async def both() -> tuple[object, object]:
        environment = Environment(threads=1)
        holding = asyncio.create_task(environment.execute_action(build_tool(hold), {}, None, CALL))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(environment.execute_action(build_tool(quick, timeout=0.05), {}, None, CALL))
        await asyncio.sleep(0.1)
        release.set()
        return await holding, await waiting

    assert asyncio.run(both()) == ("held", "done")


def test_nothing_is_called_that_gets_its_thread_when_the_run_is_not_surely_owned_any_more() -> None:
    owned, called = [True], list[str]()
    taken, gate = threading.Event(), threading.Event()

    def hold() -> None:
        taken.set()
        gate.wait(10)

    def effect(tool_context: ToolContext) -> None:
        called.append(tool_context.run_id)

    async def effect_on_the_loop(tool_context: ToolContext) -> None:
        called.append(tool_context.run_id)

    async def late() -> None:
        environment, call = Environment(threads=1), replace(CALL, owns_run=lambda: owned[0])
        first = asyncio.create_task(environment.execute_action(build_tool(hold), {}, None, call))
        second = asyncio.create_task(environment.execute_action(build_tool(effect), {}, None, call))
        await asyncio.to_thread(taken.wait, 10)
        owned[0] = False
        gate.set()
        await first
        with pytest.raises(RunNotOwned):
            await second
        with pytest.raises(RunNotOwned):
            await environment.execute_action(build_tool(effect_on_the_loop), {}, None, call)
        owned[0] = True
        await environment.execute_action(build_tool(effect), {}, None, call)

    asyncio.run(late())
    assert called == ["r1"]


def test_how_tools_are_executed_can_be_changed() -> None:
    class Loud(Environment):
        async def execute_action(self, *given: object, **named: object) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
            return f"{await super().execute_action(*given, **named)}!"  # pyright: ignore

    assert execute(Answer(), {"question": "a"}, environment=Loud()) == "a!!"
