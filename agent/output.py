"""The result of a run: its type, its schema, and the built-in exit that carries it. Pure.

`response_format` would stop the use of tools too early, so the output schema becomes the parameters of a terminal tool.
"""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from types import NoneType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import from_json, to_json
from typing_extensions import TypeForm

from agent.arguments import explain
from agent.errors import AgentDefinitionError, InvalidArguments, UnrenderableResult
from agent.rendering import jsonable
from agent.schema import Schema, schema_of, why_no_schema
from agent.text import well_formed_json, without_fence, words_of
from agent.tools import Tool, build_model_tool

Output = TypeVar("Output")

OutputValidator: TypeAlias = Callable[[Output], Output | Awaitable[Output]]
"""Looks at a result and returns it, or another in its place. A `ValueError` or `ToolError` sends it back to the model."""

TERMINATE: Final = "terminate"
"""The name of the built-in exit."""

FIELD: Final = "result"
"""The one parameter of the exit where the output is not an object."""


class OutputSchema(Generic[Output]):
    """What a run returns, as a type.

    Args:
        output_type: Anything that pydantic knows: str, a model, a dataclass, a TypedDict, a Literal, a union, a list of models,
            None, …
        validators: Look at a result one after the other before it is one.

    Attributes:
        schema: JSON Schema of the result.

    Raises:
        AgentDefinitionError: No JSON Schema can be made of the type.
    """

    def __init__(self, output_type: TypeForm[Output], validators: Sequence[OutputValidator[Output]] = ()) -> None:
        self.validators = tuple(validators)
        self.name = _name_of(output_type)
        self.is_text = output_type is str
        self._is_nothing = cast(object, output_type) in (None, NoneType)
        self._is_model = (
            inspect.isclass(output_type)
            and issubclass(output_type, BaseModel)
            and not issubclass(cast(type, output_type), RootModel)
        )
        default = None if self._is_nothing else ...
        try:
            self._adapter: TypeAdapter[Output] = TypeAdapter(cast(Any, output_type))
            self._arguments: type[BaseModel] = (
                cast("type[BaseModel]", output_type)
                if self._is_model
                else create_model("Result", **cast(Any, {FIELD: (output_type, default)}))
            )
            self.schema: Schema = schema_of(self._adapter)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise AgentDefinitionError(
                f"output_schema={self.name}: no JSON Schema can be made of it; use str, a BaseModel or types that pydantic "
                f"knows ({why_no_schema(error)})"
            ) from error

    def of_text(self, text: str) -> Output:
        """The result that a reply in plain text is: the text itself, or the JSON that it holds.

        Raises:
            InvalidArguments: It does not fit the schema.
        """
        if self.is_text or self._is_nothing:
            return cast(Output, text if self.is_text else None)
        try:
            return self._adapter.validate_json(_json_in(text))
        except ValidationError as error:
            raise InvalidArguments(explain(error)) from error

    def exit_arguments(self, text: str) -> str:
        """What the exit is called with where a reply in plain text is the result: JSON that the exit has yet to check."""
        if self._is_nothing:
            return "{}"
        result = json.dumps(text) if self.is_text else _json_in(text)
        return result if self._is_model else f'{{"{FIELD}": {result}}}'

    def to_json(self, value: Output) -> object:
        """The result as what JSON can carry, by the names of its fields.

        Raises:
            UnrenderableResult: The type's own code cannot write it as JSON.
        """
        try:
            return well_formed_json(self._adapter.dump_python(value, mode="json", by_alias=False, round_trip=True))
        except (TypeError, ValueError) as error:
            raise UnrenderableResult(f"The result, a {self.name}, cannot be stored as JSON: {error}") from error

    def of_json(self, value: object) -> Output:
        """The result as it was before `to_json`.

        Raises:
            ValidationError: The stored result does not fit the schema (any more).
        """
        return self._adapter.validate_json(to_json(value), by_alias=True, by_name=True)

    def terminate_tool(self) -> Tool:
        """The built-in exit. Its only effect is that the run ends, so that it may be executed again."""

        async def finish(arguments: BaseModel) -> object:
            return arguments if self._is_model else getattr(arguments, FIELD)

        description = f"Provide the final result ({self.name}) and end the task."
        return build_model_tool(self._arguments, finish, TERMINATE, description, terminal=True, idempotent=True)


def _name_of(output_type: object) -> str:
    """The type's name as people write it, without modules."""
    if inspect.isclass(output_type) and not get_args(output_type):
        return output_type.__name__
    return re.sub(r"(?:[\w<>]+\.)+(?=\w)", "", str(output_type))


def _json_in(text: str) -> str:
    """The JSON that a text is; words alone are a JSON string."""
    plain = without_fence(text)
    try:
        from_json(plain)
    except ValueError:
        return json.dumps(plain)
    return plain


def any_json(value: object) -> object:
    """The result of an agent's own terminal tool as what JSON can carry.

    Raises:
        UnrenderableResult: Not even as texts.
    """
    try:
        return well_formed_json(jsonable(value, str))
    except Exception as error:
        what = f"The result, a {type(value).__name__}, cannot be stored as JSON"
        raise UnrenderableResult(f"{what}: {words_of(error)}") from error
