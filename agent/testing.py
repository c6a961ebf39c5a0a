"""Everything to test agents with, without a real model.

Give the agent a model that answers from a script, and forbid real ones:

    model = ScriptedModel([call("add", a=200, b=10), say("210")])
    with no_model_requests(), calculator.override(model=model):
        result = await calculator.run("Add 200 and 10")
"""

from agent.models.function import FunctionModel
from agent.models.offline import no_model_requests
from agent.models.scripted import ScriptedModel, call, calls, say, with_usage

__all__ = ["FunctionModel", "ScriptedModel", "call", "calls", "no_model_requests", "say", "with_usage"]
