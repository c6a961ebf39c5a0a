"""The result of a run can have a type. Its schema becomes the parameters of the exit."""

from typing import Literal

from pydantic import BaseModel, Field

from agent import Agent, ScriptedModel
from agent.testing import call, say


class Ticket(BaseModel):
    """What we want to know of a letter."""

    customer: str = Field(max_length=80)
    mood: Literal["happy", "angry"]
    urgency: int = Field(ge=1, le=5)


GOAL = "Read the letter and fill in a ticket."
LETTER = "Where is my parcel?! — Ada"


def test_the_result_is_an_instance():
    model = ScriptedModel([call("terminate", customer="Ada", mood="angry", urgency=4)])
    result = Agent(GOAL, output_schema=Ticket, model=model).run_sync(LETTER)

    assert result.output == Ticket(customer="Ada", mood="angry", urgency=4)


def test_a_result_that_does_not_fit_goes_back_to_the_model():
    model = ScriptedModel(
        [
            call("terminate", customer="Ada", mood="furious", urgency=4),
            call("terminate", customer="Ada", mood="angry", urgency=4),
        ]
    )
    result = Agent(GOAL, output_schema=Ticket, model=model).run_sync(LETTER)

    assert result.output.mood == "angry"
    assert result.steps == 2


def test_a_model_without_tool_calling_is_forced_into_json():
    """`dialect="json"`: the whole reply is one JSON object; for small models and simple servers."""
    model = ScriptedModel([say('{"customer": "Ada", "mood": "angry", "urgency": 4}')])
    result = Agent(GOAL, output_schema=Ticket, model=model, dialect="json").run_sync(LETTER)

    assert result.output.customer == "Ada"


def test_any_type_that_pydantic_knows_will_do():
    model = ScriptedModel([call("terminate", result=["parcel", "delay"])])
    result = Agent("List the topics.", output_schema=list[str], model=model).run_sync(LETTER)

    assert result.output == ["parcel", "delay"]
