"""A tool is a function that the model may call. What it needs beside the model's arguments, the model never sees."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from agent import ActionContext, Agent, ContextTypeError, ScriptedModel, ToolContext, tool
from agent.events import ToolReturned
from agent.testing import call, say
from agent.tools import tool_of


class Shop(ActionContext):
    """Dependencies: whatever the tools need. They are made where the run is executed, and never written down."""

    api_key: str
    stock: dict[str, int]


@tool
def count(item: str, shop: Shop, unit: Literal["piece", "dozen"] = "piece") -> int:
    """Counts an item.

    Args:
        item: The name of the item.
        unit: What to count in.
    """
    return shop.stock[item] // (12 if unit == "dozen" else 1)


@tool
def order(pieces: Annotated[int, Field(ge=1, le=100)], tool_context: ToolContext) -> str:
    """Orders more."""
    return f"ordered {pieces} as {tool_context.idempotency_key.split(':')[1]}"


def test_the_model_sees_the_signature_as_a_schema():
    assert tool_of(count).parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "The name of the item."},
            "unit": {
                "type": "string",
                "enum": ["piece", "dozen"],
                "default": "piece",
                "description": "What to count in.",
            },
        },
        "required": ["item"],
    }


def test_a_tool_stays_a_function():
    assert count("egg", Shop(api_key="secret", stock={"egg": 24}), unit="dozen") == 2


def results_of(agent: Agent[str]) -> list[str]:
    events = [recorded.event for recorded in agent.run_sync("Restock.").events]
    return [event.content for event in events if isinstance(event, ToolReturned)]


def test_dependencies_come_from_the_agent():
    model = ScriptedModel([call("count", item="egg", unit="dozen"), say("two dozen")])
    shop = Shop(api_key="secret", stock={"egg": 24})

    assert results_of(Agent("Keep the shop.", tools=[count], action_context=shop, model=model)) == ["2"]


def test_an_agent_whose_dependencies_do_not_fit_is_refused_at_once():
    with pytest.raises(ContextTypeError, match="'count' asks for Shop"):
        Agent("Keep the shop.", tools=[count])


def test_arguments_are_checked_and_what_is_wrong_goes_back_to_the_model():
    model = ScriptedModel([call("order", pieces=1000), call("order", pieces=100), say("done")])
    refused, ordered = results_of(Agent("Keep the shop.", tools=[order], model=model))

    assert refused == "pieces: Input should be less than or equal to 100"
    assert ordered == "ordered 100 as 2.0"  # the first call of step 2


def test_an_error_in_a_tool_is_news_for_the_model_and_not_the_end():
    model = ScriptedModel([call("count", item="unicorn"), say("We have no unicorns.")])
    shop = Agent("Keep the shop.", tools=[count], action_context=Shop(api_key="secret", stock={}), model=model)

    assert results_of(shop) == ["KeyError: 'unicorn'"]
    assert shop.run_sync("Unicorns?").output == "We have no unicorns."
