"""ReAct: the smallest agent, for a model that only writes text. A brain, two hands, and the engine's loop.

agent = SimpleAgent()
answer = agent.run("请读取当前目录下的 test.txt 文件并计算出文件中数字的和。")
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from agent.agent import Agent
from agent.blocking import run_to_end
from agent.budget import Budget
from agent.dialects import react_text
from agent.dialects.base import Asking
from agent.dialects.react import OBSERVATION, ReactDialect, instruction
from agent.environment import Environment
from agent.errors import BudgetExceeded, ConfigurationError
from agent.messages import Message, Role
from agent.models.base import ModelClient, ModelReply, ModelRequest, Price
from agent.models.choose import model_of
from agent.registry import ActionRegistry
from agent.rendering import render_result
from agent.tokens import estimate
from agent.toolbox import file_tools
from agent.toolbox.arithmetic import calculate
from agent.tools import Tool, tool, tool_of

if TYPE_CHECKING:
    from agent.program import Program

BASE_URL: Final = "https://dashscope.aliyuncs.com/compatible-mode/v1"
MODEL: Final = "qwen3.6-plus"
API_KEY: Final = "AI_DASHSCOPE_API_KEY"
"""The environment variable that holds the key."""

GOAL: Final = "你是一个智能助手。"
GO_ON: Final = "请继续思考。"


@tool(idempotent=True)
def read_file(path: str) -> str:
    """读取指定路径的文件内容"""
    return str(file_tools(Path.cwd()).read_file.function(path=path))


@tool(idempotent=True)
def calculator(expression: str) -> int | float:
    """计算数学表达式，如 1 + 2 * 3"""
    return calculate(expression)


Tools = Mapping[str, Callable[..., object] | Tool]

AVAILABLE_TOOLS: Final[Tools] = {"read_file": read_file, "calculator": calculator}


def tool_schema(tools: Tools) -> list[dict[str, object]]:
    """What the model reads of tools, in the simple form: each parameter and its type."""
    return [
        {
            "name": made.name,
            "description": made.description,
            "parameters": {name: schema.get("type", "any") for name, schema in _properties(made.parameters).items()},
        }
        for made in _registry(tools).tools.values()
    ]


def system_prompt(tools: Tools) -> str:
    """The rules by which the model writes, and its tools."""
    return f"""{GOAL}
你必须严格按照以下格式回答：

Thought: 你现在在想什么
Action: 要调用的工具名，必须是 {list(tools)} 之一
Action Input: 工具的参数，JSON 格式
{OBSERVATION} 这里不用写，由系统填充
...（重复 Thought/Action/Action Input/Observation，直到你得出结论）
Final Answer: 给用户的最终答案

可用工具列表：
{json.dumps(tool_schema(tools), indent=2, ensure_ascii=False)}"""


def _registry(tools: Tools) -> ActionRegistry:
    return ActionRegistry(tool_of(function).model_copy(update={"name": name}) for name, function in tools.items())


def _properties(parameters: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    return cast("Mapping[str, Mapping[str, object]]", parameters.get("properties", {}))


TOOL_SCHEMA: Final = tool_schema(AVAILABLE_TOOLS)
SYSTEM_PROMPT: Final = system_prompt(AVAILABLE_TOOLS)


class SimpleDialect(ReactDialect):
    """ReAct under a system prompt of its own; behind each observation the model is asked to think on."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    def request(self, program: "Program", messages: Sequence[Message], asking: Asking) -> ModelRequest:
        """As the dialect makes it, in the words of this agent."""
        asked = super().request(program, [_thinking_on(message) for message in messages], asking)
        system, *turns = asked.messages
        content = self._prompt + (system.content or "").removeprefix(instruction(program))
        return replace(asked, messages=[Message(role=Role.SYSTEM, content=content), *turns])

    def overhead(self, program: "Program") -> int:
        """The prompt, which holds all tools."""
        return estimate(self._prompt)


class SimpleAgent:
    """An agent that shows how it thinks.

    Args:
        client: The model, by name or as a client; otherwise Qwen, with the key of `AI_DASHSCOPE_API_KEY`.
        tools: Functions, or tools, by name.
        say: Takes the lines that tell what happens.

    Attributes:
        history: What was said in the latest run, as a chat API has it; at first the system prompt.
        agent: The same agent for the engine: what workers move.

    Raises:
        ConfigurationError: There is neither a client nor a key.
    """

    def __init__(
        self,
        client: str | ModelClient | None = None,
        *,
        tools: Tools = AVAILABLE_TOOLS,
        say: Callable[[str], object] = lambda line: sys.stdout.write(f"{line}\n"),
    ) -> None:
        self.client = qwen() if client is None else model_of(client)
        self._tools = _registry(tools)
        self._prompt = system_prompt(tools)
        self._say = say
        self.history: list[dict[str, str]] = [{"role": "system", "content": self._prompt}]
        self.agent = self._agent(self.client)

    def run(self, user_task: str, max_steps: int = 10) -> str | None:
        """Works on a task, and tells each step.

        Returns:
            The answer; None where the steps were used up before there was one.

        Raises:
            RunFailed: The model does not answer, or writes nothing that can be used.
        """
        told = _ToldModel(self.client, self.history, self._say)
        try:
            result = self._agent(told).run_sync(user_task, budget=Budget(max_steps=max_steps))
        except BudgetExceeded:
            return None
        self._say("\nTask Completed!")
        return result.output

    def _agent(self, model: ModelClient) -> Agent[str]:
        dialect = SimpleDialect(self._prompt)
        return Agent(GOAL, name="simple_agent", tools=self._tools, model=model, dialect=dialect, temperature=0)

    def _parse_action(self, text: str) -> tuple[str | None, dict[str, object] | None]:
        """The tool that a reply names, and its input; None twice where it names none."""
        match react_text.read(text, self._tools.tools):
            case react_text.Action(name=name, arguments=arguments):
                return name, dict(arguments) if isinstance(arguments, Mapping) else {}
            case _:
                return None, None

    def _execute_tool(self, action: str, action_input: Mapping[str, object] | None) -> str:
        """What a tool answers, as text; also where it cannot."""
        found = self._tools.get_tool(action)
        if found is None:
            return f"Error: Tool {action} not found."
        try:
            arguments = found.validate_arguments(action_input)
            return render_result(run_to_end(Environment().execute_action(found, arguments)))
        except Exception as error:
            return f"Execution Error: {error}"


def qwen() -> ModelClient:
    """Qwen on Alibaba's servers.

    Raises:
        ConfigurationError: There is no key for it.
    """
    from agent.models.openai import OpenAIModel  # noqa: PLC0415 - an HTTP client is slow to import

    key = os.environ.get(API_KEY)
    if not key:
        raise ConfigurationError(f"There is no API key. Set {API_KEY}, or give another client, SimpleAgent('openai:…')")
    return OpenAIModel(MODEL, base_url=BASE_URL, api_key=key)


class _ToldModel:
    """A model client that tells what it is asked and what it answers, and keeps it as the history."""

    def __init__(self, client: ModelClient, history: list[dict[str, str]], say: Callable[[str], object]) -> None:
        self._client = client
        self._history = history
        self._say = say

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def price(self) -> Price | None:
        return self._client.price

    async def complete(self, request: ModelRequest) -> ModelReply:
        if request.purpose != "step":
            return await self._client.complete(request)
        last = request.messages[-1].content or ""
        if request.attempt == 1:
            if last.startswith(OBSERVATION):
                self._say(last.removesuffix(f"\n{GO_ON}"))
            self._say(f"\n--- Step {request.step} ---")
        reply = await self._client.complete(request)
        self._say(f"大模型：\n{reply.content}\n---------------------\n")
        self._history[:] = [{"role": one.role.value, "content": one.content or ""} for one in request.messages]
        self._history.append({"role": "assistant", "content": reply.content or ""})
        return reply

    async def close(self) -> None:
        await self._client.close()


def _thinking_on(message: Message) -> Message:
    return replace(message, content=f"{message.content}\n{GO_ON}") if message.role is Role.TOOL else message
