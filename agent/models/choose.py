"""From what an author writes as an agent's model to the client that asks it."""

from collections.abc import Callable, Mapping
from typing import Final

from agent.errors import AgentDefinitionError
from agent.models.base import ModelClient


def _openai(model: str) -> ModelClient:
    from agent.models.openai import OpenAIModel  # noqa: PLC0415 -- an HTTP client is slow to import

    return OpenAIModel(model)


_PROVIDERS: Final[Mapping[str, Callable[[str], ModelClient]]] = {"openai": _openai}
_DEFAULT_PROVIDER: Final = "openai"


def model_of(value: str | ModelClient) -> ModelClient:
    """The client for `openai:gpt-4o`, for a bare `gpt-4o` (which means OpenAI's), or for a client itself.

    Raises:
        AgentDefinitionError: No such provider, no name, or neither a text nor a client.
    """
    if not isinstance(value, str):
        if not callable(getattr(value, "complete", None)):
            raise AgentDefinitionError(f"A model is a name such as 'openai:gpt-4o' or a client, not {value!r}")
        return value
    provider, colon, model = value.strip().partition(":")
    if not colon:
        provider, model = _DEFAULT_PROVIDER, provider
    if provider not in _PROVIDERS:
        known = ", ".join(sorted(_PROVIDERS))
        raise AgentDefinitionError(
            f"The model {value!r} names the provider {provider!r}; known are: {known}. A model whose own name has a "
            f"colon is written as '{_DEFAULT_PROVIDER}:{value}'."
        )
    if not model:
        raise AgentDefinitionError(f"The model {value!r} has no name; write one such as 'openai:gpt-4o'")
    return _PROVIDERS[provider](model)
