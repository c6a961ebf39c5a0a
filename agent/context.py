"""What tools get and the model never sees: the dependencies and the circumstances of a call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NoReturn

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_serializer
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agent.annotations import resolved_annotations, signature_of, without_none
from agent.errors import ToolDefinitionError


class ActionContext(BaseModel):
    """The dependencies of tools: subclass it and add fields of any type.

    A tool asks for them by a parameter that is annotated with the subclass, or named `action_context`. They are made on
    the worker. Nothing writes them down: they refuse to be serialised, and their text shows no values.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True, protected_namespaces=())

    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return []

    def __str__(self) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds dependencies and is never serialised")

    @model_serializer(mode="plain")
    def _refuse_to_be_serialised(self) -> dict[str, object]:
        raise TypeError(f"{type(self).__name__} holds dependencies and is never serialised")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        raise PydanticInvalidForJsonSchema(f"{cls.__name__} holds dependencies and is never shown to a model")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """Which run it is, for dependencies that are made for each run."""

    run_id: str
    session: str = ""
    tenant: str = ""
    agent: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The circumstances of one tool call.

    A tool asks for them by a parameter that is annotated `ToolContext`, or named `tool_context`.

    Attributes:
        call_key: `<step>.<index>`: the call within its run.
        idempotency_key: `<run>:<step>.<index>`: the same whenever this call is executed again; give it to services that
            recognise repeated requests.
        attempt: 1 at the first execution of this call, 2 when it is executed again after a crash, and so on.
        metadata: What was submitted with the run.
        budget_left: The name of each limit that the run has, and what is left of it.
        owns_run: Says whether this process surely owns the run at this moment. It is asked when the function is called; a
            tool that takes long may ask again before it does what cannot be undone.
    """

    run_id: str
    session: str = ""
    tenant: str = ""
    agent: str = ""
    step: int
    call_key: str
    idempotency_key: str
    attempt: int = 1
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    budget_left: Mapping[str, int | float | Decimal] = field(default_factory=dict[str, int | float | Decimal])
    owns_run: Callable[[], bool] = field(default=_always, repr=False, compare=False)


_CONTEXT_NAME: Final = "action_context"
_CALL_NAME: Final = "tool_context"


@dataclass(frozen=True, slots=True)
class HiddenParameters:
    """The parameters of a tool that the environment fills in: their names, and the type of the dependencies."""

    context: str | None = None
    context_type: type[ActionContext] | None = None
    call: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """All of them; what a model writes under these names is dropped."""
        return frozenset(name for name in (self.context, self.call) if name is not None)


def hidden_parameters(function: Callable[..., object]) -> HiddenParameters:
    """The parameters of a function that the model never sees.

    Raises:
        ToolDefinitionError: Two parameters ask for the same thing.
    """
    annotations = resolved_annotations(function)
    contexts: dict[str, type[ActionContext]] = {}
    calls: list[str] = []
    for name in _parameter_names(function):
        annotation = without_none(annotations.get(name))
        if isinstance(annotation, type) and issubclass(annotation, ActionContext):
            contexts[name] = annotation
        elif name == _CONTEXT_NAME:
            contexts[name] = ActionContext
        elif annotation is ToolContext or name == _CALL_NAME:
            calls.append(name)
    for asked, names in (("the dependencies", list(contexts)), ("the ToolContext", calls)):
        if len(names) > 1:
            raise ToolDefinitionError(
                f"tool {getattr(function, '__name__', type(function).__name__)!r}: "
                f"parameters {' and '.join(map(repr, names))} both ask for {asked}; keep one"
            )
    context, context_type = next(iter(contexts.items()), (None, None))
    return HiddenParameters(context=context, context_type=context_type, call=calls[0] if calls else None)


def context_parameter(function: Callable[..., object]) -> tuple[str, type[ActionContext]] | None:
    """The name and type of the parameter that takes the dependencies, if the function has one.

    Raises:
        ToolDefinitionError: It has two.
    """
    hidden = hidden_parameters(function)
    if hidden.context is None or hidden.context_type is None:
        return None
    return hidden.context, hidden.context_type


def _parameter_names(function: Callable[..., object]) -> list[str]:
    try:
        return list(signature_of(function).parameters)
    except (TypeError, ValueError):
        return []
