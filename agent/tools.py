"""A tool: a function that the model may call, with everything that the model and the engine must know about it."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, TypedDict, TypeVar, Unpack, cast, overload

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from agent.annotations import plain_function
from agent.arguments import Arguments, ModelArguments, SchemaArguments, SignatureArguments, read_object
from agent.context import ActionContext, HiddenParameters, ToolContext, hidden_parameters
from agent.errors import ContextTypeError, InvalidArguments, ToolDefinitionError
from agent.schema import Schema
from agent.signature import documentation_of, is_unbound_method, name_of, read_signature
from agent.text import bounded, well_formed, words_of

OnUnknown = Literal["tell", "ask", "retry", "fail"]

Function = TypeVar("Function", bound=Callable[..., object])

_NAME: Final = re.compile(r"[\w-]{1,64}")


Condition = Callable[[Mapping[str, object]], bool]


class Approval(BaseModel):
    """When a person must allow a tool's calls, and what holds if nobody answers.

    Attributes:
        condition: Says of the arguments whether a person is asked; None: always.
        timeout: Seconds until `default` holds; None: the run waits for ever.
    """

    model_config = ConfigDict(frozen=True)

    condition: Condition | None = None
    timeout: float | None = Field(default=None, gt=0)
    default: Literal["approve", "reject"] = "reject"


class ToolOptions(TypedDict, total=False):
    """What else can be said of a tool; see the fields of `Tool`."""

    terminal: bool
    timeout: float | None
    idempotent: bool
    on_unknown: OnUnknown
    parallel: bool
    approval: "bool | Condition | Approval"


def _is(default: object) -> Callable[[object], bool]:
    """What the engine is told of a tool is left out of its dump where nothing was said."""
    return lambda value: value == default


class Tool(BaseModel):
    """A function that the model may call. Made by `@tool` or `build_tool`, or by hand for full control.

    By hand, the arguments are checked against `parameters` as they stand, and are not coerced.

    Attributes:
        name: Letters, digits, `_` and `-`; at most 64.
        parameters: The JSON Schema of the arguments.
        terminal: Its result is the result of the run.
        timeout: Seconds; None for no limit.
        idempotent: Executing it twice does no more than once, so that a call of unknown outcome is executed again.
        on_unknown: What happens to a call of unknown outcome otherwise: the model is told, a person is asked, the call
            is executed again, or the run fails.
        parallel: It may run beside other calls of the same step.
        approval: A person must allow each call: always, where a function of its arguments says so, or as an `Approval`
            says.

    Raises:
        ToolDefinitionError: The name or the schema is not valid.
    """

    name: str
    description: str
    parameters: Schema
    function: Callable[..., object] = Field(exclude=True, repr=False)
    tags: list[str] | None = None
    terminal: bool = False
    timeout: float | None = Field(default=None, gt=0, exclude_if=_is(None))
    idempotent: bool = Field(default=False, exclude_if=_is(False))
    on_unknown: OnUnknown = Field(default="tell", exclude_if=_is("tell"))
    parallel: bool = Field(default=True, exclude_if=_is(True))
    approval: Annotated[bool | Condition | Approval, Field(exclude=True)] = False

    _arguments: Arguments = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Takes the arguments that the tool was made for, or those of its schema; then looks at the function."""
        if not _NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"tool {self.name!r}: a name has 1 to 64 letters, digits, '_' or '-'; choose one with name=..."
            )
        try:
            self._arguments = context if isinstance(context, Arguments) else SchemaArguments(self.parameters)
        except ValueError as error:
            raise ToolDefinitionError(
                f"tool {self.name!r}: its parameters are not a valid JSON Schema: {error}"
            ) from error
        self.hidden  # noqa: B018 - refuses two parameters for one thing

    @cached_property
    def hidden(self) -> HiddenParameters:
        """The parameters that the model never sees."""
        return hidden_parameters(self.function)

    @cached_property
    def is_async(self) -> bool:
        """Whether the function, or what it wraps, is written with `async`; such run on the loop, all others in threads."""
        layers = (self.function, type(self.function).__call__, plain_function(self.function))
        return any(inspect.iscoroutinefunction(layer) or inspect.isasyncgenfunction(layer) for layer in layers)

    @property
    def context_type(self) -> type[ActionContext] | None:
        """The type of dependencies that it asks for, if any."""
        return self.hidden.context_type

    def definition(self) -> dict[str, object]:
        """What the model is told of it, in the format of OpenAI."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters},
        }

    def validate_arguments(self, arguments: str | Mapping[str, object] | None) -> dict[str, object]:
        """The values for the function, without the hidden ones.

        Null for a parameter that has a default means the default. A name that the tool does not know is refused;
        what comes under the name of a hidden parameter is dropped.

        Args:
            arguments: What the model wrote: JSON text of an object, or the object.

        Raises:
            InvalidArguments: They do not fit. The text is for the model and names each field by its path.
        """
        given = read_object(arguments)
        hidden = self.hidden.names
        if not hidden.isdisjoint(given):
            given = {name: value for name, value in given.items() if name not in hidden}
        try:
            return self._arguments.values(given)
        except InvalidArguments:
            raise
        except Exception as error:  # a validator of the author's own, or a nesting too deep
            problem = f"The arguments could not be checked: {words_of(error)}"
            raise InvalidArguments(bounded(well_formed(problem), 300)) from error

    def with_hidden(
        self, arguments: Mapping[str, object], action_context: ActionContext | None, call: ToolContext | None
    ) -> dict[str, object]:
        """The arguments with the hidden ones filled in.

        Raises:
            ContextTypeError: The dependencies are not of the type that it asks for, or it asks for a `ToolContext` outside
                of a run.
        """
        values = dict(arguments)
        hidden = self.hidden
        if hidden.context is not None and hidden.context_type is not None:
            given = action_context if action_context is not None else ActionContext()
            if not isinstance(given, hidden.context_type):
                raise ContextTypeError(
                    f"tool {self.name!r} asks for {hidden.context_type.__name__}, but was given {type(given).__name__}"
                )
            values[hidden.context] = given
        if hidden.call is not None:
            if call is None:
                raise ContextTypeError(f"tool {self.name!r} asks for a ToolContext, but was given none")
            values[hidden.call] = call
        return values

    def with_function(self, function: Callable[..., object]) -> Self:
        """The same tool over another function, such as a bound method or a decorated form of its own."""
        return type(self).model_validate({**dict(self), "function": function}, context=self._arguments)


Action = Tool


def build_tool(
    func: Callable[..., object],
    name: str | None = None,
    description: str | None = None,
    parameters_override: Schema | None = None,
    tags: list[str] | None = None,
    **options: Unpack[ToolOptions],
) -> Tool:
    """Makes a tool of a function, from its signature, type hints and docstring.

    Args:
        func: A function, method, partial or callable object, sync or async.
        name: Otherwise the function's own.
        description: Otherwise the docstring without its parts on parameters and results.
        parameters_override: A JSON Schema in place of the one from the signature. Arguments are then checked against it
            and passed as they are, as for a tool made by hand.
        tags: Words to choose tools by.
        options: See the fields of `Tool`.

    Raises:
        ToolDefinitionError: The function cannot be a tool. The message names the parameter.
    """
    chosen = name if name is not None else name_of(func)
    if parameters_override is not None:
        text = description if description is not None else documentation_of(func).description
        return Tool(name=chosen, description=text, parameters=parameters_override, function=func, tags=tags, **options)
    signature = read_signature(func, chosen)
    text = description if description is not None else signature.description
    return _tool_that_takes(SignatureArguments(signature), func, name=chosen, description=text, tags=tags, **options)


def build_model_tool(
    model: type[BaseModel],
    func: Callable[..., object],
    name: str,
    description: str,
    tags: list[str] | None = None,
    **options: Unpack[ToolOptions],
) -> Tool:
    """Makes a tool whose arguments are the fields of a model. The function takes the validated instance.

    Raises:
        ToolDefinitionError: The model or the function cannot be used so.
    """
    hidden = hidden_parameters(func).names
    visible = [parameter for parameter in inspect.signature(func).parameters if parameter not in hidden]
    if len(visible) != 1:
        raise ToolDefinitionError(f"tool {name!r}: its function must take the {model.__name__} as its only argument")
    arguments = ModelArguments(model, visible[0])
    return _tool_that_takes(arguments, func, name=name, description=description, tags=tags, **options)


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    function: Function,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters_override: Schema | None = None,
    tags: list[str] | None = None,
    **options: Unpack[ToolOptions],
) -> Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters_override: Schema | None = None,
    tags: list[str] | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Function], Function]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters_override: Schema | None = None,
    tags: list[str] | None = None,
    **options: Unpack[ToolOptions],
) -> Function | Callable[[Function], Function]:
    """Declares a function to be a tool; with or without parentheses. The function itself stays as it is.

    The tool is kept on it as `_tool_metadata`. For the arguments see `build_tool`.

    Raises:
        ToolDefinitionError: The function cannot be a tool. The message names the parameter.
    """

    def declare(declared: Function) -> Function:
        if isinstance(declared, staticmethod | classmethod):
            method = cast(Any, declared)
            raise ToolDefinitionError(f"tool {method.__name__!r}: put @tool below @{type(method).__name__}")
        made = build_tool(declared, name, description, parameters_override, tags, **options)
        try:
            declared._tool_metadata = made  # pyright: ignore[reportFunctionMemberAccess]
        except AttributeError as error:
            raise ToolDefinitionError(
                f"tool {made.name!r}: nothing can be noted on {type(declared).__name__} objects; use build_tool"
            ) from error
        return declared

    return declare if function is None else declare(function)


def tool_of(action: "Callable[..., object] | Tool") -> Tool:
    """The tool that an action is: itself, what `@tool` noted on it, or one made of the function.

    Raises:
        ToolDefinitionError: The function cannot be a tool.
    """
    if isinstance(action, Tool):
        return action
    if is_unbound_method(action):
        raise ToolDefinitionError(
            f"tool {name_of(action)!r}: it is a method; pass it from an object, as `thing.{name_of(action)}`"
        )
    noted = cast("Tool | None", getattr(action, "_tool_metadata", None))
    if noted is None:
        return build_tool(action)
    return noted if noted.function is action else noted.with_function(action)


def _tool_that_takes(arguments: Arguments, function: Callable[..., object], **fields: object) -> Tool:
    return Tool.model_validate({**fields, "parameters": arguments.schema, "function": function}, context=arguments)
