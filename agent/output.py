"""The result of a run: its type, its schema, and the built-in exit that carries it. Pure.

`response_format` would stop the use of tools too early, so the output schema becomes the parameters of a terminal tool.
"""

import inspect
import json
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic_core import to_json, to_jsonable_python

from agent.arguments import explain
from agent.errors import AgentDefinitionError, InvalidArguments
from agent.text import well_formed, without_fence
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
        self._is_model = (
            inspect.isclass(output_type)
            and issubclass(output_type, BaseModel)
            and not issubclass(cast(type, output_type), RootModel)
        )
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
            return self._adapter.validate_json(without_fence(text))
        except ValidationError as error:
            raise InvalidArguments(explain(error)) from error

    def to_json(self, value: Output) -> object:
        """The result as what JSON can carry, by the names of its fields."""
        return self._adapter.dump_python(value, mode="json", by_alias=False, round_trip=True)

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


def any_json(value: object) -> object:
    """The result of an agent's own terminal tool as what JSON can carry."""
    plain = to_jsonable_python(value, fallback=str, bytes_mode="base64")
    return json.loads(well_formed(json.dumps(plain, ensure_ascii=False)))
