"""The provider-neutral history of a run: what was said, which tools were asked for, what they answered.

A history is valid when every tool call is answered exactly once, in order, directly behind the message that made it.
`agent.state.RunState` keeps it so by construction.
"""

from enum import StrEnum

from agent.values import value

INTERRUPTED = (
    "Interrupted before it finished: the outcome of this call is unknown. It may or may not have taken effect."
)


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@value
class ToolCall:
    """A model's wish to call a tool, in the one form that is stored.

    Attributes:
        id: Unique within the run; what the provider reads back.
        name: The tool's name as the model wrote it.
        arguments: JSON text of an object, always valid: `{}` where what the model wrote could not be used.
        problem: Why the arguments cannot be used. Such a call is answered with this text and never executed.
    """

    id: str
    name: str
    arguments: str = "{}"
    problem: str | None = None


@value
class Message:
    """One entry of a history, in the shape that language model APIs share.

    Attributes:
        reasoning: The model's own thoughts where it gave them apart from its answer. Never shown as the answer.
        provider_fields: What a provider wants back unchanged with this message.
        refuses: It says why nothing could be done with the reply before it, or with the call that it answers.
    """

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str | None = None
    provider_fields: dict[str, object] | None = None
    refuses: bool = False
