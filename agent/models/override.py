"""Puts another model in the place of an agent's own for a while."""

from collections.abc import Generator
from contextlib import contextmanager

from agent.models.base import ModelClient


class ModelOverride:
    """The models that stand in for one agent's own; the latest wins. Holds for the whole process."""

    def __init__(self) -> None:
        self._substitutes: list[ModelClient] = []

    @property
    def model(self) -> ModelClient | None:
        """The model to use instead; None for the agent's own."""
        return self._substitutes[-1] if self._substitutes else None

    @contextmanager
    def using(self, model: ModelClient) -> Generator[None]:
        """While it is open, `model` stands in. May be nested."""
        self._substitutes.append(model)
        try:
            yield
        finally:
            position = next(i for i, other in enumerate(reversed(self._substitutes)) if other is model)
            del self._substitutes[-1 - position]
