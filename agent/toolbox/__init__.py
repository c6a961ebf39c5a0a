"""Ready-made tools that are safe to give to a model.

from agent.toolbox import ask_user, calculator, file_tools, now

assistant = Agent("Help with the files.", tools=[*file_tools("data"), calculator, now, ask_user])
"""

from typing import Final

from agent.requests import question_tool
from agent.toolbox.arithmetic import calculator
from agent.toolbox.clock import now
from agent.toolbox.files import FileTools, file_tools
from agent.tools import Tool

ask_user: Final[Tool] = question_tool()
"""Asks a person; the run waits for the answer and holds nothing. See `question_tool` for one with a deadline."""

__all__ = ["FileTools", "ask_user", "calculator", "file_tools", "now", "question_tool"]
