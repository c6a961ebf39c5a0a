"""Agents whose tools end the process that they run in, or its event loop, for tests of what becomes of the others."""

import asyncio
import os
import sys
from typing import Final, NoReturn

from agent import ActionContext, Agent, RunIdentity, ToolContext, tool
from agent.models.scripted import ScriptedModel, call, say
from tests.support.traces import Traces


def _leave(context: ToolContext) -> None:
    Traces.of_this_process().leave("rogue", context.run_id, context.idempotency_key)


async def _exit() -> NoReturn:
    sys.exit("from a task")


@tool(idempotent=True)
async def leave_in_good_order(context: ToolContext) -> str:
    """Ends the process as if its work were done."""
    _leave(context)
    os._exit(0)


@tool(idempotent=True)
async def exit_in_a_task(context: ToolContext) -> str:
    """Leaves from a task of its own, which no one awaits for the worker."""
    _leave(context)
    await asyncio.gather(_exit())
    return "unreachable"


@tool(idempotent=True)
async def stop_the_loop(context: ToolContext) -> str:
    """Stops the event loop."""
    _leave(context)
    asyncio.get_running_loop().stop()
    await asyncio.sleep(60)
    return "unreachable"


@tool(idempotent=True)
async def cancel_everything(context: ToolContext) -> str:
    """Cancels every task of the process."""
    _leave(context)
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(60)
    return "unreachable"


TOOLS = (leave_in_good_order, exit_in_a_task, stop_the_loop, cancel_everything)


ROGUES: Final = tuple(one.__name__ for one in TOOLS)
"""The agents, each with the one tool of its name."""

leaver, exiter, stopper, canceller = (
    Agent("Go.", name=one, tools=[tool], model=ScriptedModel([call(one), say("done")]))
    for one, tool in zip(ROGUES, TOOLS, strict=True)
)


async def _exit_instead(identity: RunIdentity) -> ActionContext:
    sys.exit(f"no dependencies for {identity.agent}")


homeless = Agent("Go.", name="homeless", model=ScriptedModel([say("done")]), action_context=_exit_instead)
