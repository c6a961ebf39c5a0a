"""The player with a model that refuses what a strict server refuses, and a tool whose result UTF-8 cannot carry."""

from agent import Agent, FunctionModel, ModelReply, ModelRequest, tool
from agent.errors import ModelRefusedRequest
from tests.support.player import PRICE, TOOLS, perform
from tests.support.talk import assert_sendable

BROKEN = "a\udc9db \ud83d c" + "\U0001f680"
MENDED = "a\ufffdb \ufffd c\U0001f680"


async def _answer(request: ModelRequest) -> ModelReply:
    try:
        assert_sendable(request.messages)
    except AssertionError as problem:
        raise ModelRefusedRequest(f"this history cannot be sent: {problem}", status=400) from None
    return await perform(request)


@tool
def ls() -> dict[str, str]:
    """Lists a folder."""
    return {BROKEN: BROKEN}


careful = Agent("Play the play.", name="careful", tools=[*TOOLS, ls], model=FunctionModel(_answer, price=PRICE))
