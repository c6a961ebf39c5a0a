"""What tests of tools share."""

from typing import Any

from agent.context import ActionContext
from agent.tools import Tool, tool


class Shop(ActionContext):
    api_key: str = "sk-1"


@tool
def add(a: float, b: float) -> float:
    """Adds two floats."""
    return a + b


def properties(made: Tool) -> dict[str, Any]:
    found: Any = made.parameters["properties"]
    return found
