"""Agents that handle secrets carelessly, as worker processes import them: every log is on, and whatever breaks shows its key."""

import logging
import os

from agent import ActionContext, Agent, FunctionModel, ModelReply, ModelRequest, OpenAIModel, tool
from agent.context import RunIdentity
from agent.requests import question_tool

for name in ("httpx", "httpcore", "asyncio", "redis", "rq", "shop"):
    logging.getLogger(name).setLevel(logging.DEBUG)


class Vault(ActionContext):
    """What only tools may know."""

    token: str


def open_vault() -> Vault:
    """The vault of this process."""
    return Vault(token=os.environ["TEST_TOKEN"])


def open_broken_vault(identity: RunIdentity) -> Vault:
    """Fails for each run."""
    raise RuntimeError(f"no vault for {identity.agent}: {os.environ['OPENAI_API_KEY']}")


@tool
def look(vault: Vault) -> str:
    """Looks whether there is a token."""
    return f"a token of {len(vault.token)} letters"


@tool
def charge(vault: Vault) -> str:
    """Raises what holds the key in its arguments, its cause and its locals."""
    key = os.environ["OPENAI_API_KEY"]
    logging.getLogger("shop").debug("charging %s with %s", vault, {"Authorization": f"Bearer {key}"})
    try:
        raise ConnectionError(f"POST https://shop/charge?api_key={key}", {"api_key": key})
    except ConnectionError as error:
        logging.getLogger("shop").exception("no charge")
        raise RuntimeError("no charge", key) from error


def _break(request: ModelRequest) -> ModelReply:
    raise ValueError(f"run {request.run_id}: bad key {os.environ['OPENAI_API_KEY']}")


keeper = Agent(
    "Keep the shop.",
    name="keeper",
    tools=[look, charge, question_tool()],
    model=OpenAIModel("m"),
    action_context=open_vault,
)
hasty = Agent("Hurry.", name="hasty", model=OpenAIModel("m"), max_attempts=1, model_timeout=0.5)
nowhere = Agent("x", name="nowhere", model=OpenAIModel("m", base_url=os.environ["TEST_NOWHERE"]), max_attempts=1)
odd = Agent("x", name="odd", model=FunctionModel(_break))
vaultless = Agent("x", name="vaultless", model=OpenAIModel("m"), action_context=open_broken_vault)
