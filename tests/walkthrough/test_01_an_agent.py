"""An agent is a goal, some tools and a model. Read these files first, in order: each shows one idea, and each runs.

The model picks a tool and its arguments; Python executes it; the result goes back to the model; and so on, until the model
calls the exit. A *scripted* model plays the part of a real one here, so that the loop is all there is to see.
"""

import asyncio

from agent import Agent, ScriptedModel, tool
from agent.testing import call


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


@tool(terminal=True)
def finish(answer: str) -> str:
    """Ends the task with the answer."""
    return answer


MODEL = ScriptedModel([call("add", a=200, b=10), call("multiply", a=210, b=2), call("finish", answer="420")])

calculator = Agent(
    "Perform arithmetic using the add and multiply tools. When you have the final answer, call finish with it.",
    name="calculator",
    tools=[add, multiply, finish],
    model=MODEL,  # in real life: model="openai:gpt-4o"
)


def test_a_run_is_one_task_given_to_an_agent():
    result = calculator.run_sync("Add 200 and 10, then multiply the result by 2.")

    assert result.output == "420"


def test_a_step_is_one_reply_of_the_model_and_the_tools_it_asked_for():
    result = calculator.run_sync("Add 200 and 10, then multiply the result by 2.")

    assert result.steps == 3
    assert result.usage.model_calls == 3
    assert result.usage.tool_calls == 3


def test_runs_share_nothing():
    """An agent is a declaration: it holds no state of a run, so that one object serves thousands of runs at once."""

    async def many_at_once() -> list[str]:
        results = await asyncio.gather(*(calculator.run(f"Task {number}") for number in range(100)))
        return [result.output for result in results]

    assert asyncio.run(many_at_once()) == ["420"] * 100


def test_without_an_exit_of_its_own_an_agent_gets_one():
    """The built-in exit is called `terminate`. A plain text is taken as the answer, too."""
    poet = Agent("You are a poet.", model=ScriptedModel([call("terminate", result="Roses are red.")]))

    assert poet.exit.name == "terminate"
    assert poet.run_sync("Write a line.").output == "Roses are red."
