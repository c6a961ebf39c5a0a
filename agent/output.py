"""The result of a run: its type, its schema, and the built-in exit that carries it. Pure.

`response_format` would stop the use of tools too early, so the output schema becomes the parameters of a terminal tool.
"""

import contextlib
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from types import NoneType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, ValidationError, create_model
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

_FINITE: Final = ConfigDict(allow_inf_nan=False)
_MOST_PROBLEMS: Final = 10


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
                else create_model("Result", __config__=_FINITE, **cast(Any, {FIELD: (output_type, default)}))
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
            _, value = self._read(text)
        except ValidationError as error:
            raise InvalidArguments(explain(error, FIELD)) from error
        _require_finite(self._adapter, value)
        return value

    def exit_arguments(self, text: str) -> str:
        """What the exit is called with where a reply in plain text is the result: JSON that the exit has yet to check.

        Raises:
            ValidationError: The text does not fit the schema, see `of_text`.
        """
        if self._is_nothing:
            return "{}"
        result = json.dumps(text) if self.is_text else self._read(text)[0]
        return result if self._is_model else f'{{"{FIELD}": {result}}}'

    def to_json(self, value: Output) -> object:
        """The result as what JSON can carry, by the names of its fields.

        Raises:
            InvalidArguments: It holds NaN or an infinity, which would come out of the record as null. The text is for the model.
            UnrenderableResult: The type's own code cannot write it as JSON.
        """
        _require_finite(self._adapter, value)
        try:
            return well_formed_json(self._adapter.dump_python(value, mode="json", by_alias=False, round_trip=True))
        except (TypeError, ValueError) as error:
            raise UnrenderableResult(f"The result, a {self.name}, cannot be stored as JSON: {error}") from error

    def of_json(self, value: object) -> Output:
        """The result as it was before `to_json`.

        Raises:
            AgentDefinitionError: The stored result does not fit the schema (any more).
        """
        try:
            return self._adapter.validate_json(to_json(value), by_alias=True, by_name=True)
        except ValidationError as error:
            problems = explain(error, FIELD).replace("\n", "; ")
            raise AgentDefinitionError(f"output_schema={self.name} does not fit the result: {problems}") from error

    def _read(self, text: str) -> tuple[str, Output]:
        """The JSON that a text is, and its value; the text itself where that does not fit, as 42 where a text is wanted.

        What looks like an object or a list is taken for a text only where the result cannot be one: else it is one that
        has gone wrong, and the model is to mend it.
        """
        plain = without_fence(text)
        quoted = json.dumps(plain)
        try:
            is_structure = isinstance(from_json(plain), dict | list)
        except ValueError:
            return quoted, self._adapter.validate_json(quoted)
        try:
            return plain, self._adapter.validate_json(plain)
        except ValidationError:
            if is_structure and _has_structure(self.schema):
                raise
            with contextlib.suppress(ValidationError):
                return quoted, self._adapter.validate_json(quoted)
            raise

    def handed_in(self, arguments: BaseModel) -> object:
        """The result that the exit was called with."""
        return arguments if self._is_model else getattr(arguments, FIELD)

    def terminate_tool(self) -> Tool:
        """The built-in exit. Its only effect is that the run ends, so that it may be executed again."""

        async def finish(arguments: BaseModel) -> object:
            return self.handed_in(arguments)

        description = f"Provide the final result ({self.name}) and end the task."
        return build_model_tool(self._arguments, finish, TERMINATE, description, terminal=True, idempotent=True)


def _name_of(output_type: object) -> str:
    """The type's name as people write it, without modules."""
    if inspect.isclass(output_type) and not get_args(output_type):
        return output_type.__name__
    return re.sub(r"(?:[\w<>]+\.)+(?=\w)", "", str(output_type))


def _has_structure(schema: Schema) -> bool:
    """Whether what fits may be an object or a list."""
    choices = cast("list[Schema] | None", schema.get("anyOf"))
    return any(map(_has_structure, choices)) if choices else schema.get("type") in {"object", "array", None}


def _require_finite(adapter: TypeAdapter[Output], value: Output) -> None:
    """Refuses numbers that JSON does not have.

    Raises:
        InvalidArguments: There are some; each is named by its path.
    """
    try:
        plain: object = adapter.dump_python(value, by_alias=False, round_trip=True, warnings=False)
    except Exception:  # the type's own code: whoever writes the result as JSON will hear of it
        return
    problems = [f"{path}: Input should be a finite number" for path in _not_finite(plain, ())]  # in pydantic's words
    if problems:
        raise InvalidArguments("\n".join(problems[:_MOST_PROBLEMS]))


def _not_finite(value: object, path: tuple[object, ...]) -> Iterator[str]:
    """The paths of NaN and infinities, at every depth."""
    if isinstance(value, float) and not math.isfinite(value):
        yield ".".join(map(str, path)) or FIELD
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[object, object]", value).items():
            yield from _not_finite(item, (*path, name))
    elif isinstance(value, Set | Sequence) and not isinstance(value, str | bytes | bytearray):
        for index, item in enumerate(cast("Iterable[object]", value)):
            yield from _not_finite(item, (*path, index))


def any_json(value: object) -> object:
    """The result of an agent's own terminal tool as what JSON can carry. Numbers that JSON does not have become texts.

    Raises:
        UnrenderableResult: Not even as texts.
    """
    try:
        return json.loads(json.dumps(well_formed_json(jsonable(value, str))), parse_constant=str)
    except Exception as error:
        what = f"The result, a {type(value).__name__}, cannot be stored as JSON"
        raise UnrenderableResult(f"{what}: {words_of(error)}") from error
