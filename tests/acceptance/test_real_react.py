"""ReAct with a real language model: it writes every word by itself, a grammar keeps it to the labels."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import Agent, Budget
from agent.events import ModelReplied, ToolReturned
from agent.messages import Role
from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.openai import OpenAIModel
from agent.toolbox import calculator
from tests.support.real_model import NotInstallable, serving

# Such a small model knows no labels. What it thinks, computes and answers is its own.
ACTION = r"""
root ::= "Thought: " [^\n]{1,60} "\nAction: calculator\nAction Input: {\"expression\": \"" sum "\"}\nObservation: " [^\n]{1,20}
sum ::= [0-9]{1,4} [+*-] [0-9]{1,4}
"""
ANSWER = r"""root ::= "Thought: " [^\n]{1,60} "\nFinal Answer: " [^\n]{1,60}"""


class LabelledModel:
    """First an action, then the answer."""

    def __init__(self, url: str) -> None:
        self._acting, self._answering = (
            OpenAIModel("small", base_url=url, api_key="any", extra_body={"grammar": grammar})
            for grammar in (ACTION, ANSWER)
        )

    @property
    def name(self) -> str:
        return self._acting.name

    @property
    def price(self) -> Price | None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        has_observed = any(
            message.role is Role.USER and (message.content or "").startswith("Observation:")
            for message in request.messages
        )
        return await (self._answering if has_observed else self._acting).complete(request)

    async def close(self) -> None:
        await self._acting.close()
        await self._answering.close()


@pytest.fixture
def model_server(tmp_path: Path) -> Iterator[str]:
    """Where the real model is."""
    try:
        with serving(tmp_path / "model.log") as url:
            yield url
    except NotInstallable as reason:
        pytest.skip(f"the model server cannot be installed here: {reason}")


def test_it_acts_observes_and_answers(model_server: str) -> None:
    agent = Agent(
        "Compute with the calculator.",
        tools=[calculator],
        dialect="react",
        model=LabelledModel(model_server),
        temperature=0,
    )

    result = asyncio.run(agent.run("What is 12 + 30?", budget=Budget(max_steps=4)))

    replies = [one.event for one in result.events if isinstance(one.event, ModelReplied)]
    (answered,) = [one.event for one in result.events if isinstance(one.event, ToolReturned)]
    assert (answered.name, answered.outcome) == ("calculator", "ok")
    assert float(answered.content) is not None
    assert (replies[0].content or "").startswith("Thought: ")
    assert "Observation" not in (replies[0].content or ""), "the server stopped where the model would have observed"
    assert result.output in (replies[1].content or "")
    assert all(reply.usage.estimated_tokens == 0 and reply.usage.output_tokens for reply in replies)
