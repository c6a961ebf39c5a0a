"""An agent: how it is declared, and a run of it in process."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from agent.agent import Agent, Goal
from agent.budget import Budget
from agent.context import ActionContext, RunIdentity, ToolContext
from agent.errors import (
    AgentDefinitionError,
    BudgetExceeded,
    ContextTypeError,
    ModelRefusedRequest,
    ModelUnavailable,
    RunFailed,
    UnknownPriceError,
)
from agent.events import ModelFailed, ToolReturned
from agent.messages import Message
from agent.models.base import ModelReply, ModelRequest, Price
from agent.models.function import FunctionModel
from agent.models.scripted import ScriptedModel, call, say
from agent.registry import ActionRegistry
from agent.tools import tool
from tests.support import virtual_time


class Shop(ActionContext):
    """Dependencies."""

    stock: dict[str, int]


class LargeShop(Shop):
    """More of them."""


class Bank(ActionContext):
    """Other dependencies."""


class Answer(BaseModel):
    """A typed result."""

    value: int


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def take(item: str, shop: Shop) -> int:
    """Takes an item."""
    shop.stock[item] -= 1
    return shop.stock[item]


@tool(terminal=True)
def finish(answer: str) -> str:
    """Finishes."""
    return answer.upper()


def echo() -> FunctionModel:
    """Answers with the texts of all that it was asked."""
    return FunctionModel(lambda request: " | ".join(text_of(request.messages)))


def text_of(messages: Sequence[Message]) -> list[str]:
    return [message.content or "" for message in messages]


def test_the_goal_is_the_system_message():
    for goal in ("Be brief.", Goal(name="brevity", description="Be brief.")):
        agent = Agent(goal, model=echo())
        assert agent.run_sync("Hello").output == "Be brief. | Hello"


def test_without_schema_and_exit_the_result_is_text():
    agent = Agent("Do it.", tools=[add])
    assert agent.exit.name == "terminate"
    assert list(agent.registry.tools) == ["add", "terminate"]
    assert agent.output is not None
    assert agent.output.is_text


def test_its_own_terminal_tool_is_the_exit_and_its_result_the_result():
    agent = Agent("Do it.", tools=[add, finish], model=ScriptedModel([call("finish", answer="done")]))
    assert (agent.exit.name, agent.output) == ("finish", None)
    assert list(agent.registry.tools) == ["add", "finish"]
    assert agent.run_sync("go").output == "DONE"


def test_two_exits_are_refused_by_their_names():
    with pytest.raises(AgentDefinitionError, match=r"terminal tools \(finish\) are two exits"):
        Agent("Do it.", tools=[finish], output_schema=Answer)

    @tool(terminal=True)
    def stop() -> str:
        """Stops."""
        return "stopped"

    with pytest.raises(ValueError, match=r"\(finish, stop\); exactly one exit"):
        Agent("Do it.", tools=[finish, stop])


def test_a_tool_in_the_name_of_the_exit_is_refused():
    def terminate() -> str:
        """Ends."""
        return "x"

    with pytest.raises(AgentDefinitionError, match="two tools named 'terminate'"):
        Agent("Do it.", tools=[terminate])


def test_a_shared_registry_is_never_changed():
    registry = ActionRegistry([add])
    first, second = Agent("One.", tools=registry), Agent("Two.", tools=registry, output_schema=Answer)
    assert list(registry.tools) == ["add"]
    assert first.exit is not second.exit


def test_a_tool_may_be_terminal_in_one_agent_only():
    registry = ActionRegistry()
    registry.register(add, terminal=True)
    agent = Agent("Do it.", tools=registry, model=ScriptedModel([call("add", a=1, b=2)]))
    assert agent.exit.name == "add"
    assert agent.run_sync("go").output == 3
    assert Agent("Do it.", tools=[add]).exit.name == "terminate"


def test_dependencies_must_be_of_the_type_that_the_tools_ask_for():
    with pytest.raises(ContextTypeError) as refused:
        Agent("Sell.", tools=[take], action_context=Bank())
    for word in ("'take'", "Shop", "Bank", "subclass", "split the tools"):
        assert word in str(refused.value)
    with pytest.raises(TypeError):
        Agent("Sell.", tools=[take])
    Agent("Sell.", tools=[take], action_context=LargeShop(stock={}))

    @tool
    def either(action_context: ActionContext) -> str:
        """Takes any."""
        return type(action_context).__name__

    Agent("Sell.", tools=[either])


def test_dependencies_are_injected_and_never_shown():
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append(request)
        return call("take", item="apple", shop={"stock": {}}) if request.step == 1 else say("taken")

    shop = Shop(stock={"apple": 3})
    assert Agent("Sell.", tools=[take], action_context=shop, model=FunctionModel(answer)).run_sync("go").steps == 2
    assert shop.stock == {"apple": 2}
    assert "shop" not in str(seen[0].tools)


def test_dependencies_made_for_each_run():
    made: list[str] = []

    def shop_of(run: RunIdentity) -> Shop:
        made.append(run.tenant)
        return Shop(stock={"apple": 1})

    model = ScriptedModel([call("take", item="apple"), say("taken")])
    agent = Agent("Sell.", tools=[take], action_context=shop_of, model=model)
    for tenant in ("a", "b"):
        result = virtual_time.run(agent.run("go", tenant=tenant))
        assert [r.event.content for r in result.events if isinstance(r.event, ToolReturned)] == ["0"]
    assert made == ["a", "b"]


def test_two_runs_share_no_memory():
    agent = Agent("Remember.", model=echo())
    assert agent.run_sync("first").output == "Remember. | first"
    assert agent.run_sync("second").output == "Remember. | second"

    async def together() -> list[str]:
        results = await asyncio.gather(*(agent.run(f"task {number}") for number in range(20)))
        return [result.output for result in results]

    assert asyncio.run(together()) == [f"Remember. | task {number}" for number in range(20)]


def test_run_sync_works_inside_a_running_loop():
    agent = Agent("Do it.", tools=[add], model=ScriptedModel([call("add", a=1, b=2), say("3")]))

    async def notebook() -> str:
        return agent.run_sync("1 + 2").output

    assert asyncio.run(notebook()) == "3"


def test_another_model_stands_in_while_a_block_runs():
    agent = Agent("Do it.", model=ScriptedModel([say("its own")]))
    with agent.override(model=ScriptedModel([say("another")])):
        assert agent.run_sync("go").output == "another"
        with agent.override(model=ScriptedModel([say("a third")])):
            assert agent.run_sync("go").output == "a third"
        assert agent.run_sync("go").output == "another"
    assert agent.run_sync("go").output == "its own"


def test_an_agent_without_a_model_says_so_when_it_is_needed():
    agent = Agent("Do it.", name="idle")
    with pytest.raises(AgentDefinitionError, match=r"'idle'.*has no model"):
        agent.run_sync("go")
    with agent.override(model=ScriptedModel([say("done")])):
        assert agent.run_sync("go").output == "done"


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "é", "aé", "a" * 65, "a\n", "a:b"])
def test_names_that_could_not_be_a_key_are_refused(name: str):
    with pytest.raises(AgentDefinitionError, match="agent name"):
        Agent("Do it.", name=name)


@pytest.mark.parametrize(
    "options",
    [
        {"parallel": 0},
        {"max_attempts": 0},
        {"max_unusable": 0},
        {"max_tokens": 0},
        {"model_timeout": 0},
        {"dialect": "esperanto"},
    ],
)
def test_options_that_could_never_work_are_refused(options: dict[str, Any]):
    with pytest.raises(AgentDefinitionError):
        Agent("Do it.", **options)


def test_a_money_limit_needs_a_price():
    """case-114"""
    agent = Agent("Do it.", model=ScriptedModel([say("done")]), budget=Budget(max_cost_usd=1))  # type: ignore[arg-type]
    with pytest.raises(UnknownPriceError, match="no price is known for scripted"):
        agent.run_sync("go")
    free = ScriptedModel([say("done")], price=Price(0, 0))  # type: ignore[arg-type]
    with agent.override(model=free):
        assert agent.run_sync("go").usage.cost_nanousd == 0


def test_the_end_at_a_limit_carries_what_there_is():
    model = ScriptedModel([ModelReply(content="So far 3.", tool_calls=call("add", a=1, b=2).tool_calls)] * 9)
    agent = Agent("Do it.", tools=[add], model=model, budget=Budget(max_steps=2))
    with pytest.raises(BudgetExceeded) as ended:
        agent.run_sync("go")
    assert (ended.value.limit, ended.value.partial) == ("max_steps", "So far 3.")
    assert agent.budget.max_steps == 2
    with pytest.raises(BudgetExceeded, match=r"max_model_calls.*: raise the limit and run it again"):
        agent.run_sync("go", budget=Budget(max_model_calls=1))


def test_a_failure_says_why():
    agent = Agent("Do it.", model=ScriptedModel([ModelRefusedRequest("no such model")]))
    with pytest.raises(RunFailed, match="no such model") as failed:
        agent.run_sync("go")
    assert failed.value.reason == "model_refused_request"
    assert failed.value.run_id.startswith("local-")


def test_failed_attempts_are_made_again():
    busy = ModelUnavailable("busy", retry_after=900)
    model = ScriptedModel([say("done")], failures={(1, 1): busy, (1, 2): busy})

    async def scene() -> tuple[str, list[ModelFailed], float]:
        result = await Agent("Do it.", model=model).run("go")
        failed = [recorded.event for recorded in result.events if isinstance(recorded.event, ModelFailed)]
        return result.output, failed, virtual_time.now()

    output, failed, seconds = virtual_time.run(scene())
    assert (output, len(failed), round(seconds)) == ("done", 2, 1800)


def test_a_tool_knows_its_run():
    known: list[ToolContext] = []

    @tool
    async def who(tool_context: ToolContext) -> str:
        """Asks who it is."""
        known.append(tool_context)
        return "you"

    agent = Agent("Do it.", name="me", tools=[who], model=ScriptedModel([call("who"), say("done")]))
    result = virtual_time.run(agent.run("go", metadata={"ticket": 7}, session="s", tenant="t"))
    (context,) = known
    assert (context.run_id, context.session, context.tenant, context.agent) == (result.run_id, "s", "t", "me")
    assert (context.step, context.call_key, context.attempt) == (1, "1.0", 1)
    assert context.idempotency_key == f"{result.run_id}:1.0"
    assert context.metadata == {"ticket": 7}
    assert context.budget_left == {"max_steps": 49}


def test_the_worked_example():
    """Add, multiply, finish: the messages that the model reads at the end."""

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiplies two numbers."""
        return a * b

    script = [call("add", a=200, b=10), call("multiply", a=210, b=2), call("finish", answer="420")]
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        requests.append(request)
        return script[request.step - 1]

    agent = Agent("Perform arithmetic.", tools=[add, multiply, finish], model=FunctionModel(answer))
    result = agent.run_sync("Add 200 and 10, then multiply the result by 2.")
    assert (result.output, result.steps, result.usage.tool_calls) == ("420", 3, 3)
    assert [(message.role.value, message.content) for message in requests[-1].messages] == [
        ("system", "Perform arithmetic."),
        ("user", "Add 200 and 10, then multiply the result by 2."),
        ("assistant", None),
        ("tool", "210"),
        ("assistant", None),
        ("tool", "420"),
    ]
