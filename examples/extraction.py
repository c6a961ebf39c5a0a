"""An agent without tools that turns a letter into a typed ticket.

    pawl run examples.extraction "Where is my parcel?! I have waited for three weeks. Ada Miller"

The dialect `json` forces the whole reply into the schema, so that small models and servers without function calling will
do. Without a key it runs on the script below, whatever the letter says; its first reply does not fit the schema, to show
that the model is told why and asked again.
"""

import os
from typing import Literal

from pydantic import BaseModel, Field

from agent import Agent, Budget, ScriptedModel
from agent.testing import say


class Customer(BaseModel):
    """Who wrote."""

    name: str = Field(max_length=80)
    is_angry: bool


class Ticket(BaseModel):
    """What we want to know of a letter."""

    customer: Customer
    topic: Literal["delivery", "payment", "product", "other"]
    urgency: int = Field(ge=1, le=5, description="5: today.")


SCRIPT = ScriptedModel(
    [
        say('{"customer": {"name": "Ada Miller", "is_angry": true}, "topic": "parcel", "urgency": 4}'),
        say('{"customer": {"name": "Ada Miller", "is_angry": true}, "topic": "delivery", "urgency": 4}'),
    ]
)
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

extraction = Agent(
    "Read the letter and fill in a ticket.",
    name="extraction",
    output_schema=Ticket,
    dialect="json",
    model=os.environ.get("EXTRACTION_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else SCRIPT,
    budget=Budget(max_steps=4),
)
