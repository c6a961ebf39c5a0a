"""A model behind one method: messages and tool definitions in, one of three kinds of response out."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

from pydantic import BaseModel, model_validator

from agent.documents.messages import Message, message_of
from agent.documents.runtime_tools import ToolDefinition
from agent.models.base import ModelReply, ModelRequest, Price, RawToolCall, ToolSpecification
from agent.output import TERMINATE

ASK_USER = "ask_user"
"""The tool by which a run asks a person: what a clarification is for the engine."""


class RequestedCall(BaseModel):
    """The tool that a model wants to be called."""

    name: str
    arguments: dict[str, Any] = {}


class LLMResponse(BaseModel):
    """What a model wants: to end with an answer, to call a tool, or to ask a person. Exactly one of the three.

    Attributes:
        content: The answer, or the question; what was said beside a call.
        input_tokens, output_tokens: As the server reports them; otherwise they are estimated.
    """

    kind: Literal["final", "tool_call", "clarification"]
    content: str = ""
    tool_call: RequestedCall | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Self:
        if (self.kind == "tool_call") != (self.tool_call is not None):
            raise ValueError(f"kind={self.kind!r}: a tool_call, and nothing else, says which tool is to be called")
        if self.kind != "tool_call" and not self.content.strip():
            raise ValueError(f"kind={self.kind!r}: its content is empty")
        return self


class LLM(Protocol):
    """Asks one model, once for each call."""

    async def complete(self, messages: list[Message], tools: list[ToolDefinition]) -> LLMResponse:
        """What the model wants next.

        Raises:
            ModelUnavailable: Another attempt may help. Whatever else it raises ends the run as failed.
        """
        ...


class LLMModel:
    """An `LLM` as the engine's model client: a clarification is a call of `ask_user`."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        """The class of the LLM."""
        return type(self._llm).__name__

    @property
    def price(self) -> Price | None:
        """Not known."""
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Asks once. The tools by which a run ends or asks are the kinds of the response, and not offered as tools."""
        response = await self._llm.complete([message_of(one) for one in request.messages], _definitions(request.tools))
        calls = [RawToolCall(call.name, call.arguments) for call in [response.tool_call] if call is not None]
        if response.kind == "clarification":
            calls = [RawToolCall(ASK_USER, {"question": response.content})]
        return ModelReply(
            content=None if response.kind == "clarification" else response.content or None,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            input_tokens=response.input_tokens,
            output_tokens=response.output_tokens,
        )

    async def close(self) -> None:
        """There is nothing to release."""


def _definitions(tools: Sequence[ToolSpecification]) -> list[ToolDefinition]:
    return [
        ToolDefinition(name=tool.name, description=tool.description, parameters=dict(tool.parameters))
        for tool in tools
        if tool.name not in (ASK_USER, TERMINATE)
    ]
