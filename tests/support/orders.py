"""An agent without tools that reads orders out of texts, as worker processes import it. A real model is to serve it."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agent import Agent, OpenAIModel
from agent.prices import per_million

MOST_ATTEMPTS = 3

PRICE = per_million(input="0.10", output="0.40")

TEXTS = (
    "Anna from Oslo needs 3 boxes of candles, 45.50 in all. No hurry.",
    "Please send 2 kilograms of coffee to Ben in Lyon as fast as you can! He pays 38 euro.",
    "Order by Carla, Rome: 12 pieces of soap and 1 box of towels, price 60.",
    "David (Berlin) wants 5 boxes of nails; 22.75; whenever it suits.",
    "URGENT: Eva, Vienna, 1 piece bicycle pump, 19.90",
    "Farid of Cairo orders 7 kilograms of dates for 63.00, normal delivery.",
    "Grace in Dublin: 4 pieces lamp, 120 altogether, please hurry.",
    "Hugo, Madrid, asks for 10 boxes of paper and 2 pieces of stapler, 84.20.",
    "3 kilograms of flour for Ines in Porto, 6.30, not urgent at all",
    "Jan from Gdansk: 1 box of amber, 250, by tomorrow!",
)


class Urgency(StrEnum):
    """How soon it has to be there."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Customer(BaseModel):
    """Who orders."""

    name: Annotated[str, Field(max_length=30)]
    city: Annotated[str, Field(max_length=30)]


class Item(BaseModel):
    """What is ordered."""

    product: Annotated[str, Field(max_length=30)]
    quantity: Annotated[int, Field(ge=1, le=99)]
    unit: Literal["piece", "box", "kilogram"]


class Order(BaseModel):
    """An order."""

    customer: Customer
    items: Annotated[list[Item], Field(min_length=1, max_length=2)]
    urgency: Urgency
    total_price: Annotated[float, Field(ge=0, le=10_000)]


orders = Agent(
    "Read the order out of the text.",
    name="orders",
    output_schema=Order,
    dialect="json",
    model=OpenAIModel("smollm2", price=PRICE),
    max_tokens=250,
    max_unusable=MOST_ATTEMPTS,
    model_timeout=300.0,
)
