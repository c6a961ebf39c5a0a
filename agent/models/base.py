"""The border to language models: one request, one attempt, one reply.

A client makes exactly one attempt for each `complete`. Whether and when to try again is decided by the step machine, so
that a wait survives a deploy. A client raises `ModelUnavailable` or `ModelRefusedRequest` and nothing else on purpose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, Protocol

from agent.messages import Message
from agent.values import value


@dataclass(frozen=True, slots=True)
class ToolSpecification:
    """What a model is told of a tool. `parameters` is JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LongRequestPrice:
    """US dollars for one million tokens of a request with more than `above` input tokens."""

    above: int
    input_per_million: Decimal
    output_per_million: Decimal


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one million tokens; a free model has zeros (unknown is not free).

    Attributes:
        long_requests: Where longer requests cost more for all their tokens; in rising order of `above`.
    """

    input_per_million: Decimal
    output_per_million: Decimal
    long_requests: tuple[LongRequestPrice, ...] = ()

    def __post_init__(self) -> None:
        for name in ("input_per_million", "output_per_million"):  # 0 and 0.15 are how people write it
            object.__setattr__(self, name, Decimal(str(getattr(self, name))))

    def at(self, input_tokens: int) -> "Price":
        """The price of a request with so many input tokens, the same for each of its tokens."""
        reached = [longer for longer in self.long_requests if input_tokens > longer.above]
        price = reached[-1] if reached else self
        return Price(price.input_per_million, price.output_per_million)

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        """What the tokens cost, in nano-dollars, rounded up."""
        price = self.at(input_tokens)
        exact = (price.input_per_million * input_tokens + price.output_per_million * output_tokens) * 1000
        return int(exact.to_integral_value(rounding="ROUND_CEILING"))


@value
class ModelRequest:
    """One question to a model.

    Attributes:
        max_tokens: The most output tokens that may be made; always set, since it is what was reserved.
        tool_choice: `auto`, `required` (some tool), `none`, or the name of the one tool to call.
        response_schema: JSON Schema that the whole reply is forced into, for dialects without tool calling.
        stop: Texts at which the model stops writing.
        timeout: Seconds for the whole attempt.
        run_id, step, attempt: Where the request comes from; scripted models answer by them.
        purpose: What the reply is for: the next step of the run, or a summary of its older messages.
    """

    messages: Sequence[Message]
    max_tokens: int
    tools: Sequence[ToolSpecification] = ()
    tool_choice: Literal["auto", "required", "none"] | str = "auto"
    response_schema: Mapping[str, object] | None = None
    stop: Sequence[str] = ()
    temperature: float | None = None
    timeout: float = 120.0
    run_id: str = ""
    step: int = 1
    attempt: int = 1
    purpose: Literal["step", "summary"] = "step"


@value
class RawToolCall:
    """A tool call as the server sent it: nothing is repaired yet."""

    name: str | None
    arguments: str | Mapping[str, object] | None
    id: str | None = None


@value
class ModelReply:
    """What a model answered.

    Attributes:
        finish_reason: As the server wrote it; None where it did not.
        input_tokens, output_tokens: None where the server did not report them (they are then estimated).
        refusal: The model's refusal, where the server marks it as one.
        cost: Nano-dollars, where the server reports what it charged.
    """

    content: str | None = None
    tool_calls: Sequence[RawToolCall] = ()
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: str | None = None
    refusal: str | None = None
    model: str = ""
    cost: int | None = None
    provider_fields: dict[str, object] | None = field(default=None)


class ModelClient(Protocol):
    """Asks one model. Made once in a process, used by many runs at once on one event loop."""

    @property
    def name(self) -> str:
        """Provider and model, such as `openai:gpt-4o`."""
        ...

    @property
    def price(self) -> Price | None:
        """What its tokens cost; None if that is not known."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one attempt.

        Raises:
            ModelUnavailable: Another attempt may help.
            ModelRefusedRequest: The same request will not be answered.
        """
        ...

    async def close(self) -> None:
        """Releases connections. The client may be used again afterwards."""
        ...
