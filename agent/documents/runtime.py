"""A runtime: runs of sessions, driven in the calling process by one call each.

    runtime = AgentRuntime(repository, llm="openai:gpt-4o", tool_registry=registry, system_instruction="Help.")
    result = await runtime.run("s1", "Which of my orders is late?")
    if result.status == "waiting":
        result = await runtime.run("s1", "The second one.", run_id=result.run_id)

It is a machine of states with separated parts: the repository keeps, the context manager selects, the model says what comes
next, tools are executed, and the engine decides, within the budget. With `worker.session_repository.StoredSessions` each run is
a durable one: if this process dies, any worker that has the agent goes on with it, and so does the next `run(run_id=...)`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, cast

from agent.agent import Agent
from agent.budget import Budget
from agent.conversation import ContextState
from agent.documents.messages import Message
from agent.documents.runtime_context import ContextManager
from agent.documents.runtime_llm import ASK_USER, LLM, LLMModel, LLMResponse, RequestedCall
from agent.documents.runtime_memory import MemorySessionRepository
from agent.documents.runtime_sessions import (
    ENDED,
    Run,
    Session,
    SessionRepository,
    Status,
    StoredCheckpoint,
    StoredEvent,
)
from agent.documents.runtime_tools import (
    SessionContext,
    Tool,
    ToolContext,
    ToolDefinition,
    ToolRegistry,
    ToolResult,
    definition_of,
)
from agent.events import RequestOpened, RunCompleted
from agent.models.base import ModelClient
from agent.report import Observer
from agent.requests import Answer, question_tool
from agent.result import error_of
from agent.state import Checkpoint

__all__ = [
    "LLM",
    "AgentRuntime",
    "ContextManager",
    "ContextState",
    "LLMResponse",
    "MemorySessionRepository",
    "Message",
    "RequestedCall",
    "Run",
    "RunResult",
    "RuntimeCounters",
    "Session",
    "SessionRepository",
    "StoredCheckpoint",
    "StoredEvent",
    "Tool",
    "ToolContext",
    "ToolDefinition",
    "ToolRegistry",
    "ToolResult",
    "definition_of",
]

BUDGET: Final = Budget(max_steps=20, max_tool_calls=40, max_active_seconds=300)
"""The limits of a run where nobody says others."""


@dataclass(frozen=True, slots=True)
class RuntimeCounters:
    """What a run has used so far, over all its calls.

    Attributes:
        loop_count: Model replies.
        elapsed_seconds: Seconds in which somebody moved it; waiting does not count.
        last_sequence: The number of its newest event.
    """

    loop_count: int = 0
    tool_call_count: int = 0
    elapsed_seconds: float = 0.0
    last_sequence: int = 0

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> RuntimeCounters:
        """The counters that a checkpoint holds."""
        usage = checkpoint.usage
        return cls(checkpoint.step, usage.tool_calls, usage.active_ms / 1000, checkpoint.seq)


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a run stands behind a call.

    Attributes:
        status: `completed`, `waiting` for a person, or how else it ended.
        content: The answer; the question, where it waits for one; what went wrong, where something did.
        output: The result as JSON, where it is completed.
        requests: What it asks of a person.
        counters: What it has used.
        trace_id: Of this call; the events that happened in it carry it.
    """

    session_id: str
    run_id: str
    status: Status
    content: str
    output: object
    requests: tuple[RequestOpened, ...]
    counters: RuntimeCounters
    trace_id: str


class AgentRuntime:
    """Drives runs of one agent in the calling process.

    Args:
        repository: Where sessions are kept.
        context_manager: How much of a session the model reads.
        llm: A model's name, a model client, or an `LLM`.
        tool_registry: The tools; `ask_user` is added, by which the model asks for a clarification.
        system_instruction: Who the model is, and its rules.
        budget: The limits of each run: loops, tool calls, seconds, tokens, money.
        name: The agent's name in the record.

    Attributes:
        agent: The same agent for the engine: what `agent.run()` and workers move.

    Raises:
        AgentDefinitionError: It cannot work as declared.
    """

    def __init__(
        self,
        repository: SessionRepository,
        *,
        llm: str | ModelClient | LLM,
        tool_registry: ToolRegistry | None = None,
        system_instruction: str = "",
        context_manager: ContextManager | None = None,
        budget: Budget = BUDGET,
        name: str = "runtime",
        dialect: str = "tools",
    ) -> None:
        self.repository = repository
        self.context_manager = context_manager or ContextManager()
        self.llm = llm
        self.tool_registry = tool_registry or ToolRegistry()
        self.system_instruction = system_instruction
        actions = self.tool_registry.actions.copy()
        if actions.get_tool(ASK_USER) is None:
            actions.register(question_tool(ASK_USER))
        self.agent = Agent(
            system_instruction,
            name=name,
            tools=actions,
            model=_model_of(llm),
            dialect=dialect,
            budget=budget,
            action_context=SessionContext(repository=repository),
            context=self.context_manager.window,
        )

    async def run(
        self,
        session_id: uuid.UUID | str,
        user_message: str | None = None,
        run_id: str | None = None,
        *,
        observer: Observer | None = None,
    ) -> RunResult:
        """Begins a run, or goes on with one, and moves it until it has ended or waits for a person.

        Args:
            session_id: The conversation; one that nobody knows yet is a new one.
            user_message: The task of a new run; the answer to what a waiting run asks.
            run_id: The run to go on with: one that waits, or that lost the process that moved it.
            observer: Hears of every step.

        Returns:
            Also where it failed or reached a limit: a run that has begun raises nothing.

        Raises:
            ValueError: There is no such run in the session, it has ended, or there is no task.
            Conflict: The session is busy with another run.
            StoreUnavailable: The store cannot be reached.
        """
        trace_id = str(uuid.uuid4())
        session = str(session_id)
        await self.repository.init()
        if run_id is None:
            if user_message is None:
                raise ValueError("a new run needs a task: pass user_message")
            run_id = await self.repository.create_run(session, user_message, self.agent, trace_id=trace_id)
        elif not await self._goes_on(run_id, session, user_message):
            return await self._result(run_id, session, trace_id)
        await self.repository.advance(run_id, self.agent, trace_id=trace_id, observer=observer)
        return await self._result(run_id, session, trace_id)

    async def _goes_on(self, run_id: str, session: str, user_message: str | None) -> bool:
        """Answers what a run asks, where it asks something. Whether there is anything to move then."""
        run = await self._existing(run_id, session)
        if run.status in ENDED:
            raise ValueError(f"Run {run_id} is terminal and cannot be resumed: it is {run.status}")
        questions = [request for request in run.requests if request.kind == "clarification"]
        if user_message is None:
            return run.status != "waiting"
        if not questions and run.requests:
            asked = run.requests[0].request
            raise ValueError(
                f"Run {run_id} asks for an approval, and a message is none: await repository.answer({run_id!r}, "
                f"Answer({asked!r}, 'approve')), or 'reject' with a reason, then run(session_id, run_id=...)"
            )
        if not questions:
            raise ValueError(f"Run {run_id} asks nothing: a message is the task of a new run, or an answer")
        await self.repository.answer(run_id, Answer(questions[0].request, "reply", user_message))
        return True

    async def _existing(self, run_id: str, session: str) -> Run:
        run = await self.repository.get_run(run_id, session)
        if run is None:
            raise ValueError(f"Run not found: {run_id}")
        return run

    async def _result(self, run_id: str, session: str, trace_id: str) -> RunResult:
        run = await self._existing(run_id, session)
        checkpoint = await self.repository.get_checkpoint(run_id)
        return RunResult(
            session_id=session,
            run_id=run_id,
            status=run.status,
            content=_content(run),
            output=run.ending.output if isinstance(run.ending, RunCompleted) else None,
            requests=run.requests,
            counters=RuntimeCounters.of(checkpoint.state) if checkpoint else RuntimeCounters(),
            trace_id=trace_id,
        )


def _content(run: Run) -> str:
    if isinstance(run.ending, RunCompleted):
        return str(run.ending.output)
    if run.ending is not None:
        return str(error_of(run.ending, run.id))
    return "\n".join(request.question for request in run.requests)


def _model_of(llm: str | ModelClient | LLM) -> str | ModelClient:
    """The engine's model client: only that knows what its tokens cost."""
    if isinstance(llm, str) or hasattr(llm, "price"):
        return cast("str | ModelClient", llm)
    return LLMModel(cast(LLM, llm))
