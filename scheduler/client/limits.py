"""PURE. Limits by name, as they are added to a run's budget."""

from decimal import Decimal
from typing import TypedDict

from pydantic import ValidationError

from agent.budget import Budget
from agent.errors import ConfigurationError


class Limits(TypedDict, total=False):
    """What may be added; see `Budget` for the meaning of each."""

    max_steps: int
    max_tool_calls: int
    max_model_calls: int
    max_input_tokens: int
    max_output_tokens: int
    max_total_tokens: int
    max_cost_usd: Decimal | float | str
    max_active_seconds: float
    max_wall_seconds: float


def additions_of(limits: Limits) -> Budget:
    """A budget of what is to be added: only the limits that were given are set.

    Raises:
        ConfigurationError: None was given, there is no such limit, or an amount cannot be used.
    """
    if not limits:
        raise ConfigurationError(f"Say what to add: {', '.join(Limits.__annotations__)}.")
    try:
        return Budget.model_validate({"max_steps": None, **limits})
    except ValidationError as error:
        problems = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        raise ConfigurationError(f"This cannot be added to a budget: {problems}.") from None
