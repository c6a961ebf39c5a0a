"""What a function's signature and docstring say about it as a tool."""

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType
from typing import Annotated, Any, Final, cast

from pydantic import Field
from pydantic.fields import FieldInfo

from agent.annotations import Namespace, layers_of, plain_function, signature_of
from agent.context import HiddenParameters, hidden_parameters
from agent.docstrings import Docstring, parse_docstring
from agent.errors import ToolDefinitionError
from agent.typed_dicts import with_known_typed_dicts

NO_DEFAULT: Final = inspect.Parameter.empty

_NAMED_ONE_BY_ONE: Final = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the model fills in.

    Attributes:
        annotation: Its type, with the description from `Annotated` or the docstring.
        default: The function's own default, or `NO_DEFAULT`.
        is_typed: False where the function says no type.
    """

    name: str
    annotation: object
    default: object
    is_typed: bool = True


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """A function as a tool: what the model sees of its parameters, and what is hidden.

    Attributes:
        bound: Names that partials have filled in: the model neither sees nor changes them.
        takes_any: It has `**keywords`, so that arguments of any other name are welcome.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    hidden: HiddenParameters
    bound: frozenset[str]
    takes_any: bool


def name_of(function: Callable[..., object]) -> str:
    """The name that its author gave it: of a partial that of what it fills in, of a callable object that of its class.

    What a decorator is called says nothing where it only hands on the name of what it wraps, or where that has none to
    hand on, as a partial has none.
    """
    for layer in layers_of(function):
        if not (_hands_on(layer) or isinstance(layer, functools.partial)):
            name: str = getattr(layer, "__name__", type(layer).__name__)
            return name.strip("<>")  # <lambda>
    return plain_function(function).__name__


def _hands_on(layer: Callable[..., object]) -> bool:
    """Whether a layer has no name of its own, but that of what it wraps."""
    wrapped: object = getattr(layer, "__wrapped__", None)
    name: object = getattr(layer, "__name__", None)
    if wrapped is None or name is None:
        return wrapped is not None
    handed_on: object = getattr(wrapped, "__name__", None)
    return handed_on == name if handed_on is not None else _is_made_by_a_decorator(layer, wrapped)


def _is_made_by_a_decorator(layer: Callable[..., object], wrapped: object) -> bool:
    """Whether it is the function inside a decorator, which takes whatever comes: its author named it for no one. One that was
    written for what it wraps, or renamed, has a name that is meant."""
    if not inspect.isfunction(layer) or not layer.__qualname__.endswith(f"<locals>.{layer.__name__}"):
        return False
    takes_anything = layer.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    return takes_anything != 0 and any(_holds(cell, wrapped) for cell in layer.__closure__ or ())


def _holds(cell: CellType, value: object) -> bool:
    try:
        return cell.cell_contents is value
    except ValueError:  # of a function that is being defined
        return False


def documentation_of(function: Callable[..., object]) -> Docstring:
    """The docstring of the function beneath decorators and partials; of a callable object that of its `__call__`."""
    plain = plain_function(function)
    of_class = inspect.getdoc(type(function)) if plain.__name__ == "__call__" else None
    return parse_docstring(inspect.getdoc(plain) or of_class)


def read_signature(function: Callable[..., object], name: str) -> ToolSignature:
    """Reads a function.

    Args:
        function: What the tool calls.
        name: The tool's name, for messages.

    Raises:
        ToolDefinitionError: The signature cannot be that of a tool.
    """
    try:
        signature = signature_of(function)
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"tool {name!r}: its signature cannot be read ({error}); wrap it in a function of your own"
        ) from error
    hidden = hidden_parameters(function)
    documentation = documentation_of(function)
    namespace = Namespace(function)
    bound = _bound_keywords(function)
    parameters: list[Parameter] = []
    takes_any = False
    for parameter in _without_self(function, list(signature.parameters.values())):
        if parameter.name in hidden.names or parameter.name in bound:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind in _NAMED_ONE_BY_ONE:
            parameters.append(_read_parameter(parameter, namespace, documentation, name))
        else:
            raise ToolDefinitionError(
                f"tool {name!r}: parameter {parameter.name!r} can only be passed by position, but a model passes "
                "arguments by name; if a decorator hides the real parameters, let it use functools.wraps"
            )
    return ToolSignature(name, documentation.description, tuple(parameters), hidden, bound, takes_any)


def is_unbound_method(function: Callable[..., object]) -> bool:
    """Whether it was defined in a class and waits for its `self` or `cls`."""
    if not inspect.isfunction(function) or "." not in function.__qualname__.rpartition("<locals>.")[2]:
        return False
    return next(iter(signature_of(function).parameters), "") in {"self", "cls"}


def _without_self(function: Callable[..., object], parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return parameters[1:] if is_unbound_method(function) else parameters


def _bound_keywords(function: Callable[..., object]) -> frozenset[str]:
    """The keywords that partials have filled in, however deep below decorators."""
    return frozenset(
        name
        for layer in layers_of(function)
        if isinstance(layer, functools.partial)
        for name in cast("functools.partial[object]", layer).keywords
    )


def _read_parameter(
    parameter: inspect.Parameter, namespace: Namespace, documentation: Docstring, tool_name: str
) -> Parameter:
    annotation: object = Any
    is_typed = parameter.annotation is not NO_DEFAULT
    if is_typed:
        try:
            annotation = with_known_typed_dicts(namespace.resolve(parameter.annotation))
        except Exception as error:
            raise ToolDefinitionError(
                f"tool {tool_name!r}, parameter {parameter.name!r}: its annotation {parameter.annotation!r} cannot be "
                f"resolved ({error}); define or import the name above the tool, not under TYPE_CHECKING"
            ) from error
    default = parameter.default
    if default is None and annotation is not Any:
        annotation = typing.Optional[annotation]  # noqa: UP045 - `lang: str = None` means an optional text
    annotation, described = _with_descriptions(annotation)
    if isinstance(default, FieldInfo):
        annotation, described = Annotated[annotation, default], described or default.description is not None
        default = NO_DEFAULT if default.is_required() else default
    text = documentation.parameters.get(parameter.name)
    if text and not described:
        annotation = Annotated[annotation, Field(description=text)]
    return Parameter(parameter.name, annotation, default, is_typed)


def _with_descriptions(annotation: object) -> tuple[object, bool]:
    """The annotation with plain texts in `Annotated` made into descriptions, and whether it has a description now."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, False
    kind, *metadata = typing.get_args(annotation)
    metadata = [Field(description=item) if isinstance(item, str) else item for item in metadata]
    described = any(isinstance(item, FieldInfo) and item.description is not None for item in metadata)
    for item in metadata:
        kind = Annotated[kind, item]
    return kind, described
