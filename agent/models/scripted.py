"""A model that answers from a script: for tests, benchmarks and the demo.

The answer depends only on which run asks and at which step, never on what was asked before. So a script means the same
over many workers, after a takeover and on a resume.

    ScriptedModel([call("add", a=200, b=10), call("multiply", a=210, b=2), say("420")])
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.models.base import ModelReply, ModelRequest, Price, RawToolCall

Reply: TypeAlias = ModelReply | ModelError
"""One entry of a script; an error is raised at every attempt of its step."""

Script: TypeAlias = Sequence[Reply] | Mapping[tuple[str, int], Reply] | Callable[[str, int], Reply]
"""The replies in the order of steps, the same for all runs; or by run id and step (the first is 1)."""

Failures: TypeAlias = Mapping[tuple[int, int], ModelError] | Callable[[ModelRequest], ModelError | None]
"""What goes wrong on the way, by step and attempt (the first of each is 1)."""


def say(text: str) -> ModelReply:
    """The model answers with a text."""
    return ModelReply(content=text, finish_reason="stop")


def call(tool: str, /, **arguments: object) -> ModelReply:
    """The model calls one tool."""
    return ModelReply(tool_calls=(RawToolCall(tool, arguments),), finish_reason="tool_calls")


def calls(*replies: ModelReply) -> ModelReply:
    """The model makes several calls in one reply: `calls(call("a"), call("b"))`."""
    return ModelReply(
        tool_calls=tuple(raw for reply in replies for raw in reply.tool_calls), finish_reason="tool_calls"
    )


def with_usage(reply: ModelReply, *, input_tokens: int, output_tokens: int) -> ModelReply:
    """The same reply with the tokens that the server reports for it; without them they are estimated."""
    return replace(reply, input_tokens=input_tokens, output_tokens=output_tokens)


class ScriptedModel:
    """Answers from a script.

    Args:
        replies: See `Script`. A run that asks for more than the script holds fails and says so.
        latency: Seconds that each attempt takes; beyond the request's time-out it times out, as a server would.
        failures: See `Failures`.
        price: What its tokens cost, for tests of money limits.
        name: How it appears in logs and events.
        summary: Its answer where it is asked to summarise older messages.
    """

    def __init__(
        self,
        replies: Script,
        *,
        latency: float = 0.0,
        failures: Failures | None = None,
        price: Price | None = None,
        name: str = "scripted",
        summary: str = "A summary of what came before.",
    ) -> None:
        self._replies = replies
        self._latency = latency
        self._failures = failures
        self._price = price
        self._name = name
        self._summary = summary

    @property
    def name(self) -> str:
        return self._name

    @property
    def price(self) -> Price | None:
        return self._price

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self._latency:
            await _take(self._latency, request.timeout)
        outcome = self._failure(request) or self._reply(request)
        if isinstance(outcome, ModelError):
            raise outcome.with_traceback(None)
        return outcome

    async def close(self) -> None:
        """There is nothing to release."""

    def _failure(self, request: ModelRequest) -> ModelError | None:
        if self._failures is None:
            return None
        if callable(self._failures):
            return self._failures(request)
        return self._failures.get((request.step, request.attempt))

    def _reply(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return say(self._summary)
        run_id, step = request.run_id, request.step
        script = self._replies
        if callable(script):
            return script(run_id, step)
        if isinstance(script, Mapping):
            reply = script.get((run_id, step))
        elif step <= len(script):
            reply = script[step - 1]
        else:
            reply = None
        return reply or ModelRefusedRequest(
            f"The script of {self._name} has no reply for step {step} of run {run_id!r}"
        )


async def _take(latency: float, timeout: float) -> None:
    await asyncio.sleep(min(latency, timeout))
    if latency > timeout:
        raise ModelUnavailable(f"The model did not answer within {timeout:g} s", billed=True)
