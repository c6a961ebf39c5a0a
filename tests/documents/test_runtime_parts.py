"""The third document's parts: tools as objects, the repository, the context manager; its items 50 to 60."""

import asyncio
from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agent import MemorySessionRepository, StoreUnavailable, ToolDefinition, ToolRegistry, ToolResult
from agent.conversation import ContextState
from agent.documents.messages import CalledFunction, FunctionCall, Message
from agent.documents.runtime import (
    ContextManager,
    LLMResponse,
    RequestedCall,
    Run,
    Session,
    SessionRepository,
    StoredCheckpoint,
    StoredEvent,
    Tool,
    ToolContext,
)
from agent.events import ToolReturned
from agent.tokens import estimate
from agent.toolbox import now
from scheduler.settings import Settings
from tests.support.sessions_of import (
    Calculator,
    CalculatorInput,
    ScriptedLLM,
    final,
    question,
    repository_in,
    runtime_of,
    tool_call,
)
from worker.session_repository import StoredSessions

PLACES = pytest.mark.parametrize("place", ["memory", "store"])


class Recorder:
    """A tool that looks at its session."""

    name = "recorder"
    description = "Tells what was said."

    class Input(BaseModel):
        """What it takes."""

        last: int = Field(default=1, ge=1, alias="lastMessages")

    input_model: type[BaseModel] = Input

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []
        self.contexts: list[ToolContext] = []

    def definition(self) -> ToolDefinition:
        """With words of its own."""
        return ToolDefinition(name=self.name, description="Records.", parameters=self.Input.model_json_schema())

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Remembers what it was given, and fails."""
        self.given.append(arguments)
        self.contexts.append(context)
        return ToolResult(error=f"{len(await context.history())} messages so far, and no tape")


def returned(events: list[StoredEvent]) -> list[ToolReturned]:
    return [event.event for event in events if isinstance(event.event, ToolReturned)]


# ---- tools ----------------------------------------------------------------------------------------------------------


def test_a_tool_is_an_object_with_an_input_model() -> None:
    """item 50: name, description, input_model, definition() and execute(); a result may be an error in words."""
    tool: Tool = Calculator()
    recorder = Recorder()
    registry = ToolRegistry([tool, recorder, now])

    async def attempt() -> list[StoredEvent]:
        repository = MemorySessionRepository()
        llm = ScriptedLLM(recorder_call({"lastMessages": 3}), final("None."))
        result = await runtime_of(repository, llm, tools=[recorder]).run("s1", "What was said?")
        return await repository.list_events(result.run_id)

    (answer,) = returned(asyncio.run(attempt()))

    assert list(registry.actions.tools) == ["calculator", "recorder", "now"]
    assert recorder.given == [{"lastMessages": 3}]  # as the model wrote them, and validated
    assert (answer.outcome, answer.content) == ("error", "1 messages so far, and no tape")


def test_a_definition_follows_from_the_tool() -> None:
    """item 51: an object of name, description and parameters, the schema of the input model."""
    definition = Calculator().definition()

    assert definition == ToolDefinition(
        name="calculator",
        description="Calculates an arithmetic expression.",
        parameters=CalculatorInput.model_json_schema(),
    )
    assert list(ToolDefinition.model_fields) == ["name", "description", "parameters"]


@pytest.mark.parametrize("expression", ["", "1+" * 300 + "1"])
def test_the_limits_of_an_input_hold_at_run_time(expression: str) -> None:
    """item 52: an expression has 1 to 500 characters; what does not fit is told to the model, not executed."""

    async def attempt() -> list[StoredEvent]:
        repository = MemorySessionRepository()
        llm = ScriptedLLM(tool_call(expression), final("No."))
        result = await runtime_of(repository, llm).run("s1", "Go.")
        return await repository.list_events(result.run_id)

    (answer,) = returned(asyncio.run(attempt()))

    assert answer.outcome == "invalid"
    assert "character" in answer.content


@PLACES
def test_a_tool_sees_its_session(place: str, redis_url: str) -> None:
    """item 53: the repository, the history of this session, a key for this call; the registry knows all definitions."""
    recorder = Recorder()

    async def attempt() -> None:
        async with repository_in(place, redis_url) as repository:
            llm = ScriptedLLM(final("Hello."), recorder_call({}), final("Bye."))
            runtime = runtime_of(repository, llm, tools=[recorder])
            await runtime.run("s1", "Hi.")
            result = await runtime.run("s1", "What was said?")

            (context,) = recorder.contexts
            assert context.repository is repository
            assert (context.session_id, context.run_id) == ("s1", result.run_id)
            assert context.idempotency_key == f"{result.run_id}:1.0"
            assert [message.content for message in await context.history()][:3] == ["Hi.", "Hello.", "What was said?"]
            assert [one.name for one in runtime.tool_registry.definitions()] == ["recorder"]
            assert runtime.tool_registry.get("recorder") is not None

    asyncio.run(attempt())


# ---- the repository -------------------------------------------------------------------------------------------------


def test_a_repository_is_made_ready() -> None:
    """item 54: init() opens the store (the embedded one makes its folders); an address that is wrong is said at once."""
    repository = StoredSessions(Settings(redis_url="redis://127.0.0.1:1/0", connect_timeout_seconds=0.2))

    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1"):
        asyncio.run(repository.init())
    asyncio.run(MemorySessionRepository().init())


@PLACES
def test_what_is_kept(place: str, redis_url: str) -> None:
    """item 55: sessions, runs, events and checkpoints have the document's fields; an event's number is its run's own."""

    async def attempt() -> None:
        async with repository_in(place, redis_url) as repository:
            runtime = runtime_of(repository, ScriptedLLM(tool_call("1+1"), final("2"), final("3")))
            runs = [await runtime.run("s1", task) for task in ("First.", "Second.")]
            session = await repository.get_session("s1")
            run = await repository.get_run(runs[0].run_id, "s1")
            checkpoint = await repository.get_checkpoint(runs[0].run_id)
            events = await repository.list_events(runs[0].run_id)

            assert session is not None
            assert run is not None
            assert checkpoint is not None
            assert (session.id, session.status) == ("s1", "idle")
            assert session.metadata["first_task"] == "First."
            assert session.created_at <= session.updated_at
            assert (run.session_id, run.status, run.loop_count) == ("s1", "completed", 2)
            assert isinstance(run.created_at, datetime)
            assert [event.sequence for event in events] == list(range(1, len(events) + 1))
            assert {(event.session_id, event.run_id) for event in events} == {("s1", run.id)}
            assert (checkpoint.run_id, checkpoint.sequence) == (run.id, len(events))
            assert await repository.get_session("nobody") is None
            assert await repository.get_checkpoint("nothing") is None

    asyncio.run(attempt())


def test_the_names_of_what_is_kept() -> None:
    """item 55: the fields by their names."""
    names = {kind: {field.name for field in fields(kind)} for kind in (Session, Run, StoredEvent, StoredCheckpoint)}

    assert {"id", "status", "metadata", "created_at", "updated_at"} <= names[Session]
    assert {"id", "session_id", "status", "loop_count", "created_at", "updated_at"} <= names[Run]
    assert {"session_id", "run_id", "sequence", "created_at"} <= names[StoredEvent]
    assert {"event_type", "payload"} <= set(dir(StoredEvent))
    assert {"run_id", "sequence", "state", "created_at"} <= names[StoredCheckpoint]


@PLACES
def test_a_run_has_one_checkpoint_the_newest(place: str, redis_url: str) -> None:
    """item 56: session, run, event, checkpoint; a later checkpoint takes the place of the earlier."""

    async def attempt() -> None:
        async with repository_in(place, redis_url) as repository:
            runtime = runtime_of(repository, ScriptedLLM(question("Which?"), final("That.")))
            asked = await runtime.run("s1", "Go.")
            first = await repository.get_checkpoint(asked.run_id)
            await runtime.run("s1", "This.", run_id=asked.run_id)
            second = await repository.get_checkpoint(asked.run_id)

            assert first is not None
            assert second is not None
            assert (first.state.step, second.state.step) == (1, 2)
            assert (first.state.ended, second.state.ended) == ("", "completed")
            assert first.sequence < second.sequence

    asyncio.run(attempt())


def test_the_calls_of_a_repository() -> None:
    """item 57: create_run, get_run, get_session, list_events, get_checkpoint. Decided otherwise: there is no append_event and
    no saving of a checkpoint by itself, for both are one commit of the run's journal: neither is ever there without the other."""
    for name in ("init", "create_run", "get_run", "get_session", "list_events", "get_checkpoint"):
        assert callable(getattr(SessionRepository, name))
        assert callable(getattr(MemorySessionRepository, name))
        assert callable(getattr(StoredSessions, name))


# ---- the context ----------------------------------------------------------------------------------------------------


def talk(count: int, *, length: int = 10) -> list[Message]:
    roles = ("user", "assistant")
    return [Message(role=roles[n % 2], content=f"message {n} ".ljust(length, "x")) for n in range(count)]


def test_a_context_manager_has_two_figures() -> None:
    """item 58: max_tokens and recent_messages; tokens are estimated, without any download."""
    manager = ContextManager(max_tokens=4000, recent_messages=20)

    assert (manager.max_tokens, manager.recent_messages) == (4000, 20)
    assert (manager.window.max_tokens, manager.window.recent_messages) == (4000, 20)


def test_build_puts_together_what_fits() -> None:
    """item 59: one system message with what is known, then the latest messages in their order, cut to what fits."""
    manager = ContextManager(max_tokens=600, recent_messages=4)
    state = ContextState(summary="They met.", memory=("likes tea",), open_questions=("When?",))

    built = manager.build("Help.", state, talk(10))
    tight = manager.build("Help.", state, talk(10, length=4000))

    assert [message.role for message in built] == ["system", *["user", "assistant"] * 2]
    for part in ("Help.", "They met.", "likes tea", "When?"):
        assert part in str(built[0].content)
    assert [str(message.content)[:9] for message in built[1:]] == [f"message {n}" for n in range(6, 10)]
    assert sum(estimate(message.content or "") for message in tight) <= 600
    assert str(tight[-1].content).startswith("message 9")  # the newest keeps most


def test_a_call_is_never_parted_from_its_result() -> None:
    """item 59: where the recent messages would begin with a result, they begin with its call."""
    called = CalledFunction(function=FunctionCall(arguments="{}", name="look"), id="c1", type="function")
    messages = [
        *talk(4),
        Message(role="assistant", tool_calls=[called]),
        Message(role="tool", content="seen", tool_call_id="c1", name="look"),
        *talk(3),
    ]

    built = ContextManager(recent_messages=4).build("Help.", ContextState(), messages)

    assert [message.role for message in built] == ["system", "assistant", "tool", "user", "assistant", "user"]


def test_compact_summarises_each_message_once() -> None:
    """item 60: 300 characters of each, the last 4,000 of all; the state is a copy, and its cursor says what is in it."""
    manager = ContextManager(recent_messages=4)
    messages = talk(10, length=1000)
    nothing = ContextState()

    assert manager.compact(nothing, messages[:4]) is nothing
    once = manager.compact(nothing, messages)
    assert manager.compact(once, messages) is once  # called again: nothing is added again
    more = manager.compact(once, [*messages, *talk(2)])

    assert nothing.summary == ""
    assert once.summary.count("message 0") == more.summary.count("message 0") == 1
    assert [len(line) for line in once.summary.splitlines()] == [len("user: ") + 300, len("assistant: ") + 300] * 3
    assert (once.offset, more.offset) == (6, 8)
    assert len(manager.compact(nothing, talk(60, length=1000)).summary) <= 4000


def recorder_call(arguments: dict[str, Any]) -> LLMResponse:
    return LLMResponse(kind="tool_call", tool_call=RequestedCall(name="recorder", arguments=arguments))
