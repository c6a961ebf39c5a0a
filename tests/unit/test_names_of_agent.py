"""What `agent` exports is what can be imported, each when it is asked for."""

import subprocess
import sys

import pytest

import agent

HEAVY = "{'redis', 'rq', 'pydantic', 'httpx', 'structlog', 'scheduler', 'worker'}"


def imported_by(code: str) -> str:
    """Which of the heavy modules a program has in the end."""
    program = f"import sys; {code}; print(sorted({HEAVY} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", agent.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(agent, name).__name__ in (name, "Tool")  # Action is another word for Tool


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Redis'"):
        _ = agent.Redis  # pyright: ignore[reportAttributeAccessIssue]


def test_the_package_brings_nothing_heavy() -> None:
    assert imported_by("import agent") == "[]"


def test_an_agent_needs_neither_a_store_nor_an_http_client() -> None:
    assert imported_by("from agent import Agent, AgentRuntime, SimpleAgent, Memory, tool") == "['pydantic']"
