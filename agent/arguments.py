"""Turns the arguments that a model wrote into the values that a tool takes. Pure.

Three ways to know what fits: a function's signature, a pydantic model, or a JSON Schema written by hand. A name that the
tool does not know is refused (a model decides that itself), and null for what may be left out means that it is left out.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NotRequired, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from agent.errors import InvalidArguments, ToolDefinitionError
from agent.json_schema import JsonSchema
from agent.schema import Schema, schema_of, why_no_schema
from agent.second_reading import fitting, validated
from agent.signature import NO_DEFAULT, Parameter, ToolSignature
from agent.text import bounded, well_formed

_MOST_PROBLEMS: Final = 10
_LONGEST_PROBLEM: Final = 300

_CLOSED: Final = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
_OPEN: Final = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False, extra="allow")


class Arguments(ABC):
    """What a tool takes, and how it is checked.

    Attributes:
        schema: The JSON Schema that the model sees.
    """

    schema: Schema

    @abstractmethod
    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """The values for the function.

        Raises:
            InvalidArguments: They do not fit.
        """


class SignatureArguments(Arguments):
    """The parameters of a function. Values arrive as the types that it declares, at every depth.

    What does not fit is read once more: a text as JSON, so that "2" and '["a"]' are taken as they were meant, and a null
    as left out, at every depth. Where the default is None, the text null is a null too, also where a text would fit.

    Raises:
        ToolDefinitionError: A parameter's type cannot be expressed as JSON Schema.
    """

    def __init__(self, signature: ToolSignature) -> None:
        self._adapter = _adapter(signature)
        schema = schema_of(self._adapter)
        properties = cast("dict[str, Schema]", schema.get("properties", {}))
        for parameter in signature.parameters:
            _describe(parameter, properties)
        self._known = frozenset(properties)
        self._required = frozenset(cast("list[str]", schema.get("required", [])))
        self._bound = signature.bound
        self._takes_any = signature.takes_any
        self._none_by_default: frozenset[str] = frozenset(
            one.name for one in signature.parameters if one.default is None
        )
        self.schema = {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name in self._required],
            **({"additionalProperties": True} if signature.takes_any else {}),
            **({"$defs": schema["$defs"]} if "$defs" in schema else {}),
        }

    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """The typed values of the arguments that were given; the others are left to the function's own defaults."""
        unknown = _unknown_names([name for name in given if not self._takes(name)], self._known)
        said = {name: value for name, value in given.items() if self._takes(name) and not self._means_none(name, value)}
        try:
            values = validated(self._adapter, _without_null(said, self._required))
        except ValidationError as error:
            raise InvalidArguments(_summary([*unknown, *_problem_lines(error)])) from error
        if unknown:
            raise InvalidArguments(_summary(unknown))
        return values

    def _takes(self, name: str) -> bool:
        return name in self._known or (self._takes_any and name not in self._bound)

    def _means_none(self, name: str, value: object) -> bool:
        return name in self._none_by_default and value == "null"


class ModelArguments(Arguments):
    """One pydantic model: its fields are the arguments, and the function takes the instance.

    Args:
        model: The model.
        parameter: The name of the function's parameter.

    Raises:
        ToolDefinitionError: The model cannot be expressed as JSON Schema.
    """

    def __init__(self, model: type[BaseModel], parameter: str) -> None:
        self._adapter: TypeAdapter[object] = TypeAdapter(model)
        self._parameter = parameter
        try:
            self.schema = schema_of(self._adapter)
        except PydanticUserError as error:
            raise ToolDefinitionError(f"{model.__name__}: {why_no_schema(error)}") from error
        if self.schema.get("type") != "object":
            raise ToolDefinitionError(f"{model.__name__}: arguments have names; wrap it in a model with one field")

    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """The instance, under the name of the function's parameter."""
        try:
            return {self._parameter: validated(self._adapter, given)}
        except ValidationError as error:
            raise InvalidArguments(_summary(_problem_lines(error))) from error


class SchemaArguments(Arguments):
    """A JSON Schema written by hand. Values are checked and passed on as they are.

    What does not fit is read once more, as for a function: a server that was sent the schema in a plainer form
    (`agent.schema.portable`) has its model write "2" where 2 is meant.

    Raises:
        ValueError: The schema is wrong.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._json_schema = JsonSchema(schema)
        self._known = frozenset(cast("dict[str, object]", schema.get("properties", {})))
        self._takes_any = "additionalProperties" in schema or "properties" not in schema
        self._takes_null = frozenset(cast("list[str]", schema.get("required", []))) | {
            name
            for name in self._known
            if not any(path == (name,) for path, _ in self._json_schema.problems({name: None}))
        }

    def values(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments, without nulls where a parameter may be left out but not be null."""
        values = _without_null(given, self._takes_null)
        lines = [] if self._takes_any else _unknown_names(values, self._known)
        values, problems = fitting(values, lambda reading: list(self._json_schema.problems(reading)))
        lines += [f"{'.'.join(path) or 'arguments'}: {text}" for path, text in problems]
        if lines:
            raise InvalidArguments(_summary(lines))
        return values


def read_object(arguments: str | Mapping[str, object] | None) -> Mapping[str, object]:
    """The arguments of a call as a mapping; nothing at all is an empty one.

    Raises:
        InvalidArguments: They are not a JSON object.
    """
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        read: object = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"The arguments are not JSON: {bounded(str(error), _LONGEST_PROBLEM)}") from error
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise InvalidArguments(f"The arguments must be a JSON object, not {bounded(arguments, 60)}")
    return cast("dict[str, object]", read)


def explain(error: ValidationError, whole: str = "arguments") -> str:
    """A validation error in words for a model: a line for each field, with its path; at most ten.

    Args:
        whole: What to call that which has no path.
    """
    return _summary(_problem_lines(error, whole))


def _adapter(signature: ToolSignature) -> "TypeAdapter[dict[str, object]]":
    """One adapter for all parameters.

    Raises:
        ToolDefinitionError: One of them cannot be expressed as JSON Schema; the message names it.
    """
    fields = {
        parameter.name: parameter.annotation
        if parameter.default is NO_DEFAULT
        else NotRequired[cast(Any, parameter.annotation)]
        for parameter in signature.parameters
    }
    try:
        return _typed_dict_adapter(signature.name, fields, takes_any=signature.takes_any)
    except Exception as error:
        for name, annotation in fields.items():
            try:
                _typed_dict_adapter(signature.name, {name: annotation}, takes_any=False)
            except Exception as cause:
                raise ToolDefinitionError(
                    f"tool {signature.name!r}, parameter {name!r}: a model cannot fill it in ({why_no_schema(cause)}); "
                    "what the model must not see belongs in an ActionContext"
                ) from cause
        raise ToolDefinitionError(f"tool {signature.name!r}: {why_no_schema(error)}") from error


def _typed_dict_adapter(
    name: str, fields: Mapping[str, object], *, takes_any: bool
) -> "TypeAdapter[dict[str, object]]":
    make = cast("Callable[[str, Mapping[str, object]], type[dict[str, object]]]", TypedDict)
    arguments = with_config(_OPEN if takes_any else _CLOSED)(make(name, fields))
    adapter = TypeAdapter(arguments)
    schema_of(adapter)  # some types have an adapter, but no schema
    return adapter


def _describe(parameter: Parameter, properties: dict[str, Schema]) -> None:
    """Adds what pydantic does not know: the default of the function, and a type where none was said."""
    described = properties.get(parameter.name)
    if described is None:
        return
    if not parameter.is_typed and not set(described) & {"type", "anyOf", "enum", "$ref"}:
        described["type"] = "string"
    if parameter.default is not NO_DEFAULT and parameter.default is not None and "default" not in described:
        try:
            described["default"] = to_jsonable_python(parameter.default)
        except PydanticSerializationError:
            return


def _without_null(given: Mapping[str, object], kept: frozenset[str]) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None or name in kept}


def _unknown_names(given: Iterable[str], known: Iterable[str]) -> list[str]:
    known_names = ", ".join(sorted(known)) or "none"
    return [f"{name}: there is no such parameter (there is: {known_names})" for name in given if name not in set(known)]


def _problem_lines(error: ValidationError, whole: str = "arguments") -> Iterator[str]:
    """Without the values that do not fit: the model wrote them itself, and small models copy what they read."""
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        yield f"{'.'.join(str(part) for part in detail['loc']) or whole}: {detail['msg']}"


def _summary(problems: Iterable[str]) -> str:
    lines = [bounded(well_formed(line), _LONGEST_PROBLEM) for line in problems]
    more = [f"… and {len(lines) - _MOST_PROBLEMS} more"] if len(lines) > _MOST_PROBLEMS else []
    return "\n".join(lines[:_MOST_PROBLEMS] + more)
