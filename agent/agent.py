"""An agent: a goal, tools, a model, the shape of its result, a budget and dependencies."""

import contextlib
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast, overload

from pydantic import BaseModel
from typing_extensions import TypeForm

from agent.blocking import run_to_end
from agent.budget import Budget
from agent.context import ActionContext, RunIdentity
from agent.context_window import ContextManager
from agent.dialects import Dialect, dialect_of
from agent.environment import Environment
from agent.errors import AgentDefinitionError, ContextTypeError, PawlError, UnknownPriceError
from agent.events import RunCompleted, RunCreated
from agent.local import Answerer, drive_here
from agent.messages import Message, Role
from agent.models.base import ModelClient, ToolSpecification
from agent.models.choose import model_of
from agent.models.override import ModelOverride
from agent.output import OutputSchema, OutputValidator
from agent.program import Program
from agent.providers import ContextProvider
from agent.registry import ActionRegistry
from agent.report import Observer
from agent.result import RunResult, error_of
from agent.text import well_formed
from agent.tools import Tool

Output = TypeVar("Output")

_UNSAID: Final = object()
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


class Goal(BaseModel):
    """What an agent is for: a task and the rules of behaviour. `description` becomes the system message."""

    name: str
    description: str


class Agent(Generic[Output]):
    """An agent, declared in code. The same object runs in process and through workers.

    Args:
        goal: The system message: the task and the rules of behaviour.
        name: Needed where the agent is to be submitted; letters, digits, `_`, `-` and `.`.
        tools: Functions, decorated functions, tools, or a registry (which is copied, never changed).
        model: A name such as `openai:gpt-4o`, or a client.
        output_schema: The type of the result: str, a model, a dataclass, a TypedDict, a Literal, a union, a list of them, or
            None for a run that only acts. Without one, and without a terminal tool of its own, it is text.
        output_validators: Functions, async or not, that look at a result of that type one after the other, and return it or
            another in its place. A `ValueError` or `ToolError` goes back to the model as its text says, at most `max_unusable`
            times in a row.
        dialect: `tools` (function calling), `json` (the reply is forced into JSON) or `react` (labels in plain text, for any
            model that writes); or one of your own.
        budget: The limits of a run that says nothing else.
        action_context: The dependencies of the tools: an instance, a factory, or an async context manager.
        environment: What executes the tools.
        queue: The RQ queue of its runs.
        version: A word for the deployed form of it, shown on its card.
        max_tokens: Output tokens that one model call may make; None: 4,096, or what the budget leaves.
        parallel: Tool calls of one run at once.
        model_timeout: Seconds for one attempt to get a reply.
        context: How much of a long conversation the model reads.
        max_attempts: Attempts to get one reply before the run fails.
        max_unusable: Replies in a row of which nothing could be used, before the run fails.

    Raises:
        AgentDefinitionError: It cannot work as declared; the message says why.
        ContextTypeError: The dependencies miss the type that a tool asks for.
        ToolDefinitionError: A function cannot become a tool.
    """

    @overload
    def __init__(
        self: "Agent[str]",
        goal: str | Goal,
        *,
        output_validators: Iterable[OutputValidator[str]] = (),
        name: str | None = None,
        tools: "ActionRegistry | Iterable[Callable[..., object] | Tool]" = (),
        model: str | ModelClient | None = None,
        dialect: str | Dialect = "tools",
        budget: Budget | None = None,
        action_context: object = None,
        environment: Environment | None = None,
        queue: str = "default",
        version: str = "",
        temperature: float | None = None,
        max_tokens: int | None = None,
        parallel: int = 8,
        model_timeout: float = 120.0,
        context: ContextManager | None = None,
        max_attempts: int = 6,
        max_unusable: int = 4,
    ) -> None: ...
    @overload
    def __init__(
        self,
        goal: str | Goal,
        *,
        output_schema: TypeForm[Output],
        output_validators: Iterable[OutputValidator[Output]] = (),
        name: str | None = None,
        tools: "ActionRegistry | Iterable[Callable[..., object] | Tool]" = (),
        model: str | ModelClient | None = None,
        dialect: str | Dialect = "tools",
        budget: Budget | None = None,
        action_context: object = None,
        environment: Environment | None = None,
        queue: str = "default",
        version: str = "",
        temperature: float | None = None,
        max_tokens: int | None = None,
        parallel: int = 8,
        model_timeout: float = 120.0,
        context: ContextManager | None = None,
        max_attempts: int = 6,
        max_unusable: int = 4,
    ) -> None: ...
    def __init__(
        self,
        goal: str | Goal,
        *,
        output_schema: object = _UNSAID,
        output_validators: Iterable[OutputValidator[Any]] = (),
        name: str | None = None,
        tools: "ActionRegistry | Iterable[Callable[..., object] | Tool]" = (),
        model: str | ModelClient | None = None,
        dialect: str | Dialect = "tools",
        budget: Budget | None = None,
        action_context: object = None,
        environment: Environment | None = None,
        queue: str = "default",
        version: str = "",
        temperature: float | None = None,
        max_tokens: int | None = None,
        parallel: int = 8,
        model_timeout: float = 120.0,
        context: ContextManager | None = None,
        max_attempts: int = 6,
        max_unusable: int = 4,
    ) -> None:
        if name is not None and not _NAME.fullmatch(name):
            raise AgentDefinitionError(f"agent name {name!r}: use up to 64 letters, digits, '_', '-' and '.'")
        counts = {
            "parallel": parallel,
            "max_attempts": max_attempts,
            "max_unusable": max_unusable,
            "max_tokens": max_tokens,
        }
        for option, count in counts.items():
            if count is not None and count < 1:
                raise AgentDefinitionError(f"{option}={count}: it must be at least 1")
        if model_timeout <= 0:
            raise AgentDefinitionError(f"model_timeout={model_timeout}: it must be more than 0 seconds")
        self.name = name
        self.goal = goal.description if isinstance(goal, Goal) else goal
        self.budget = budget or Budget()
        self.queue = queue
        self.version = version
        self.registry = tools.copy() if isinstance(tools, ActionRegistry) else ActionRegistry(tools)
        self.output, self.exit = _exit_of(self.registry, output_schema, tuple(output_validators))
        self.environment = environment or Environment()
        self.provider = ContextProvider.of(action_context)
        self._require_dependencies()
        self._dialect = dialect_of(dialect)
        self._model = None if model is None else model_of(model)
        self._substitute = ModelOverride()
        self._options: dict[str, Any] = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "parallel": parallel,
            "model_timeout": model_timeout,
            "max_attempts": max_attempts,
            "max_unusable": max_unusable,
            "context": context or ContextManager(),
        }
        self._program: Program | None = None

    def __repr__(self) -> str:
        return f"Agent(name={self.name!r}, tools={list(self.registry.tools)})"

    @property
    def model(self) -> ModelClient:
        """The model that it asks.

        Raises:
            AgentDefinitionError: It has none.
        """
        model = self._substitute.model or self._model
        if model is None:
            raise AgentDefinitionError(f"{self!r} has no model: pass model='openai:gpt-4o', or a model client")
        return model

    @contextlib.contextmanager
    def override(self, *, model: str | ModelClient) -> Generator[None]:
        """Uses another model while the block runs; for tests."""
        with self._substitute.using(model_of(model)):
            yield

    def program(self) -> Program:
        """The agent, made ready to run.

        Raises:
            AgentDefinitionError: It has no model.
        """
        if self._program is None or self._program.model is not self.model:
            specifications = tuple(_specification(tool) for tool in self.registry.tools.values())
            without_overhead = Program(
                name=self.name or "agent",
                instruction=Message(role=Role.SYSTEM, content=self.goal),
                registry=self.registry,
                exit=self.exit,
                specifications=specifications,
                exit_specification=_specification(self.exit),
                output=self.output,
                environment=self.environment,
                model=self.model,
                dialect=self._dialect,
                overhead=0,
                budget=self.budget,
                **self._options,
            )
            self._program = without_overhead.with_overhead(self._dialect.overhead(without_overhead))
        return self._program

    async def run(
        self,
        task: str,
        *,
        budget: Budget | None = None,
        metadata: Mapping[str, object] | None = None,
        session: str = "",
        tenant: str = "",
        observer: Observer | None = None,
        answer: Answerer | None = None,
    ) -> RunResult[Output]:
        """Runs a task here and now, in this process. Nothing is durable: for that, submit it.

        Args:
            answer: Brings a person's answer, where the agent asks for one.

        Raises:
            RunWaiting: It asks a person, and there is no `answer`.
            RunFailed, BudgetExceeded, RunCancelled: It came to no result; `partial` holds what there is.
            AgentDefinitionError, UnknownPriceError: It cannot run as declared.
        """
        program = self.program()
        limits = budget or self.budget
        require_price(limits, program.model)
        identity = RunIdentity(
            run_id=f"local-{uuid.uuid4().hex}",
            session=session,
            tenant=tenant,
            agent=program.name,
            metadata=dict(metadata or {}),
        )
        created = RunCreated(
            agent=program.name,
            task=well_formed(task),
            budget=limits,
            session=session,
            tenant=tenant,
            metadata=dict(metadata or {}),
        )
        async with self.provider.opened() as opened:
            dependencies = await opened.for_run(identity)
            state, events = await drive_here(identity, program, created, dependencies, observer=observer, answer=answer)
        last = events[-1].event
        if isinstance(last, RunCompleted):
            return RunResult(
                run_id=identity.run_id,
                output=self.result_of(last.output),
                usage=state.head.usage,
                steps=state.head.step,
                events=events,
            )
        raise error_of(last, identity.run_id, stored=False) or PawlError(
            f"run {identity.run_id} stopped at {last.type}"
        )

    def run_sync(self, task: str, *, budget: Budget | None = None) -> RunResult[Output]:
        """`run` for code that is not async; also inside a running event loop, such as a notebook's."""
        return run_to_end(self.run(task, budget=budget))

    def result_of(self, output: object) -> Output:
        """The result as the agent's own type, from its JSON form.

        Raises:
            AgentDefinitionError: It does not fit the agent's schema (any more).
        """
        return cast(Output, self.output.of_json(output) if self.output else output)

    def _require_dependencies(self) -> None:
        for tool in self.registry.tools.values():
            needed = tool.context_type
            if needed is None or needed is ActionContext or issubclass(self.provider.provides, needed):
                continue
            raise ContextTypeError(
                f"tool {tool.name!r} asks for {needed.__name__}, but action_context gives "
                f"{self.provider.provides.__name__}; pass a {needed.__name__}, a subclass that combines what the tools "
                "need, or split the tools over several agents"
            )


def require_price(budget: Budget, model: ModelClient) -> None:
    """Refuses a money limit that could never bite.

    Raises:
        UnknownPriceError: `max_cost_usd` is set and the model's price is not known.
    """
    if budget.max_cost_usd is not None and model.price is None:
        raise UnknownPriceError(
            f"max_cost_usd is set, but no price is known for {model.name}; give one with price=Price(...) on the model "
            "(zeros if it is free), or leave out max_cost_usd"
        )


def _exit_of(
    registry: ActionRegistry, output_schema: object, validators: Sequence[OutputValidator[Any]]
) -> tuple[OutputSchema[object] | None, Tool]:
    """The one way out of the loop: the agent's own terminal tool, or the built-in one, which is registered here."""
    own = [tool for tool in registry.tools.values() if tool.terminal]
    names = ", ".join(tool.name for tool in own)
    if own and output_schema is not _UNSAID:
        raise AgentDefinitionError(
            f"output_schema and terminal tools ({names}) are two exits; keep one, so that the result's type is defined"
        )
    if len(own) > 1:
        raise AgentDefinitionError(f"several terminal tools ({names}); exactly one exit defines the result's type")
    if own and validators:
        raise AgentDefinitionError(f"output_validators look at a result of output_schema; let {names} check its own")
    if own:
        return None, own[0]
    output = OutputSchema(cast("type[object]", str if output_schema is _UNSAID else output_schema), validators)
    registry.register(output.terminate_tool())
    return output, next(reversed(registry.tools.values()))


def _specification(tool: Tool) -> ToolSpecification:
    return ToolSpecification(tool.name, tool.description, tool.parameters)
