"""A ReAct agent: a model that only writes text reads a file, and adds the numbers in it.

    pawl run examples.react_numbers "请读取当前目录下的 test.txt 文件并计算出文件中数字的和。"

The dialect `react` tells the model to write `Thought:`, `Action:` and `Action Input:`, executes the action, and goes on with
what it answered as the `Observation:`, until there is a `Final Answer:`. No server has to know of tools. Without a key it runs
on the script below, in which the model makes an observation up, as models do: it counts for nothing.
"""

import os
from pathlib import Path

from agent import Agent, Budget, ScriptedModel
from agent.testing import say
from agent.toolbox import calculator, file_tools

HERE = Path(__file__).parent

SCRIPT = ScriptedModel(
    [
        say(
            'Thought: 我需要先读取 test.txt\nAction: read_file\nAction Input: {"path": "test.txt"}\n'
            "Observation: 1 2 3\nFinal Answer: 6"
        ),
        say('Thought: 现在把数字相加\nAction：calculator\nAction Input：{"expression"："12 + 30 + 7.5"}'),
        say("Thought: 我知道答案了\nFinal Answer: test.txt 中数字的和是 49.5。"),
    ]
)
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))

react_numbers = Agent(
    "你是一个智能助手。",
    name="react_numbers",
    tools=[file_tools(HERE).read_file, calculator],
    dialect="react",
    model=os.environ.get("REACT_NUMBERS_MODEL", "openai:gpt-4o-mini") if HAS_MODEL else SCRIPT,
    budget=Budget(max_steps=10),
    temperature=0,
)
