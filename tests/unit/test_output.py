"""The result of a run: its type, its schema and the exit that carries it."""

import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field, field_serializer
from pydantic_core import from_json, to_json

from agent.agent import Agent
from agent.errors import AgentDefinitionError, InvalidArguments, RunFailed
from agent.events import RunCompleted, decode, encode
from agent.models.base import ModelReply
from agent.models.scripted import ScriptedModel, call, say
from agent.output import OutputSchema, any_json
from tests.support import virtual_time


class Colour(Enum):
    RED = "red"


class Paint(BaseModel):
    colour: Colour
    price: Decimal
    mixed: date
    shades: set[int] = set()


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    mixed: date
    colour: Colour
    pair: tuple[int, int]


class Renamed(BaseModel):
    first: int = Field(alias="firstName")
    second: int = Field(validation_alias="secondName")
    third: int = Field(serialization_alias="thirdName")

    @computed_field
    def total(self) -> int:
        return self.first + self.second + self.third


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    value: int

    @computed_field
    def double(self) -> int:
        return self.value * 2


class Numbers(RootModel[list[int]]):
    """Numbers."""


@dataclass
class Point:
    x: int
    y: int


@pytest.mark.parametrize(
    ("output_type", "value"),
    [
        (str, "text"),
        (int, 3),
        (list[int], [1, 2]),
        (dict[str, float], {"a": 1.5}),
        (Paint, Paint(colour=Colour.RED, price=Decimal("0.10"), mixed=date(2026, 1, 2), shades={1})),
        (Strict, Strict(mixed=date(2026, 1, 2), colour=Colour.RED, pair=(1, 2))),
        (Renamed, Renamed.model_validate({"firstName": 1, "secondName": 2, "third": 3})),
        (Closed, Closed(value=2)),
        (Numbers, Numbers([1, 2])),
        (Point, Point(1, 2)),
        (Colour, Colour.RED),
    ],
)
def test_a_result_comes_out_of_the_record_as_it_went_in(output_type: type[Any], value: object):
    schema: OutputSchema[Any] = OutputSchema(output_type)
    event = decode(encode(RunCompleted(output=schema.to_json(value))))
    assert isinstance(event, RunCompleted)
    assert schema.of_json(event.output) == value


@pytest.mark.parametrize(
    ("output_type", "arguments", "value"),
    [
        (str, {"result": "42"}, "42"),
        (list[int], {"result": [1, 2]}, [1, 2]),
        (Numbers, {"result": [1, 2]}, Numbers([1, 2])),
        (Closed, {"value": 2}, Closed(value=2)),
        (Point, {"result": {"x": 1, "y": 2}}, Point(1, 2)),
        (
            Renamed,
            {"firstName": 1, "secondName": 2, "third": 3},
            Renamed.model_validate({"firstName": 1, "secondName": 2, "third": 3}),
        ),
    ],
)
def test_the_exit_takes_what_its_schema_says(output_type: type[Any], arguments: dict[str, object], value: object):
    agent = Agent("Do it.", output_schema=output_type, model=ScriptedModel([call("terminate", **arguments)]))
    assert virtual_time.run(agent.run("go")).output == value


def test_the_exit_says_what_it_is():
    exit_tool = OutputSchema(Closed).terminate_tool()
    assert (exit_tool.name, exit_tool.terminal, exit_tool.idempotent) == ("terminate", True, True)
    assert exit_tool.description == "Provide the final result (Closed) and end the task."
    assert exit_tool.parameters["required"] == ["value"]
    assert OutputSchema(str).terminate_tool().parameters["required"] == ["result"]


def test_a_result_that_does_not_fit_goes_back_to_the_model():
    model = ScriptedModel([call("terminate", value="many"), call("terminate", value=2)])
    agent = Agent("Do it.", output_schema=Closed, model=model)
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.steps) == (Closed(value=2), 2)


def test_text_is_read_as_the_result():
    assert OutputSchema(str).of_text(" as it is ") == " as it is "
    assert OutputSchema(Closed).of_text('```json\n{"value": 2}\n```') == Closed(value=2)
    assert OutputSchema(list[int]).of_text("[1, 2]") == [1, 2]
    with pytest.raises(InvalidArguments, match="value"):
        OutputSchema(Closed).of_text('{"value": "many"}')
    with pytest.raises(InvalidArguments):
        OutputSchema(Closed).of_text("forty-two")
    agent = Agent("Do it.", output_schema=Closed, model=ScriptedModel([say('{"value": 2}')]))
    assert virtual_time.run(agent.run("go")).output == Closed(value=2)


def test_a_type_without_a_schema_is_refused():
    class Socket:
        pass

    for impossible in (Socket, list[Socket]):
        with pytest.raises(AgentDefinitionError, match="output_schema"):
            Agent("Do it.", output_schema=impossible)


def test_what_an_agents_own_exit_returns_can_always_be_stored():
    class Odd:
        def __str__(self) -> str:
            return "odd"

    value = {1: Point(1, 2), "text": "\ud83d\ude00 \ud800", "odd": Odd(), "bytes": b"\xff", "many": {3}}
    kept = any_json(value)
    assert kept == {"1": {"x": 1, "y": 2}, "text": "😀 \ufffd", "odd": "odd", "bytes": "_w==", "many": [3]}
    assert from_json(to_json(kept)) == kept
    assert json.loads(encode(RunCompleted(output=kept)))["output"] == kept


class Unwritable(BaseModel):
    value: int

    @field_serializer("value")
    def written(self, value: int) -> int:
        raise ValueError(f"no {value} today")


@pytest.mark.parametrize("reply", [call("terminate", value=3), say('{"value": 3}')])
def test_a_result_that_json_cannot_carry_ends_the_run_and_says_why(reply: ModelReply) -> None:
    """To call the exit once more would help nobody, and would do its work twice."""
    agent = Agent("Count.", output_schema=Unwritable, model=ScriptedModel([reply, say("unreachable")]))

    with pytest.raises(RunFailed) as failed:
        virtual_time.run(agent.run("go"))
    assert failed.value.reason == "result_not_json"
    assert "no 3 today" in str(failed.value)
    assert str(failed.value).endswith("return what JSON can carry")


class Lock: ...


class Locked(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    lock: Lock


@pytest.mark.parametrize("output_type", [Lock, Locked, list[Locked]])
def test_a_type_that_pydantic_cannot_describe_is_refused_without_advice_that_would_not_help(
    output_type: type[Any],
) -> None:
    with pytest.raises(AgentDefinitionError, match="no JSON Schema can be made of it") as refused:
        OutputSchema(output_type)
    assert "arbitrary_types_allowed" not in str(refused.value)
