"""The card of an agent says what a tool takes, to clients that have none of its code."""

import pytest

from agent.errors import ConfigurationError
from scheduler.cards import AgentCard, ToolCard

CLOSED = {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 1}}, "required": ["amount"]}
OPEN = {**CLOSED, "additionalProperties": True}
ONLY_PYDANTIC = {"type": "object", "properties": {"name": {"type": "string", "pattern": r"^\p{L}+$"}}}


def card(parameters: dict[str, object]) -> AgentCard:
    return AgentCard(name="clerk", tools=(ToolCard(name="pay", parameters=parameters),))


@pytest.mark.parametrize(
    ("parameters", "arguments", "words"),
    [
        (CLOSED, {"amout": 3}, "amout: there is no such parameter"),
        (CLOSED, {}, "amount: is required"),
        (CLOSED, {"amount": "three"}, "amount: must be of type integer"),
        (CLOSED, {"amount": 0}, "amount: must be at least 1"),
        (CLOSED, {"amount": None}, "amount: must be of type integer"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    parameters: dict[str, object], arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"The arguments do not fit pay: (.*\n)?{words}"):
        card(parameters).check_arguments("pay", arguments)


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [(CLOSED, {"amount": 3}), (OPEN, {"amount": 3, "note": "x"}), ({}, {"any": 1}), (ONLY_PYDANTIC, {"name": "é"})],
)
def test_what_fits_or_only_the_worker_can_judge_passes(
    parameters: dict[str, object], arguments: dict[str, object]
) -> None:
    card(parameters).check_arguments("pay", arguments)
    card(parameters).check_arguments("a tool that the card lacks", {"x": 1})
