"""What the engine's heart must not touch."""

import ast
import inspect
from types import ModuleType

import pytest

import agent.aside
import agent.budget
import agent.conversation
import agent.dialects.call_markup
import agent.dialects.calls
import agent.dialects.json
import agent.dialects.loose_json
import agent.dialects.react
import agent.dialects.react_text
import agent.dialects.templates
import agent.dialects.tools
import agent.dialects.written_calls
import agent.intents
import agent.outcomes
import agent.requests
import agent.state
import agent.step

PURE = [
    agent.step,
    agent.intents,
    agent.outcomes,
    agent.requests,
    agent.aside,
    agent.conversation,
    agent.state,
    agent.budget,
    agent.dialects.call_markup,
    agent.dialects.calls,
    agent.dialects.json,
    agent.dialects.loose_json,
    agent.dialects.react,
    agent.dialects.react_text,
    agent.dialects.templates,
    agent.dialects.tools,
    agent.dialects.written_calls,
]


@pytest.mark.parametrize("module", PURE, ids=lambda module: module.__name__)
def test_the_step_machine_is_pure(module: ModuleType):
    """No await, no clock, no chance, no I/O: neither in a statement nor through an import."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        assert not isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith)
        imported = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in imported:
            assert name.partition(".")[0] in {
                "agent", "collections", "dataclasses", "decimal", "enum", "functools", "itertools", "json", "pydantic",
                "pydantic_core", "re", "typing", "unicodedata",
            }  # fmt: skip
            assert name not in {"agent.driver", "agent.execution", "agent.environment", "agent.agent", "agent.journal"}
        if isinstance(node, ast.Name):
            assert node.id not in {"open", "print", "input", "exec", "eval"}
