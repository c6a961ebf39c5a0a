"""The third document's runtime: runs of sessions, what a model may want, and what can go wrong; items 49 and 61 to 75."""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from pydantic import TypeAdapter, ValidationError

import agent.documents
from agent import AgentRuntime, Budget, Conflict, MemorySessionRepository, ModelUnavailable, OpenAIModel, ScriptedModel
from agent.conversation import ContextState
from agent.documents.runtime import LLMResponse, RequestedCall, RunResult, RuntimeCounters, SessionRepository
from agent.env_file import load_env_file
from agent.requests import Answer
from agent.testing import call, say
from agent.tools import build_tool
from tests.support.model_server import ModelServer, chat_reply, http_answer
from tests.support.sessions_of import ScriptedLLM, final, question, repository_in, runtime_of, tool_call

PLACES = ["memory", "store"]

Try = Callable[[SessionRepository], Awaitable[None]]


@pytest.fixture(params=PLACES)
def tried(request: pytest.FixtureRequest, redis_url: str) -> Callable[[Try], None]:
    """Tries something with sessions in memory, and with sessions in a store."""

    async def with_repository(attempt: Try) -> None:
        async with repository_in(request.param, redis_url) as repository:
            await attempt(repository)

    return lambda attempt: asyncio.run(with_repository(attempt))


def test_a_run_loops_over_tools_until_it_answers(tried: Callable[[Try], None]) -> None:
    """item 49: reply or tool, again, answer; sessions, context, errors, a trace; no framework."""

    async def attempt(repository: SessionRepository) -> None:
        llm = ScriptedLLM(tool_call("1 + 2 * 3"), final("7"))

        result = await runtime_of(repository, llm).run("s1", "What is 1 + 2 * 3?")

        assert (result.status, result.content, result.output) == ("completed", "7", "7")
        assert [(message.role, message.content) for message in llm.contexts[1]] == [
            ("system", "Help with figures."),
            ("user", "What is 1 + 2 * 3?"),
            ("assistant", None),
            ("tool", "7"),
        ]
        assert [event.event_type for event in await repository.list_events(result.run_id)] == [
            "run_created",
            "run_claimed",
            "model_replied",
            "tool_returned",
            "model_replied",
            "run_completed",
        ]

    tried(attempt)


def test_a_state_is_restored_from_metadata() -> None:
    """item 61: of the fields that it knows; others are passed over."""
    metadata = {"summary": "They met.", "memory": ["likes tea"], "open_questions": ["When?"], "colour": "blue"}

    state = TypeAdapter(ContextState).validate_python(metadata)

    assert (state.summary, state.memory, state.open_questions) == ("They met.", ("likes tea",), ("When?",))


def test_the_signature_of_run() -> None:
    """item 62: a session, a message, a run; the parts are attributes. A session's id is a UUID or any text, a run's a text."""
    parameters = inspect.signature(AgentRuntime.run).parameters
    runtime = runtime_of(MemorySessionRepository(), ScriptedModel([say("Hello.")]))

    assert list(parameters)[1:4] == ["session_id", "user_message", "run_id"]
    assert parameters["user_message"].default is parameters["run_id"].default is None
    assert asyncio.run(runtime.run(uuid4(), "Hi")).content == "Hello."
    for part in ("repository", "context_manager", "llm", "tool_registry", "system_instruction"):
        assert hasattr(runtime, part)


def test_each_call_has_a_trace_id(tried: Callable[[Try], None]) -> None:
    """item 63: all that happens in a call carries it."""

    async def attempt(repository: SessionRepository) -> None:
        runtime = runtime_of(repository, ScriptedLLM(question("Which?"), final("That.")))

        asked = await runtime.run("s1", "One of them.")
        answered = await runtime.run("s1", "The second.", run_id=asked.run_id)

        assert UUID(asked.trace_id) != UUID(answered.trace_id)
        events = await repository.list_events(asked.run_id)
        traces = [str(event.payload["trace_id"]) for event in events]
        border = traces.index(answered.trace_id)
        assert set(traces[:border]) == {asked.trace_id}
        assert set(traces[border:]) == {answered.trace_id}

    tried(attempt)


def test_a_run_begins_or_goes_on(tried: Callable[[Try], None]) -> None:
    """item 64: run_created is the event of the begin; what is not there, or is over, is refused."""

    async def attempt(repository: SessionRepository) -> None:
        runtime = runtime_of(repository, ScriptedLLM(final("Done.")))
        result = await runtime.run("s1", "Go.")
        first = (await repository.list_events(result.run_id))[0]

        assert (first.sequence, first.event_type, first.payload["trace_id"]) == (1, "run_created", result.trace_id)
        with pytest.raises(ValueError, match=f"Run {result.run_id} is terminal and cannot be resumed"):
            await runtime.run("s1", "More.", run_id=result.run_id)
        with pytest.raises(ValueError, match="Run not found: nothing"):
            await runtime.run("s1", "More.", run_id="nothing")
        with pytest.raises(ValueError, match=f"Run not found: {result.run_id}"):
            await runtime.run("s2", "More.", run_id=result.run_id)
        with pytest.raises(ValueError, match="a new run needs a task"):
            await runtime.run("s1")

    tried(attempt)


def test_a_busy_session_takes_no_other_run(tried: Callable[[Try], None]) -> None:
    """item 64: decided: one run of a session at a time; the one that waits is to be answered first."""

    async def attempt(repository: SessionRepository) -> None:
        runtime = runtime_of(repository, ScriptedLLM(question("Which?"), final("That."), final("Next.")))
        asked = await runtime.run("s1", "Go.")

        with pytest.raises(Conflict, match=f"busy with run {asked.run_id}"):
            await runtime.run("s1", "Something else.")
        waiting = await runtime.run("s1", run_id=asked.run_id)
        assert (waiting.status, waiting.content) == ("waiting", "Which?")
        await runtime.run("s1", "The second.", run_id=asked.run_id)
        assert (await runtime.run("s1", "Something else.")).content == "Next."

    tried(attempt)


def test_a_session_remembers_over_its_runs(tried: Callable[[Try], None]) -> None:
    """item 65: not through metadata alone: the messages of earlier runs are read; another session knows nothing."""

    async def attempt(repository: SessionRepository) -> None:
        llm = ScriptedLLM(tool_call("40 + 2"), final("42"), final("It was 42."), final("What was?"))
        runtime = runtime_of(repository, llm)

        await runtime.run("s1", "What is 40 + 2?")
        await runtime.run("s1", "What was it?")
        await runtime.run("s2", "What was it?")

        first, second = llm.contexts[2], llm.contexts[3]
        assert [message.content for message in first[1:]] == ["What is 40 + 2?", None, "42", "42", "What was it?"]
        assert [message.content for message in second[1:]] == ["What was it?"]
        said = [message.content for message in await repository.list_messages("s1")]
        assert said == ["What is 40 + 2?", None, "42", "42", "What was it?", "It was 42."]

    tried(attempt)


def test_a_call_that_was_cut_off_is_in_doubt(tried: Callable[[Try], None]) -> None:
    """item 65: the next call goes on; what had started is not executed again unasked, and the model is told so."""

    async def attempt(repository: SessionRepository) -> None:
        started: list[str] = []
        begun = asyncio.Event()

        async def transfer(to: str) -> str:
            started.append(to)
            begun.set()
            await asyncio.sleep(60)
            return "transferred"

        model = ScriptedModel([call("transfer", to="Ada"), say("Nobody knows.")])
        runtime = runtime_of(repository, model, tools=[build_tool(transfer, description="Transfers.")])
        calling = asyncio.create_task(runtime.run("s1", "Go."))
        await begun.wait()
        calling.cancel()
        await asyncio.wait([calling])
        (message,) = await repository.list_messages("s1")
        (run,) = await repository.list_runs("s1")
        assert (run.status, message.content) == ("queued", "Go.")

        result = await runtime.run("s1", run_id=run.id)

        assert (result.content, started) == ("Nobody knows.", ["Ada"])
        answers = [message.content for message in await repository.list_messages("s1") if message.role == "tool"]
        assert "outcome of this call is unknown" in str(answers[0])

    tried(attempt)


def test_counters_go_on_over_calls(tried: Callable[[Try], None]) -> None:
    """item 66: loops, tool calls, seconds, and the number of the newest event."""

    async def attempt(repository: SessionRepository) -> None:
        runtime = runtime_of(repository, ScriptedLLM(tool_call("1+1"), question("And?"), final("2")))
        asked = await runtime.run("s1", "Go.")
        answered = await runtime.run("s1", "Nothing.", run_id=asked.run_id)
        events = await repository.list_events(asked.run_id)

        assert (asked.counters.loop_count, asked.counters.tool_call_count) == (2, 1)
        assert (answered.counters.loop_count, answered.counters.tool_call_count) == (3, 2)
        assert answered.counters.elapsed_seconds >= asked.counters.elapsed_seconds
        assert answered.counters.last_sequence == events[-1].sequence == len(events)
        assert list(RuntimeCounters.__dataclass_fields__) == [
            "loop_count",
            "tool_call_count",
            "elapsed_seconds",
            "last_sequence",
        ]

    tried(attempt)


def test_a_user_s_message_is_an_event(tried: Callable[[Try], None]) -> None:
    """item 67: the task is part of the run's first event, an answer that of `request_answered`."""

    async def attempt(repository: SessionRepository) -> None:
        runtime = runtime_of(repository, ScriptedLLM(question("Which?"), final("That.")))
        asked = await runtime.run("s1", "One of them.")
        await runtime.run("s1", "The second.", run_id=asked.run_id)
        events = {event.event_type: event.payload for event in await repository.list_events(asked.run_id)}

        assert events["run_created"]["task"] == "One of them."
        assert events["request_answered"]["text"] == "The second."

    tried(attempt)


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(max_steps=2), "max_steps"),
        (Budget(max_tool_calls=1, max_steps=4), "max_steps"),  # the model is told, and goes on without tools
        (Budget(max_active_seconds=0), "max_active_seconds"),
    ],
)
def test_a_limit_is_looked_at_before_each_loop(budget: Budget, limit: str, tried: Callable[[Try], None]) -> None:
    """item 68: too many loops, too many tool calls, too long: no further call is made, and the result says which limit."""

    async def attempt(repository: SessionRepository) -> None:
        llm = ScriptedLLM(*[tool_call("1 + 1")] * 9)

        result = await runtime_of(repository, llm, budget=budget).run("s1", "For ever.")

        assert result.status == "budget_exceeded"
        assert limit in result.content
        assert len(llm.contexts) <= 4
        assert result.counters.tool_call_count <= (budget.max_tool_calls or 2)

    tried(attempt)


def test_the_order_of_a_loop() -> None:
    """item 69: budget, compaction, context, model, validation, branch: what each needs is there when it is asked."""
    llm = ScriptedLLM(tool_call("2 * 21"), final("42"))
    runtime = runtime_of(MemorySessionRepository(), llm)

    asyncio.run(runtime.run("s1", "Go."))

    assert [definition.name for definition in llm.definitions[0]] == ["calculator"]  # neither the exit nor the question
    assert llm.contexts[1][-1].content == "42"


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "final"},
        {"kind": "clarification", "content": " "},
        {"kind": "tool_call", "content": "I will look."},
        {"kind": "final", "content": "x", "tool_call": {"name": "calculator"}},
        {"kind": "thought", "content": "Hm."},
    ],
)
def test_a_response_is_exactly_one_of_three(fields: dict[str, object]) -> None:
    """item 70: an answer, a call, or a question; all else is no response."""
    with pytest.raises(ValidationError):
        LLMResponse.model_validate(fields)


def test_a_question_pauses_the_run(tried: Callable[[Try], None]) -> None:
    """item 70: a tool is asked for more, and so is a person; the run goes on with the answer."""

    async def attempt(repository: SessionRepository) -> None:
        llm = ScriptedLLM(question("Which one?"), tool_call("6 * 7"), final("42"))
        runtime = runtime_of(repository, llm)

        asked = await runtime.run("s1", "Multiply.")
        session = await repository.get_session("s1")
        answered = await runtime.run("s1", "6 and 7.", run_id=asked.run_id)

        assert (asked.status, asked.content) == ("waiting", "Which one?")
        assert [request.kind for request in asked.requests] == ["clarification"]
        assert session is not None
        assert session.status == "busy"
        assert (answered.status, answered.content) == ("completed", "42")
        assert llm.contexts[1][-1].content == "6 and 7."

    tried(attempt)


def test_a_model_client_asks_by_the_tool(tried: Callable[[Try], None]) -> None:
    """item 70: the engine's own clients say it by `ask_user`."""

    async def attempt(repository: SessionRepository) -> None:
        model = ScriptedModel([call("ask_user", question="Which one?"), say("That one.")])
        runtime = runtime_of(repository, model)

        asked = await runtime.run("s1", "Take one.")

        assert asked.content == "Which one?"
        assert (await runtime.run("s1", "The red one.", run_id=asked.run_id)).content == "That one."

    tried(attempt)


def test_an_approval_waits_as_well(tried: Callable[[Try], None]) -> None:
    """item 70: a tool that a person must allow; the answer is given through the repository."""

    async def attempt(repository: SessionRepository) -> None:
        sent: list[str] = []

        def send(text: str) -> str:
            sent.append(text)
            return "sent"

        model = ScriptedModel([call("send", text="Hello"), say("Sent.")])
        runtime = runtime_of(repository, model, tools=[build_tool(send, description="Sends.", approval=True)])
        asked = await runtime.run("s1", "Send it.")
        with pytest.raises(ValueError, match=r"asks for an approval.*Answer\('1.0', 'approve'\)"):
            await runtime.run("s1", "Yes!", run_id=asked.run_id)
        (request,) = asked.requests
        await repository.answer(asked.run_id, Answer(request.request, "approve", arguments={"text": "Hello!"}))

        assert (await runtime.run("s1", run_id=asked.run_id)).content == "Sent."
        assert sent == ["Hello!"]

    tried(attempt)


def test_whatever_goes_wrong_is_a_failed_result(tried: Callable[[Try], None]) -> None:
    """item 71: no exception reaches the caller; a tool's error goes to the model, a hiccup of the model is tried again."""

    async def attempt(repository: SessionRepository) -> None:
        failed = await runtime_of(repository, ScriptedLLM(RuntimeError("no such model"))).run("s1", "Go.")
        hiccup = ScriptedLLM(ModelUnavailable("busy", retry_after=0.01), tool_call("1/0"), final("Not possible."))
        through = await runtime_of(repository, hiccup).run("s2", "Go.")

        assert failed.status == "failed"
        assert "RuntimeError: no such model" in failed.content
        assert failed.counters.elapsed_seconds >= 0
        assert (through.status, through.content) == ("completed", "Not possible.")
        assert hiccup.contexts[2][-1].content == "Division by zero."

    tried(attempt)


def test_the_runtime_is_a_machine_of_separated_parts() -> None:
    """item 72: what is decided is pure (tests/unit/test_purity.py); the runtime only says who does what."""
    source = inspect.getsource(AgentRuntime)

    assert "while" not in source
    assert isinstance(runtime_of(MemorySessionRepository(), ScriptedModel([])).agent.run, Callable)


def test_the_adapter_finds_its_server_in_a_file_env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """item 73: key and base_url of an OpenAI-compatible server from `.env`."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    answer = http_answer(chat_reply({"content": "Hello."}))
    with ModelServer(answer) as server:
        (tmp_path / ".env").write_text(f"OPENAI_API_KEY=sk-1\nOPENAI_BASE_URL='{server.url}'\n")
        load_env_file(tmp_path / ".env")
        runtime = runtime_of(MemorySessionRepository(), OpenAIModel("qwen"))
        result: RunResult = asyncio.run(runtime.run("s1", "Hi"))

    assert result.content == "Hello."
    assert server.received[0].headers["authorization"] == "Bearer sk-1"


def test_the_slips_of_the_document_are_not_repeated() -> None:
    """item 75: remaing, _bulid_, _validata_, elapsed_second."""
    folder = Path(agent.documents.__file__).parent
    sources = "".join(path.read_text() for path in folder.glob("*.py"))

    assert re.findall(r"remaing|bulid|validata|elapsed_second\b", sources) == []
    assert RequestedCall(name="x").arguments == {}
