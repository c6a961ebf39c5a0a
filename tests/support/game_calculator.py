"""The first document's worked example, in its own names and values."""

from agent.documents.game import Action, Agent, Goal
from agent.models.base import ModelClient
from agent.models.scripted import ScriptedModel, call

TASK = "Add 200 and 10, then multiply the result by 2."
SYSTEM = "Perform arithmetic using the add and multiply tools. When you have the final answer, call finish with it."
REPLIES = [call("add", a=200, b=10), call("multiply", a=210, b=2), call("finish", answer="420")]

number_pair: dict[str, object] = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


def finish(answer: str) -> str:
    return answer


ACTIONS = [
    Action(name="add", description="Adds two numbers.", parameters=number_pair, function=add),
    Action(name="multiply", description="Multiplies two numbers.", parameters=number_pair, function=multiply),
    Action(
        name="finish",
        description="Provide the final answer to the user and end the task.",
        parameters={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        function=finish,
        terminal=True,
    ),
]


def calculator(model: ModelClient) -> Agent:
    """The document's agent."""
    return Agent(goal=Goal(name="calculator", description=SYSTEM), actions=ACTIONS, model=model)


agent = calculator(ScriptedModel(REPLIES)).agent
"""The same, for workers."""
