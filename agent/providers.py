"""Where the dependencies come from, and how long they live."""

import asyncio
import contextlib
import inspect
import typing
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, cast

from agent.annotations import resolved_annotations, signature_of, without_none
from agent.context import ActionContext, RunIdentity
from agent.errors import AgentDefinitionError, ConfigurationError, ContextTypeError
from agent.text import words_of

_OPENING: Final = frozenset[object]({AsyncIterator, AsyncGenerator, AbstractAsyncContextManager})
_AWAITED: Final = frozenset[object]({Awaitable, Coroutine})


class Lifetime(Enum):
    """How long dependencies live."""

    GIVEN = auto()
    """They were there before, and are nobody's to close."""

    PROCESS = auto()
    """Made once in a process."""

    OPENED = auto()
    """Opened once in a process, and closed when it has done its work."""

    RUN = auto()
    """Made for each run."""


@dataclass(frozen=True, slots=True)
class ContextProvider:
    """Dependencies, however they were given; see `of`.

    Attributes:
        provides: Their type, known before any of them is made.
    """

    provides: type[ActionContext]
    lifetime: Lifetime
    _source: object = field(repr=False)

    @classmethod
    def of(cls, source: object) -> "ContextProvider":
        """Reads what was given as `action_context`.

        An instance is used as it is; None is an empty one. A function with a return annotation, sync or async, is called
        once in a process, or once for each run if it takes a parameter: the `RunIdentity`. A sync one is called on the
        event loop and must not block. A function decorated with `@asynccontextmanager` is entered once in a process, and
        left when the process has done its work.

        Raises:
            ContextTypeError: It does not say that it gives an ActionContext.
            AgentDefinitionError: It cannot be called in one of these ways.
        """
        if source is None or isinstance(source, ActionContext):
            given = ActionContext() if source is None else source
            return cls(type(given), Lifetime.GIVEN, given)
        if isinstance(source, AbstractAsyncContextManager):
            raise AgentDefinitionError(
                "action_context: an open context manager can be entered only once; pass the function that makes it, uncalled"
            )
        if not callable(source):
            raise ContextTypeError(
                f"action_context: {type(source).__name__} is not an ActionContext; pass an instance of a subclass, "
                "or a function that makes one"
            )
        provides, is_opened = _product(source)
        parameters = _required_parameters(source)
        if len(parameters) > 1 or (parameters and (is_opened or inspect.isclass(source))):
            raise AgentDefinitionError(
                f"action_context={_name(source)}: it takes {', '.join(parameters)}; a function that makes dependencies "
                "takes nothing, or a RunIdentity if it makes them for each run; one that opens them, or a class, takes nothing"
            )
        lifetime = Lifetime.OPENED if is_opened else Lifetime.RUN if parameters else Lifetime.PROCESS
        return cls(provides, lifetime, source)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncGenerator["OpenedContext", None]:
        """The dependencies for the time that a process works; leaving it closes what was opened.

        Raises:
            ContextTypeError: What was made is not of the type that was said.
            Exception: Whatever the function raised.
        """
        match self.lifetime:
            case Lifetime.GIVEN:
                yield OpenedContext(self, self._checked(self._source))
            case Lifetime.PROCESS:
                yield OpenedContext(self, self._checked(await self._call()))
            case Lifetime.OPENED:
                async with _entered(await self._call()) as entered:
                    yield OpenedContext(self, self._checked(entered))
            case Lifetime.RUN:
                yield OpenedContext(self, None)

    async def made_for(self, identity: RunIdentity) -> ActionContext:
        """Dependencies of one run's own.

        Raises:
            ContextTypeError: What was made is not of the type that was said.
            ConfigurationError: The function raised what is meant to end a process or a task: this run alone must suffer.
            Exception: Whatever else it raised.
        """
        try:
            return self._checked(await self._call(identity))
        except Exception:
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise ConfigurationError(f"action_context={_name(self._source)}: {words_of(error)}") from error

    async def _call(self, *arguments: RunIdentity) -> object:
        made = cast("Callable[..., object]", self._source)(*arguments)
        return await cast("Awaitable[object]", made) if inspect.isawaitable(made) else made

    def _checked(self, made: object) -> ActionContext:
        if not isinstance(made, self.provides):
            raise ContextTypeError(
                f"action_context={_name(self._source)} gave {type(made).__name__}, not {self.provides.__name__} as it says"
            )
        return made


class OpenedContext:
    """The dependencies in a process at work."""

    def __init__(self, provider: ContextProvider, shared: ActionContext | None) -> None:
        self._provider = provider
        self._shared = shared

    @property
    def shared(self) -> ActionContext | None:
        """The dependencies that all runs share; None where each run has its own."""
        return self._shared

    async def for_run(self, identity: RunIdentity) -> ActionContext:
        """The dependencies of one run: those that all runs share, or its own.

        Raises:
            ContextTypeError: What was made is not of the type that was said.
            Exception: Whatever the function raised.
        """
        return self._shared if self._shared is not None else await self._provider.made_for(identity)


def _entered(made: object) -> AbstractAsyncContextManager[object]:
    """The context manager that a function made; a bare async generator is taken as one."""
    if isinstance(made, AsyncGenerator):
        generator = cast("AsyncGenerator[object, None]", made)
        return contextlib.asynccontextmanager(lambda: generator)()
    return cast("AbstractAsyncContextManager[object]", made)


def _product(source: Callable[..., object]) -> tuple[type[ActionContext], bool]:
    """The type of what a function makes, and whether it is to be opened and closed.

    Raises:
        ContextTypeError: Its return annotation does not say an ActionContext.
    """
    annotation = source if inspect.isclass(source) else resolved_annotations(source).get("return")
    is_opened = False
    while (origin := cast(object, typing.get_origin(annotation))) in _OPENING | _AWAITED:
        is_opened = is_opened or origin in _OPENING
        arguments = typing.get_args(annotation)
        annotation = cast(object, arguments[-1] if origin is Coroutine else arguments[0])
    kind = without_none(annotation)
    if isinstance(kind, type) and issubclass(kind, ActionContext):
        return kind, is_opened
    raise ContextTypeError(
        f"action_context={_name(source)}: its return annotation must name the subclass of ActionContext that it makes, "
        "as in `def open_shop() -> Shop` or, with @asynccontextmanager, `-> AsyncIterator[Shop]`"
    )


def _required_parameters(source: Callable[..., object]) -> list[str]:
    return [
        name
        for name, parameter in signature_of(source).parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    ]


def _name(source: object) -> str:
    name: str = getattr(source, "__name__", type(source).__name__)
    return name
