"""Agents whose model writes down every request that it reads, for tests of sessions."""

from agent import Agent, Budget, FunctionModel, ModelReply, ModelRequest, tool
from agent.context_window import ContextManager
from agent.messages import Role
from agent.models.scripted import call, say
from agent.requests import question_tool, remember_tool
from tests.support.sent import write_down

MAX_TOKENS = 4000
LAST_STEP = 10


def _answer(request: ModelRequest) -> ModelReply:
    write_down(request)
    task = next(message.content or "" for message in reversed(request.messages) if message.role is Role.USER)
    if "remember" in task and request.step == 1:
        return call("remember", text=task.partition("remember ")[2])
    if task == "ask" and request.step == 1:
        return call("ask_user", question="Which one?")
    if request.step < LAST_STEP:
        return call("look", page=request.step)
    return say(f"done after {request.step} steps")


@tool(idempotent=True)
async def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page}: " + "words and more words " * 20


talker = Agent(
    "Talk.",
    name="talker",
    tools=[look, remember_tool(), question_tool()],
    model=FunctionModel(_answer, name="recording"),
    context=ContextManager(max_tokens=MAX_TOKENS, recent_messages=12),
    budget=Budget(max_steps=30),
)
