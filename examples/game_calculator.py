"""GAME: a calculator of a goal, actions made by hand, a memory and an environment.

    pawl run examples.game_calculator "Add 200 and 10, then multiply the result by 2."
    python examples/game_calculator.py                   # the same, with its memory printed

`game` has the document's face: `run()` gives the result, `memory` holds the messages. What it makes is an agent like any
other: `pawl worker examples.game_calculator` serves it. Without a key it runs on the script below. With OPENAI_API_KEY, or
OPENAI_BASE_URL for another server, it asks the model GAME_CALCULATOR_MODEL, in the dialect GAME_CALCULATOR_DIALECT (tools,
json or react).
"""

import json
import os
import sys

from agent import PawlError, ScriptedModel
from agent.documents.game import Action, Agent, Goal
from agent.testing import call

TASK = "Add 200 and 10, then multiply the result by 2."


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def finish(answer: str) -> str:
    return answer


number_pair: dict[str, object] = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
actions = [
    Action(name="add", description="Adds two numbers.", parameters=number_pair, function=add),
    Action(name="multiply", description="Multiplies two numbers.", parameters=number_pair, function=multiply),
    Action(
        name="finish",
        description="Provide the final answer to the user and end the task.",
        parameters={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        function=finish,
        terminal=True,  # this one ends the loop
    ),
]

SCRIPT = ScriptedModel([call("add", a=200, b=10), call("multiply", a=210, b=2), call("finish", answer="420")])
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

game = Agent(
    goal=Goal(
        name="game_calculator",
        description=(
            "Perform arithmetic using the add and multiply tools. When you have the final answer, call finish with it."
        ),
    ),
    actions=actions,
    model=os.environ.get("GAME_CALCULATOR_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else SCRIPT,
    dialect=os.environ.get("GAME_CALCULATOR_DIALECT", "tools") if HAS_MODEL else "tools",
)
agent = game.agent

if __name__ == "__main__":
    try:
        print("result:", game.run(TASK))
    except PawlError as error:
        sys.exit(f"no result: {error}")
    finally:
        messages = [message.model_dump(exclude_none=True) for message in game.memory.get()]
        print(json.dumps(messages, indent=2, ensure_ascii=False))
