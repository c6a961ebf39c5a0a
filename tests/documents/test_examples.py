"""The documents' agents as examples, and one that asks for approval: each by one command, on a script and on a server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, chat_reply, http_answer

EXAMPLES = Path(__file__).parents[2] / "examples"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PAWL_"))}


def run(example: str, *arguments: str, stdin: str = "", **environment: str) -> str:
    """What an example prints, run by its one command."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{example}.py", *arguments],
        cwd=EXAMPLES,
        env={**ENVIRONMENT, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written(*contents: str) -> ModelServer:
    """A server whose model only writes text."""
    return ModelServer(*(http_answer(chat_reply({"content": content})) for content in contents))


def tool(name: str, **arguments: object) -> str:
    """A call in forced JSON."""
    return json.dumps({"tool": name, "arguments": arguments})


def action(name: str, **arguments: object) -> str:
    """A call in the labels of ReAct."""
    return f"Thought: next\nAction: {name}\nAction Input: {json.dumps(arguments)}"


def test_the_calculator_on_its_script() -> None:
    """item 13: the result, and the memory with its eight messages."""
    printed = run("game_calculator")

    result, _, memory = printed.partition("\n")
    messages = json.loads(memory)
    assert result == "result: 420"
    assert [message["role"] for message in messages] == ["system", "user", *["assistant", "tool"] * 3]
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["210", "420", "420"]


@pytest.mark.parametrize(("dialect", "say"), [("json", tool), ("react", action)])
def test_the_calculator_on_a_server_that_knows_no_tools(dialect: str, say: Callable[..., str]) -> None:
    """item 6, item 73: another server, another key, another dialect."""
    with written(say("add", a=200, b=10), say("multiply", a=210, b=2), say("finish", answer="420")) as server:
        printed = run(
            "game_calculator", OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-any", GAME_CALCULATOR_DIALECT=dialect
        )

    assert printed.startswith("result: 420\n")
    assert all(request.headers["authorization"] == "Bearer sk-any" for request in server.received)
    assert ("response_format" in server.received[0].body) == (dialect == "json")


def test_the_numbers_of_a_file_on_a_server() -> None:
    """item 47: test.txt is read, and its numbers are added."""
    replies = (
        action("read_file", path="test.txt"),
        action("calculator", expression="12 + 30 + 7.5"),
        "Final Answer: 49.5",
    )
    pawl = Path(sys.executable).with_name("pawl")
    with written(*replies) as server:
        done = subprocess.run(
            [pawl, "run", "react_numbers", "请读取当前目录下的 test.txt 文件并计算出文件中数字的和。"],
            cwd=EXAMPLES,
            env={**ENVIRONMENT, "OPENAI_BASE_URL": server.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    assert done.stdout.strip() == "49.5"
    observed = json.dumps(server.received[1].body, ensure_ascii=False)
    assert "12\\n30\\n7.5" in observed


MESSAGES = ("Multiply two numbers.", "6 and 7.", "What was it?")


def test_a_conversation_on_its_script() -> None:
    """item 70: a question, its answer, and a second run that remembers the first."""
    printed = run("assistant", *MESSAGES)

    assert printed.splitlines() == [
        "> Multiply two numbers.",
        "Which numbers?    [waiting, 1 steps]",
        "> 6 and 7.",
        "The result is 42.    [completed, 3 steps]",
        "> What was it?",
        "It was 42.    [completed, 1 steps]",
    ]


def test_a_conversation_goes_on_in_another_process(redis_url: str) -> None:
    """item 56: with its session in the store."""
    first, second, third = (run("assistant", "--store", message, PAWL_REDIS_URL=redis_url) for message in MESSAGES)

    assert "Which numbers?    [waiting" in first
    assert "The result is 42." in second, "it answers what the call before left open"
    assert "It was 42." in third


@pytest.mark.parametrize(
    ("dialect", "replies"),
    [
        (
            "json",
            [tool("ask_user", question="Which?"), tool("calculator", expression="6*7"), tool("terminate", result="42")],
        ),
        ("react", [action("ask_user", question="Which?"), action("calculator", expression="6*7"), "Final Answer: 42"]),
    ],
)
def test_a_conversation_on_a_server(dialect: str, replies: list[str]) -> None:
    """item 70: a clarification in each dialect."""
    with written(*replies) as server:
        printed = run("assistant", *MESSAGES[:2], OPENAI_BASE_URL=server.url, ASSISTANT_DIALECT=dialect)

    assert printed.splitlines()[1::2] == ["Which?    [waiting, 1 steps]", "42    [completed, 3 steps]"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("yes\n", "2500.00 paid for invoice 18"), ("too dear\n", "A person did not allow this call: too dear")],
)
def test_a_payment_that_a_person_must_allow(answer: str, outcome: str) -> None:
    """item 70: the small one is paid at once, the large one when it is allowed."""
    printed = run("payments", "Pay invoices 17 and 18.", stdin=answer)

    assert 'May pay be called with {"number":18,"cents":250000}?' in printed
    assert printed.rstrip().endswith(f"49.90 paid for invoice 17 / {outcome}")


@pytest.mark.parametrize(
    ("dialect", "replies"),
    [
        ("json", [tool("pay", number=18, cents=250000), tool("terminate", result="Paid.")]),
        ("react", [action("pay", number=18, cents=250000), "Final Answer: Paid."]),
    ],
)
def test_a_payment_on_a_server(dialect: str, replies: list[str]) -> None:
    """item 70: an approval in each dialect."""
    with written(*replies) as server:
        printed = run("payments", stdin="yes\n", OPENAI_BASE_URL=server.url, PAYMENTS_DIALECT=dialect)

    assert printed.rstrip().endswith("Paid.")
    assert "2500.00 paid for invoice 18" in json.dumps(server.received[1].body)
