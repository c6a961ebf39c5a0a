"""What the tests of the first document share: tools, registries, and a model that remembers what it was asked."""

from typing import Any

from pydantic import BaseModel

from agent import FunctionModel, ModelReply, ModelRequest
from agent.documents.game import ActionContext, ActionRegistry, Memory, tool


class Answer(BaseModel):
    """A typed result."""

    value: int


class Database(ActionContext):
    """A hidden dependency."""

    database_url: str
    api_key: str


@tool()
def add(a: float, b: float) -> float:
    """Adds two floats."""
    return a + b


@tool()
def save_paper(title: str, content: str, action_context: Database) -> str:
    """Saves a paper."""
    return f"{action_context.database_url}/{title}"


def kind_of(action_context: ActionContext) -> type[ActionContext]:
    return type(action_context)


def registry_of(*tools: Any) -> ActionRegistry:
    """A registry of these tools."""
    return ActionRegistry(tools)


def dumped(memory: Memory) -> list[dict[str, Any]]:
    """The messages as the document prints them."""
    return [message.model_dump(exclude_none=True) for message in memory.get()]


class Listener:
    """A model that remembers what it was asked, and answers from a script."""

    def __init__(self, *replies: ModelReply) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = replies
        self.model = FunctionModel(self._answer)

    def _answer(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return self._replies[request.step - 1]
