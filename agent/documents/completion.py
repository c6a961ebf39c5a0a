"""One question to a model, in the shape of a chat completion: what an agent's loop does at each turn, to be done by hand."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

from pydantic import BaseModel

from agent.blocking import run_to_end
from agent.dialects.calls import read_calls
from agent.documents.memory import Memory
from agent.documents.messages import engine_messages
from agent.models.base import ModelClient, ModelReply, ModelRequest, ToolSpecification
from agent.models.choose import model_of

MAX_TOKENS: Final = 1024


def gpt_4o() -> ModelClient:
    """The model that is asked where none is named; it makes one call in a reply."""
    from agent.models.openai import OpenAIModel  # noqa: PLC0415 - an HTTP client is slow to import

    return OpenAIModel("gpt-4o", extra_body={"parallel_tool_calls": False})


class Function(BaseModel):
    """The function that a model wants to call; `arguments` is JSON text."""

    arguments: str
    name: str


class FunctionCalled(BaseModel):
    """A tool call."""

    function: Function
    id: str
    type: Literal["function"] = "function"


class AssistantMessage(BaseModel):
    """What a model replied."""

    role: Literal["assistant"] = "assistant"
    content: str | None = None
    tool_calls: list[FunctionCalled] | None = None


class Choice(BaseModel):
    """The one reply of a completion."""

    message: AssistantMessage


class Completion(BaseModel):
    """A model's answer to one request."""

    choices: list[Choice]


def generate_response(
    memory: Memory, tools: Sequence[Mapping[str, object]], *, model: str | ModelClient | None = None
) -> Completion:
    """Asks a model what to do next, once. An agent does so by itself, with retries and within a budget.

    Args:
        tools: As `ActionRegistry.get_tools_schema` gives them.
        model: A name, or a client; otherwise GPT-4o.

    Raises:
        ModelUnavailable, ModelRefusedRequest: There is no reply.
    """
    request = ModelRequest(
        messages=engine_messages(memory.get()),
        tools=[_specification(tool) for tool in tools],
        tool_choice="required" if tools else "none",
        max_tokens=MAX_TOKENS,
    )
    return _completion(run_to_end(model_of(model or gpt_4o()).complete(request)))


def _specification(tool: Mapping[str, object]) -> ToolSpecification:
    function = cast("Mapping[str, object]", tool["function"])
    parameters = cast("Mapping[str, object]", function["parameters"])
    return ToolSpecification(str(function["name"]), str(function["description"]), parameters)


def _completion(reply: ModelReply) -> Completion:
    calls = [
        FunctionCalled(function=Function(arguments=call.arguments, name=call.name), id=call.id)
        for call in read_calls(reply.tool_calls, step=1, finish_reason=reply.finish_reason)
    ]
    return Completion(choices=[Choice(message=AssistantMessage(content=reply.content, tool_calls=calls or None))])
