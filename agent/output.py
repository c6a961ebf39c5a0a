"""The result of a run: its type, its schema, and the built-in exit that carries it. Pure.

`response_format` would stop the use of tools too early, so the output schema becomes the parameters of a terminal tool.
"""

import inspect
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_jsonable_python

from agent.errors import AgentDefinitionError, InvalidArguments
from agent.tools import Tool, build_model_tool

Output = TypeVar("Output")

TERMINATE: Final = "terminate"
"""The name of the built-in exit."""

FIELD: Final = "result"
"""The one parameter of the exit where the output is not an object."""


class OutputSchema(Generic[Output]):
    """What a run returns, as a Python type.

    Raises:
        AgentDefinitionError: No JSON Schema can be made of the type.
    """

    def __init__(self, output_type: type[Output]) -> None:
        self.type = output_type
        self.is_text = cast(object, output_type) is str
        self._is_model = inspect.isclass(output_type) and issubclass(output_type, BaseModel)
        name = getattr(output_type, "__name__", str(output_type))
        try:
            self._adapter: TypeAdapter[Output] = TypeAdapter(output_type)
            self._arguments: type[BaseModel] = (
                cast("type[BaseModel]", output_type)
                if self._is_model
                else create_model(f"{name.capitalize()}Result", **cast(Any, {FIELD: (output_type, ...)}))
            )
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise AgentDefinitionError(
                f"output_schema={name}: no JSON Schema can be made of it; use str, a BaseModel or types that pydantic knows"
            ) from error
        self.name = name

    def of_text(self, text: str) -> Output:
        """The result that a reply in plain text is: the text itself, or the JSON that it holds.

        Raises:
            InvalidArguments: It does not fit the schema.
        """
        if self.is_text:
            return cast(Output, text)
        try:
            return self._adapter.validate_json(_without_fence(text))
        except ValidationError as error:
            raise InvalidArguments(explain(error)) from error

    def to_json(self, value: Output) -> object:
        """The result as what JSON can carry."""
        return self._adapter.dump_python(value, mode="json")

    def of_json(self, value: object) -> Output:
        """The result as it was before `to_json`.

        Raises:
            ValidationError: The stored result does not fit the schema (any more).
        """
        return self._adapter.validate_python(value)

    def terminate_tool(self) -> Tool:
        """The built-in exit. Its only effect is that the run ends, so that it may be executed again."""

        async def finish(arguments: BaseModel) -> object:
            return arguments if self._is_model else getattr(arguments, FIELD)

        description = f"Provide the final result ({self.name}) and end the task."
        return build_model_tool(self._arguments, finish, TERMINATE, description, terminal=True, idempotent=True)


def any_json(value: object) -> object:
    """The result of an agent's own terminal tool as what JSON can carry."""
    return to_jsonable_python(value, fallback=str)


def explain(error: ValidationError) -> str:
    """A validation error in words for a model: one line a field, with its path; at most ten."""
    lines = [
        f"{'.'.join(str(part) for part in detail['loc']) or 'value'}: {detail['msg']}"
        for detail in error.errors(include_url=False, include_input=False, include_context=False)[:10]
    ]
    more = error.error_count() - len(lines)
    return "\n".join(lines + ([f"… and {more} more"] if more else []))


def _without_fence(text: str) -> str:
    """The text inside a code fence, if the whole reply is one."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped[stripped.index("\n") + 1 : -3]
    return stripped
