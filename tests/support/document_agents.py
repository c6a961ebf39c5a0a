"""The three documents' agents as workers import them, on scripted models."""

import asyncio
import os
from pathlib import Path

from agent import AgentRuntime, FunctionModel, ModelReply, ModelRequest, ScriptedModel, SimpleAgent, ToolRegistry
from agent.models.scripted import call, say
from agent.toolbox import calculator, file_tools
from scheduler.settings import Settings
from tests.support import traces
from tests.support.game_calculator import agent as game_agent
from tests.support.traces import Traces
from worker.session_repository import StoredSessions

FOLDER = Path(os.environ.get(traces.VARIABLE, "."))
GATE = "second step"

game = game_agent

numbers = SimpleAgent(
    ScriptedModel(
        [
            say('Thought: 需要先读取文件\nAction: read_file\nAction Input: {"path": "test.txt"}'),
            say('Thought: 求这些数字的和\nAction: calculator\nAction Input: {"expression": "10 + 20 + 12"}'),
            say("Thought: 我知道答案了\nFinal Answer: 42"),
        ]
    ),
    tools={"read_file": file_tools(FOLDER).read_file, "calculator": calculator},
).agent


def runtime(folder: Path, settings: Settings) -> AgentRuntime:
    """A runtime that calculates, waits at a gate of this folder, asks, and answers."""
    traces_there = Traces(folder)

    async def answer(request: ModelRequest) -> ModelReply:
        traces_there.leave("model", request.run_id, f"{request.step}/{request.attempt}")
        match request.step:
            case 1:
                return call("calculator", expression="6 * 7")
            case 2:
                while not traces_there.is_open(GATE):  # noqa: ASYNC110 - the gate is a file
                    await asyncio.sleep(0.01)
                return call("ask_user", question="Is that enough?")
            case _:
                return say(f"{request.messages[-1].content}: 42")

    return AgentRuntime(
        StoredSessions(settings),
        llm=FunctionModel(answer),
        tool_registry=ToolRegistry([calculator]),
        system_instruction="Help with figures.",
        name="assistant",
    )


assistant = runtime(FOLDER, Settings.from_environment()).agent

if __name__ == "__main__":
    asyncio.run(runtime(FOLDER, Settings.from_environment()).run("s1", "Go."))
