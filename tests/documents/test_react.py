"""The second document, ReAct: a brain, two hands and a loop; its items 37 to 48."""

import json
from pathlib import Path

import pytest

from agent import ConfigurationError, FunctionModel, ModelReply, ModelRequest, RunFailed, ScriptedModel
from agent.documents import react
from agent.documents.react import AVAILABLE_TOOLS, SYSTEM_PROMPT, TOOL_SCHEMA, SimpleAgent, calculator, read_file
from agent.errors import ToolError
from agent.events import ModelReplied, ToolReturned
from agent.testing import say

TASK = "请读取当前目录下的 test.txt 文件并计算出文件中数字的和。"
REPLIES = [
    say('Thought: 需要先读取文件\nAction: read_file\nAction Input: {"path": "test.txt"}'),
    say('Thought: 求这些数字的和\nAction: calculator\nAction Input: {"expression": "10 + 20 + 12"}'),
    say("Thought: 我知道答案了\nFinal Answer: 42"),
]


NOTHING: dict[str, object] = {}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the file of the demo."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.txt").write_text("10\n20\n12\n", encoding="utf-8")
    return tmp_path


class Told:
    """What an agent told of its work."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def agent(self, *replies: ModelReply) -> SimpleAgent:
        """An agent that tells it here."""
        return SimpleAgent(ScriptedModel(replies), say=self.lines.append)


def test_brain_hands_and_loop() -> None:
    """item 37: the model decides which function is called; Python calls it."""
    seen: list[ModelRequest] = []

    def brain(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return REPLIES[request.step - 1]

    assert SimpleAgent(FunctionModel(brain), say=len).run(TASK) == "42"
    assert all(request.tools == () for request in seen)  # text in, text out
    assert seen[1].messages[-1].content == "Observation: 10\n20\n12\n\n请继续思考。"


def test_the_hands_are_functions(folder: Path) -> None:
    """item 38: a file as UTF-8 text, and arithmetic without `eval`. What is wrong is raised, and told to the model as text."""
    (folder / "数.txt").write_text("一二三", encoding="utf-8")

    assert read_file("数.txt") == "一二三"
    assert calculator("1 + 2 * 3") == 7
    for expression in ("__import__('os').system('id')", "9**9**9**9", "1/0"):
        with pytest.raises(ToolError):
            calculator(expression)
    with pytest.raises(ToolError, match="There is no 'nothing'"):
        read_file("nothing")
    with pytest.raises(ToolError):
        read_file("/etc/passwd")


def test_the_tools_are_described_in_the_simple_form() -> None:
    """item 39: names and functions; names, descriptions, and the type of each argument."""
    assert dict(AVAILABLE_TOOLS) == {"read_file": read_file, "calculator": calculator}
    assert TOOL_SCHEMA == [
        {"name": "read_file", "description": "读取指定路径的文件内容", "parameters": {"path": "string"}},
        {
            "name": "calculator",
            "description": "计算数学表达式，如 1 + 2 * 3",
            "parameters": {"expression": "string"},
        },
    ]


def test_the_prompt_is_built_from_the_tools() -> None:
    """item 40: strict labels in their order, the known names, and the tools as indented JSON at its end."""
    labels = ["Thought:", "Action:", "Action Input:", "Observation:", "Final Answer:"]
    places = [SYSTEM_PROMPT.index(label) for label in labels]

    assert places == sorted(places)
    assert "['read_file', 'calculator']" in SYSTEM_PROMPT
    assert SYSTEM_PROMPT.endswith(json.dumps(TOOL_SCHEMA, indent=2, ensure_ascii=False))


def test_the_client_is_qwen_with_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """item 41: the key of that server, and no other; the history begins with the prompt."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.delenv("AI_DASHSCOPE_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="AI_DASHSCOPE_API_KEY"):
        SimpleAgent()

    monkeypatch.setenv("AI_DASHSCOPE_API_KEY", "sk-1")
    agent = SimpleAgent()

    assert react.BASE_URL == "https://dashscope.aliyuncs.com/compatible-mode/v1"
    assert agent.client.name == "openai:qwen3.6-plus"
    assert agent.history == [{"role": "system", "content": SYSTEM_PROMPT}]


def test_a_run_asks_with_the_whole_history_at_temperature_0() -> None:
    """item 42: ten steps by default, each with its headline; what the model writes is printed and kept."""
    seen: list[ModelRequest] = []
    told = Told()

    def brain(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return REPLIES[request.step - 1]

    agent = SimpleAgent(FunctionModel(brain), say=told.lines.append)
    agent.run(TASK)

    assert [len(request.messages) for request in seen] == [2, 4, 6]
    assert {request.temperature for request in seen} == {0}
    assert [line for line in told.lines if "Step" in line] == [f"\n--- Step {n} ---" for n in (1, 2, 3)]
    assert [turn["role"] for turn in agent.history] == ["system", "user", *["assistant", "user"] * 2, "assistant"]
    assert agent.history[1]["content"] == TASK
    assert SimpleAgent.run.__defaults__ == (10,)


def test_a_final_answer_ends_the_run_and_is_returned() -> None:
    """item 43: not only printed; an action in the same reply comes first, a quoted label is no label."""
    told = Told()
    early = say('Thought: 我猜\nAction: read_file\nAction Input: {"path": "test.txt"}\nFinal Answer: 7')
    quoted = say('Thought: 用户问 "Final Answer: 1" 是什么\nAction: calculator\nAction Input: {"expression": "40 + 2"}')

    assert told.agent(early, quoted, REPLIES[2]).run(TASK) == "42"
    assert told.lines[-1] == "\nTask Completed!"
    assert [line for line in told.lines if line.startswith("Observation")] == [
        "Observation: 10\n20\n12\n",
        "Observation: 42",
    ]


def test_steps_that_are_used_up_leave_no_answer() -> None:
    """item 43: None, as there is nothing to return."""
    assert Told().agent(*[REPLIES[0]] * 9).run(TASK, max_steps=3) is None


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("Thought: hm", (None, None)),
        ('Action: read_file\nAction Input: {"path": "a"}', ("read_file", {"path": "a"})),
        ('Action: read_file\nAction Input: {\n  "path": "a"\n}', ("read_file", {"path": "a"})),
        ('Action: read_file\nAction Input:\n```json\n{"path": "a"}\n```', ("read_file", {"path": "a"})),
        ('Action: read_file\nAction Input: {"path": "a"}\nObservation: made up', ("read_file", {"path": "a"})),
        ("Action：read_file\nAction Input：{'path': 'a'}", ("read_file", {"path": "a"})),
        ("Action: read_file\nAction Input: {broken", ("read_file", NOTHING)),
        ("Action: read_file", ("read_file", NOTHING)),
    ],
)
def test_an_action_is_read_from_text(text: str, parsed: tuple[str | None, dict[str, object] | None]) -> None:
    """item 44: as it is meant: several lines, fences, other signs; nothing where there is no action."""
    assert Told().agent()._parse_action(text) == parsed  # pyright: ignore[reportPrivateUsage]


def test_an_input_that_cannot_be_read_is_never_executed() -> None:
    """item 44: not with {}: the model is told, and asked again."""
    broken = say("Thought: hm\nAction: calculator\nAction Input: {expression: 1 +")
    result = Told().agent(broken, *REPLIES[1:]).agent.run_sync(TASK)

    outcomes = [event.event.outcome for event in result.events if isinstance(event.event, ToolReturned)]
    assert outcomes[0] in ("invalid", "cut_off")


def test_a_reply_without_an_action_goes_round_again() -> None:
    """item 44: with a reminder of the format, and not for ever."""
    assert Told().agent(say("Hm."), REPLIES[2]).run(TASK) == "42"
    with pytest.raises(RunFailed, match="4 replies in a row"):
        Told().agent(*[say("Hm.")] * 9).run(TASK)


def test_a_tool_always_answers_with_text() -> None:
    """item 45: an unknown tool, a result, an exception."""
    execute = Told().agent()._execute_tool  # pyright: ignore[reportPrivateUsage]

    assert execute("search", {}) == "Error: Tool search not found."
    assert execute("calculator", {"expression": "6 * 7"}) == "42"
    assert execute("calculator", {"expression": "1/0"}) == "Execution Error: Division by zero."
    assert execute("calculator", None).startswith("Execution Error: expression")


def test_an_observation_is_a_user_s_message() -> None:
    """item 46: and asks the model to think on."""
    agent = Told().agent(*REPLIES)
    agent.run(TASK)

    assert agent.history[3] == {"role": "user", "content": "Observation: 10\n20\n12\n\n请继续思考。"}


def test_the_demo_reads_a_file_and_adds_its_numbers() -> None:
    """item 47: read_file, calculator, Final Answer (as a process of its own: tests/documents/test_examples.py)."""
    agent = Told().agent(*REPLIES)

    result = agent.agent.run_sync(TASK)

    assert result.output == "42"
    tools = [event.event.name for event in result.events if isinstance(event.event, ToolReturned)]
    assert tools == ["read_file", "calculator"]


def test_every_step_can_be_traced() -> None:
    """item 48: told line by line, and as events with all that the server said."""
    told = Told()
    result = told.agent(*REPLIES).agent.run_sync(TASK)

    replied = [event.event for event in result.events if isinstance(event.event, ModelReplied)]
    assert [event.step for event in replied] == [1, 2, 3]
    assert all(event.usage.model_calls == 1 and event.finish_reason == "stop" for event in replied)


def test_any_function_can_be_a_hand() -> None:
    """item 48: the kernel grows step by step: other tools, by the names that the model reads."""

    def temperature(city: str) -> str:
        """查询城市的气温"""
        return f"{city}: 20"

    replies = [say('Action: 查气温\nAction Input: {"city": "北京"}'), say("Final Answer: 20 度")]
    agent = SimpleAgent(ScriptedModel(replies), tools={"查气温": temperature}, say=len)

    assert agent.run("北京多少度？") == "20 度"
    assert "查气温" in agent.history[0]["content"]
    assert "Observation: 北京: 20" in agent.history[3]["content"]
