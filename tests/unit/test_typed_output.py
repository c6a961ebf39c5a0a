"""Every type of result, in every dialect; and validators, which have the last word."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agent.agent import Agent
from agent.errors import AgentDefinitionError, RunFailed, ToolError
from agent.events import ModelReplied, ReplyRejected, RunCompleted, ToolReturned, decode, encode
from agent.models.base import ModelReply, ModelRequest
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, say
from agent.output import OutputSchema
from agent.result import RunResult
from agent.tools import tool
from tests.support import virtual_time


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)


class Nothing(BaseModel):
    """There is no such city."""

    why: str


@dataclass
class Point:
    x: int
    y: int


class Route(TypedDict):
    stops: list[str]


GRAZ = City(name="Graz", people=3)
TYPES: list[tuple[Any, object, object, object]] = [  # the type, JSON of a result, the result, JSON that does not fit
    (City, {"name": "Graz", "people": 3}, GRAZ, {"name": "Graz", "people": -3}),
    (Point, {"x": 1, "y": 2}, Point(1, 2), {"x": "far"}),
    (Route, {"stops": ["a", "b"]}, {"stops": ["a", "b"]}, {"stops": 5}),
    (Literal["yes", "no"], "yes", "yes", "maybe"),
    (City | Nothing, {"why": "gone"}, Nothing(why="gone"), {"reason": "gone"}),
    (City | None, None, None, {"name": 1}),
    (int | list[int], [1, 2], [1, 2], ["one"]),
    (list[City], [{"name": "Graz", "people": 3}], [GRAZ], [{"name": "Graz"}]),
    (dict[str, Point], {"a": {"x": 1, "y": 2}}, {"a": Point(1, 2)}, {"a": {}}),
    (float, 1.5, 1.5, "much"),
]


def in_dialect(dialect: str, value: object, output_type: object) -> ModelReply:
    """A model's way to hand in a result."""
    is_model = isinstance(output_type, type) and issubclass(output_type, BaseModel)
    arguments = cast("dict[str, object]", value) if is_model else {"result": value}
    if dialect == "tools":
        return call("terminate", **arguments)
    if dialect == "json":
        return say(json.dumps(arguments))
    return say(f"Thought: I know\nFinal Answer: {json.dumps(value)}")


def refusals(result: RunResult[Any]) -> list[str]:
    """What the model was told of results that were not taken."""
    facts = [one.event for one in result.events]
    calls = [event.content for event in facts if isinstance(event, ToolReturned) and event.outcome == "invalid_output"]
    return calls + [event.message for event in facts if isinstance(event, ReplyRejected)]


@pytest.mark.parametrize("dialect", ["tools", "json", "react"])
@pytest.mark.parametrize(("output_type", "plain", "value", "wrong"), TYPES, ids=str)
def test_every_type_in_every_dialect(dialect: str, output_type: Any, plain: object, value: object, wrong: object):
    model = ScriptedModel([in_dialect(dialect, given, output_type) for given in (wrong, plain)])
    agent: Agent[Any] = Agent("Find it.", output_schema=output_type, dialect=dialect, model=model)
    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.steps, len(refusals(result))) == (value, 2, 1)


@pytest.mark.parametrize("dialect", ["tools", "react"])
def test_text_will_do_where_the_result_is_a_word(dialect: str):
    answer = "yes" if dialect == "tools" else "Final Answer: yes"
    agent = Agent("Decide.", output_schema=Literal["yes", "no"], dialect=dialect, model=ScriptedModel([say(answer)]))
    assert virtual_time.run(agent.run("go")).output == "yes"


@pytest.mark.parametrize("nothing", [None, NoneType])
@pytest.mark.parametrize("reply", [call("terminate"), call("terminate", result=None), say("That is done.")])
def test_a_run_that_only_acts_has_no_result(nothing: Any, reply: ModelReply):
    agent: Agent[None] = Agent("Tidy up.", output_schema=nothing, model=ScriptedModel([reply]))
    assert virtual_time.run(agent.run("go")).output is None


def test_names_are_as_people_write_them():
    types: list[Any] = [str, City, list[City], City | None, Literal["a", "b"], None]
    names = [OutputSchema(given).name for given in types]
    assert names == ["str", "City", "list[City]", "City | None", "Literal['a', 'b']", "None"]


def test_what_is_wrong_with_a_type_is_said():
    with pytest.raises(AgentDefinitionError, match=r"output_schema=list\[Thread\].*Thread"):
        Agent("Do it.", output_schema=list[threading.Thread])


# --- validators


def large(city: City) -> City:
    if city.people < 10:
        raise ValueError(f"{city.name} is too small")
    return city


async def known(city: City) -> City:
    await asyncio.sleep(1)
    if city.name == "Atlantis":
        raise ToolError("there is no Atlantis")
    return city.model_copy(update={"name": city.name.upper()})


def replying(*values: dict[str, object], dialect: str = "tools") -> ScriptedModel:
    return ScriptedModel([in_dialect(dialect, value, City) for value in values])


SMALL: dict[str, object] = {"name": "Graz", "people": 3}
LOST: dict[str, object] = {"name": "Atlantis", "people": 30}
GOOD: dict[str, object] = {"name": "Graz", "people": 300}


@pytest.mark.parametrize("dialect", ["tools", "json", "react"])
def test_validators_look_one_after_the_other(dialect: str):
    agent = Agent(
        "Find it.",
        output_schema=City,
        output_validators=[large, known],
        dialect=dialect,
        model=replying(SMALL, LOST, GOOD, dialect=dialect),
    )
    result = virtual_time.run(agent.run("go"))
    assert result.output == City(name="GRAZ", people=300)
    assert refusals(result) == ["Graz is too small", "there is no Atlantis"]


@pytest.mark.parametrize("dialect", ["tools", "json", "react"])
def test_refusals_are_bounded(dialect: str):
    agent = Agent(
        "Find it.",
        output_schema=City,
        output_validators=[large],
        dialect=dialect,
        max_unusable=3,
        model=FunctionModel(lambda _: in_dialect(dialect, SMALL, City)),
    )
    with pytest.raises(RunFailed) as failure:
        virtual_time.run(agent.run("go"))
    assert failure.value.reason == "invalid_output"
    assert "3 replies in a row" in str(failure.value)


def short(text: str) -> str:
    if len(text) > 5:
        raise ValueError("at most five letters")
    return text.strip(".")


def test_an_answer_in_plain_text_is_validated():
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return say("much too long" if request.step == 1 else "Hi.")

    agent = Agent("Say it.", output_validators=[short], model=FunctionModel(answer))
    result = virtual_time.run(agent.run("go"))
    assert result.output == "Hi"
    first = next(one.event for one in result.events if isinstance(one.event, ModelReplied))
    assert (first.content, [made.name for made in first.calls]) == ("much too long", ["terminate"])
    assert seen[1].messages[-1].content == "at most five letters"


def test_an_answer_that_does_not_fit_the_type_is_not_shown_to_validators():
    model = ScriptedModel([say("Graz"), say(json.dumps(GOOD))])
    agent = Agent("Find it.", output_schema=City, output_validators=[large], model=model)
    result = virtual_time.run(agent.run("go"))
    assert result.output == City(name="Graz", people=300)
    assert "object" in refusals(result)[0]


def breaks(city: City) -> City:
    raise LookupError(city.name)


def stops(city: City) -> City:
    return next(iter([city][1:]))


def forgets(city: City) -> City:
    return None  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("validator", "words"), [(breaks, "LookupError: Graz"), (stops, "StopIteration"), (forgets, "no City")]
)
def test_a_validator_that_breaks_has_refused(validator: Callable[[City], City], words: str):
    told: list[str] = []

    def answer(request: ModelRequest) -> ModelReply:
        told.append(request.messages[-1].content or "")
        return in_dialect("tools", GOOD, City)

    agent = Agent(
        "Find it.", output_schema=City, output_validators=[validator], max_unusable=2, model=FunctionModel(answer)
    )
    with pytest.raises(RunFailed) as failure:
        virtual_time.run(agent.run("go"))
    assert failure.value.reason == "invalid_output"
    assert words in told[1]


def test_validators_do_not_stop_the_loop():
    def where(text: str) -> str:
        return f"{text} {threading.current_thread() is threading.main_thread()}"

    agent = Agent("Say it.", output_validators=[where], model=ScriptedModel([say("main:")]))
    assert virtual_time.run(agent.run("go")).output == "main: False"


def test_an_own_exit_checks_its_own_result():
    @tool(terminal=True)
    def finish(answer: str) -> str:
        """Ends."""
        return answer

    with pytest.raises(AgentDefinitionError, match="let finish check its own"):
        Agent("Do it.", tools=[finish], output_validators=[short])


# --- numbers that JSON does not have


class Measured(BaseModel):
    """A measurement."""

    value: float
    more: Any = None


@pytest.mark.parametrize(
    ("output_type", "written", "good", "place"),
    [
        (float, "NaN", "1.5", "result"),
        (float, "1e999", "1.5", "result"),
        (float, "-Infinity", "1.5", "result"),
        (list[float], "[1, Infinity]", "[1]", "1"),
        (list[float], '[1, "Infinity"]', "[1]", "1"),
        (dict[str, Measured], '{"a": {"value": NaN}}', "{}", "a.value"),
        (dict, '{"a": [{"b": NaN}]}', "{}", "a.0.b"),
        (Measured, '{"value": 1e999}', '{"value": 1}', "value"),
        (Measured, '{"value": 1, "more": {"a": NaN}}', '{"value": 1}', "more.a"),
    ],
)
def test_a_number_that_json_does_not_have_goes_back_to_the_model(output_type: Any, written: str, good: str, place: str):
    """It would come out of the record as null, and the run would have no result for ever."""
    agent = Agent("Measure.", output_schema=output_type, model=ScriptedModel([say(written), say(good)]))

    result = virtual_time.run(agent.run("go"))
    assert (result.output, result.steps) == (OutputSchema(output_type).of_text(good), 2)
    (words,) = refusals(result)
    assert words.endswith(f"\n{place}: Input should be a finite number")


@pytest.mark.parametrize(
    ("output_type", "arguments", "good", "place"),
    [
        (float, {"result": "NaN"}, "1.5", "result"),
        (list[float], {"result": [1, "-inf"]}, "[1]", "result.1"),
        (dict[str, Measured], {"result": {"a": {"value": "1e999"}}}, "{}", "a.value"),
        (Measured, {"value": "Infinity"}, '{"value": 1}', "value"),
    ],
)
def test_the_exit_takes_no_text_for_a_number_that_json_does_not_have(
    output_type: Any, arguments: dict[str, object], good: str, place: str
):
    agent = Agent(
        "Measure.", output_schema=output_type, model=ScriptedModel([call("terminate", **arguments), say(good)])
    )

    result = virtual_time.run(agent.run("go"))
    assert refusals(result) == [f"{place}: Input should be a finite number"]


def test_a_validator_cannot_hand_in_what_json_does_not_have():
    def broken(values: list[float]) -> list[float]:
        return [value / 2 if value < 10 else float("inf") for value in values]

    replies = [call("terminate", result=[1.0, 20.0]), say("[1, 20]"), say("[1, 2]")]
    agent = Agent("Halve.", output_schema=list[float], output_validators=[broken], model=ScriptedModel(replies))

    result = virtual_time.run(agent.run("go"))
    assert result.output == [0.5, 1.0]
    assert refusals(result) == ["1: Input should be a finite number"] * 2


def test_what_an_own_exit_returned_is_kept_as_text_where_json_has_no_number_for_it():
    """It has done its work: to call it once more would do that twice."""

    @tool(terminal=True)
    def finish() -> dict[str, object]:
        """Ends."""
        return {"mean": float("nan"), "limits": [float("-inf"), 1.0]}

    agent = Agent("Measure.", tools=[finish], model=ScriptedModel([call("finish")]))

    result = virtual_time.run(agent.run("go"))
    assert result.output == {"mean": "NaN", "limits": ["-Infinity", 1.0]}
    ended = result.events[-1].event
    assert isinstance(ended, RunCompleted)
    assert decode(encode(ended)) == ended


# --- texts that look like JSON


def content(value: object) -> object:
    return value


@pytest.mark.parametrize("validators", [[], [content]])
@pytest.mark.parametrize(
    ("output_type", "written", "value"),
    [
        (Annotated[str, Field(max_length=50)], "42", "42"),
        (Annotated[str, Field(max_length=50)], '{"a": 1}', '{"a": 1}'),
        (Annotated[str, Field(max_length=50)], '"quoted"', "quoted"),
        (str | None, "42", "42"),
        (str | None, "true", "true"),
        (str | None, "null", None),
        (Literal["1", "2"], "1", "1"),
        (int | Literal["1", "x"], "1", 1),
        (City | str, "42", "42"),
        (City | str, "Graz", "Graz"),
    ],
)
def test_a_text_is_the_result_where_its_json_is_not(
    output_type: Any, written: str, value: object, validators: list[Callable[[Any], Any]]
):
    model = ScriptedModel([say(written)])
    agent = Agent("Say it.", output_schema=output_type, output_validators=validators, model=model)

    assert virtual_time.run(agent.run("go")).output == value


def test_an_object_that_has_gone_wrong_is_not_taken_for_a_text():
    replies = [say('{"name": "Graz", "people": -3}'), say('{"name": "Graz", "people": 3}')]
    agent: Agent[Any] = Agent("Find it.", output_schema=City | str, model=ScriptedModel(replies))

    assert virtual_time.run(agent.run("go")).output == GRAZ


def test_a_stored_result_that_does_not_fit_is_an_error_of_ours():
    with pytest.raises(
        AgentDefinitionError, match=r"output_schema=City does not fit the result: people: Field required"
    ):
        OutputSchema(City).of_json({"name": "Graz"})
