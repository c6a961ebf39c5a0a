"""A model that is a function: for tests whose answers depend on what was asked."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.scripted import say

Answer: TypeAlias = ModelReply | str


class FunctionModel:
    """Answers by calling a function.

    Args:
        function: Takes the `ModelRequest`; returns a `ModelReply` or the text of one, or an awaitable of either. It
            runs on the event loop and must not block it. It may raise `ModelUnavailable` and `ModelRefusedRequest`.
        price: What its tokens cost, for tests of money limits.
        name: How it appears in logs and events.
    """

    def __init__(
        self,
        function: Callable[[ModelRequest], Answer | Awaitable[Answer]],
        *,
        price: Price | None = None,
        name: str = "function",
    ) -> None:
        self._function = function
        self._price = price
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def price(self) -> Price | None:
        return self._price

    async def complete(self, request: ModelRequest) -> ModelReply:
        answer = self._function(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, str):
            return say(answer)
        if not isinstance(cast(object, answer), ModelReply):
            raise TypeError(f"the function must return a ModelReply or a text, not {type(answer).__name__}")
        return answer

    async def close(self) -> None:
        """There is nothing to release."""
