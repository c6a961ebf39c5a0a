"""The border between the model and the world: here, and only here, a tool's function is called."""

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar, cast

from agent.call_board import CallBoard
from agent.context import ActionContext, ToolContext
from agent.errors import ToolError, ToolTimeout
from agent.tools import Tool

DEFAULT_THREADS: Final = 64
"""Sync tools that run at once in a process, where neither the agent nor the settings say."""

MOST_ITEMS: Final = 1_000
"""How many items of a generator are taken; the list then ends with a text that says so."""

_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list, tuple})

_MORE_ITEMS: Final = f"… only the first {MOST_ITEMS:,} items were taken"

Result = TypeVar("Result")


def _nothing() -> None: ...


class RunNotOwned(Exception):
    """The function was not called: its turn came when the run might have been another process's."""


class Environment:
    """Executes tools: async functions on the event loop, all others in threads. Subclass it to change how.

    Attributes:
        board: Shows which calls are under way; a worker brings it.

    Args:
        threads: How many sync tools may run at once in a process; None: as the worker's settings say, else 64.
    """

    board: CallBoard | None = None

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    async def execute_action(
        self,
        tool: Tool,
        arguments: Mapping[str, object],
        action_context: ActionContext | None = None,
        call: ToolContext | None = None,
    ) -> object:
        """Calls the tool's function with the arguments and with what is hidden from the model, and gives its result.

        Awaitables are awaited whatever shape the function has, and generators are read into a list.

        Args:
            tool: The tool.
            arguments: As `tool.validate_arguments` made them.
            action_context: The dependencies; None where the agent has none.
            call: The circumstances of the call; None outside of a run.

        Raises:
            ToolTimeout: The tool took longer than it may.
            ToolError: The tool tried to end the process, or was cancelled by its own code.
            ContextTypeError: The dependencies are not of the type that the tool asks for.
            RunNotOwned: The lease of the run was over before the function was called: a thread may be long in coming.
            Exception: Whatever the function raised.
        """
        function = partial(tool.function, **tool.with_hidden(arguments, action_context, call))
        if call is not None:
            function = partial(_if_owned, call.owns_run, function)
        board = self.board
        shown = board.begin(f"{tool.name} of run {call.run_id}" if call else tool.name) if board else 0
        try:
            return await (self._called(tool, function) if tool.timeout is None else self._in_time(tool, function))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ToolError("The tool was cancelled by its own code.") from error
        except (SystemExit, KeyboardInterrupt) as error:
            raise ToolError("The tool tried to end the process.") from error
        finally:
            if board:
                board.end(shown)

    async def _in_time(self, tool: Tool, function: Callable[[], object]) -> object:
        """Calls a tool that has a time limit."""
        deadline = asyncio.timeout(tool.timeout if tool.is_async else None)
        try:
            async with deadline:
                # The clock starts when a thread takes the call: waiting for one is not the tool's fault.
                return await self._called(tool, function, partial(_start, deadline, tool.timeout))
        except TimeoutError as error:
            if not deadline.expired():
                raise  # the tool's own
            raise ToolTimeout(_overdue(tool)) from error

    async def _called(
        self, tool: Tool, function: Callable[[], object], started: Callable[[], None] = _nothing
    ) -> object:
        """Calls a tool, on the loop or in a thread; `started` is called on the loop when a thread has taken it."""
        return await self._settled(function() if tool.is_async else await self._in_thread(function, started))

    async def _settled(self, result: object) -> object:
        """What a result comes to: awaited if it can be, and read if it is a stream."""
        if type(result) in _PLAIN:  # most are; the questions below are dear
            return result
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, AsyncIterator):
            return await _collected(cast("AsyncIterator[object]", result))
        if isinstance(result, Iterator):
            return await self._in_thread(partial(_listed, cast("Iterator[object]", result)), _nothing)
        return result

    async def _in_thread(self, function: Callable[[], Result], started: Callable[[], None]) -> Result:
        """Calls a function in a thread, with the caller's context variables; says on the loop when it has started."""
        loop = asyncio.get_running_loop()

        def call() -> Result:
            loop.call_soon_threadsafe(started)
            try:
                return function()
            except (StopIteration, GeneratorExit) as error:  # no coroutine can be given one
                raise RuntimeError(f"the function raised {type(error).__name__}") from error

        return await asyncio.wrap_future(self._threads_of_this_process().submit(contextvars.copy_context().run, call))

    def _threads_of_this_process(self) -> ThreadPoolExecutor:
        """The pool; a forked child has none of its parent's threads and makes its own."""
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self.threads or DEFAULT_THREADS, thread_name_prefix="tool")
            self._process = os.getpid()
        return self._pool


def _if_owned(owns_run: Callable[[], bool], function: Callable[[], object]) -> object:
    if not owns_run():
        raise RunNotOwned
    return function()


def _start(deadline: asyncio.Timeout, timeout: float | None) -> None:
    """Lets the time run, if the call is still awaited."""
    if timeout is not None:
        with contextlib.suppress(RuntimeError):
            deadline.reschedule(asyncio.get_running_loop().time() + timeout)


def _overdue(tool: Tool) -> str:
    over = f"The tool took longer than {tool.timeout:g} s"
    if tool.is_async:
        return f"{over} and was stopped. What it had done by then is not undone."
    return f"{over}. It cannot be stopped and may still be running: its outcome is unknown."


def _listed(items: Iterator[object]) -> list[object]:
    taken = list(itertools.islice(items, MOST_ITEMS + 1))
    return taken if len(taken) <= MOST_ITEMS else [*taken[:MOST_ITEMS], _MORE_ITEMS]


async def _collected(items: AsyncIterator[object]) -> list[object]:
    taken: list[object] = []
    async for item in items:
        if len(taken) == MOST_ITEMS:
            return [*taken, _MORE_ITEMS]
        taken.append(item)
    return taken
