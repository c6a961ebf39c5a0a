"""Agents for tests of budgets: one writes down how it is asked, one asks a server that the test plays, one errs."""

import asyncio
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent import Agent, FunctionModel, ModelReply, ModelRequest, OpenAIModel
from agent.errors import ModelUnavailable
from agent.models.base import Price
from agent.models.scripted import call, say, with_usage
from tests.support import traces
from tests.support.player import PRICE, TOOLS, perform


def _asked(request: ModelRequest) -> dict[str, Any]:
    return {
        "run": request.run_id,
        "step": request.step,
        "tools": [tool.name for tool in request.tools],
        "choice": request.tool_choice,
        "max_tokens": request.max_tokens,
        "last_words": request.messages[-1].content,
    }


async def _answer(request: ModelRequest) -> ModelReply:
    with requests_file(Path(os.environ[traces.VARIABLE])).open("a") as file:
        file.write(json.dumps(_asked(request)) + "\n")
    return await perform(request)


def requests_file(folder: Path) -> Path:
    """One JSON line for each request."""
    return folder / "asked.jsonl"


frugal = Agent("Play the play.", name="frugal", tools=TOOLS, model=FunctionModel(_answer, price=PRICE))

remote = Agent(
    "Answer.",
    name="remote",
    model=OpenAIModel("m", price=Price(input_per_million=Decimal(1), output_per_million=Decimal(1))),
    max_tokens=100,
    model_timeout=3.0,
)
"""Its server is that of `OPENAI_BASE_URL`."""


async def _err(request: ModelRequest) -> ModelReply:
    """Errs twice, is turned away once, and answers once the test allows it."""
    here = traces.Traces.of_this_process()
    here.leave("model", request.run_id, f"{request.step}/{request.attempt}")
    match request.step:
        case 1:
            return with_usage(say("not a number"), input_tokens=100, output_tokens=50)
        case 2:
            return with_usage(call("note", wrong=True), input_tokens=160, output_tokens=20)
        case _ if request.attempt == 1:
            raise ModelUnavailable("busy", status=429, retry_after=0)
        case _:
            while not here.is_open("answer"):  # noqa: ASYNC110 - the gate is a file
                await asyncio.sleep(0.01)
            return with_usage(call("terminate", result=7), input_tokens=180, output_tokens=30)


erring = Agent(
    "Say a number.",
    name="erring",
    tools=TOOLS,
    output_schema=int,
    model=FunctionModel(_err, price=PRICE),
    max_tokens=100,
)
