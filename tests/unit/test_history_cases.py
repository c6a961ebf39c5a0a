"""What is sent to a model after trims, crashes, cancels and empty replies, and from texts that UTF-8 cannot carry."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, cast

import pytest
from pydantic import BaseModel

from agent import Agent, Budget, FunctionModel, ModelReply, ModelRequest, OpenAIModel, tool
from agent.context_window import ContextManager
from agent.driver import Driver
from agent.events import ContextCompacted, ModelFailed, RequestOpened, RunCompleted, ToolReturned, encode
from agent.mailbox import Cancel, Departure
from agent.messages import INTERRUPTED, Message, Role
from agent.models.base import RawToolCall
from agent.models.scripted import call, calls, say
from agent.requests import Answer, question_tool
from tests.support import virtual_time
from tests.support.engine import assert_valid
from tests.support.model_server import ModelServer, Received, chat_reply, http_answer
from tests.support.talk import Talk, assert_sendable

SYSTEM = "Answer only in JSON."


class Asked:
    """A model that answers from a script, and keeps every request."""

    def __init__(self, *replies: ModelReply) -> None:
        self.requests: list[ModelRequest] = []
        self._replies = list(replies)
        self.model = FunctionModel(self._answer)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        await asyncio.sleep(1)
        return self._replies.pop(0)

    @property
    def last(self) -> Sequence[Message]:
        """The messages of the newest request."""
        return self.requests[-1].messages

    def check(self) -> None:
        """Every request can be sent."""
        for request in self.requests:
            assert_sendable(request.messages)


@tool(idempotent=True)
async def look(what: str = "", size: int = 10) -> str:
    """Looks."""
    return what + "word " * (size // 5)


def at(second: float, message: Cancel) -> Callable[[Driver], None]:
    return lambda driver: asyncio.get_running_loop().call_later(second, driver.post, message) and None


# ---- case-066 ---------------------------------------------------------------------------------------------------------


def test_a_trim_never_parts_a_call_from_its_result():
    """case-066: the history of the case, in a window in which about the last two messages fit."""
    asked = Asked(call("look", size=4000), calls(call("look", what="a"), call("look", what="b")), say("done"))
    window = ContextManager(max_tokens=500, recent_messages=2, strategy="window")
    result = virtual_time.run(Agent(SYSTEM, tools=[look], model=asked.model, context=window).run("The first task."))

    assert result.output == "done"
    assert [one.event.type for one in result.events].count("context_compacted") >= 1
    asked.check()
    system, *rest = asked.last
    assert (system.content or "").startswith(SYSTEM)
    assert [message.role.value for message in rest] == ["user", "assistant", "tool", "tool"]
    assert rest[0].content == "The first task."


# ---- case-067 ---------------------------------------------------------------------------------------------------------


@tool
async def quick() -> str:
    """Takes a second."""
    await asyncio.sleep(1)
    return "quick result"


@tool
async def slow() -> str:
    """Takes long, and must not be repeated."""
    await asyncio.sleep(60)
    return "slow result"


@tool(idempotent=True)
async def slow_and_safe() -> str:
    """Takes long, and may be repeated."""
    await asyncio.sleep(60)
    return "safe result"


TOOLS = (quick, slow, slow_and_safe)


def results_in(messages: Sequence[Message]) -> list[str | None]:
    return [message.content for message in messages if message.role is Role.TOOL]


@pytest.mark.parametrize(
    ("name", "answered"), [("slow", INTERRUPTED), ("slow_and_safe", "safe result")], ids=["unknown", "again"]
)
def test_a_crash_between_a_call_and_its_result_does_not_break_the_session(name: str, answered: str):
    """case-067: the result that was there is kept, the other is asked for again or said to be unknown."""
    asked = Asked(calls(call("quick"), call(name)), say("done"), say("hello again"))
    talk = Talk(Agent(SYSTEM, tools=TOOLS, model=asked.model))
    talk.begin("task")
    assert talk.activate(crash_after=3) is None, "behind the commit of the quick result"
    assert [event.name for event in talk.record.all_of(ToolReturned)] == ["quick"]
    assert talk.activate() == Departure("completed")
    assert results_in(asked.last) == ["quick result", answered]

    talk.begin("And now?")
    assert talk.activate() == Departure("completed")
    assert results_in(asked.last) == ["quick result", answered]
    asked.check()


def test_a_cancel_between_a_call_and_its_result_does_not_break_the_session():
    """case-067, the variant: a new message of the user comes behind the cancelled run."""
    asked = Asked(calls(call("quick"), call("slow")), say("done"))
    talk = Talk(Agent(SYSTEM, tools=TOOLS, model=asked.model))
    talk.begin("task")
    assert talk.activate(started=at(5, Cancel("user"))) == Departure("cancelled")

    talk.begin("Never mind. And now?")
    assert talk.activate() == Departure("completed")
    asked.check()
    assert results_in(asked.last) == ["quick result", INTERRUPTED]
    assert [message.content for message in asked.last if message.role is Role.USER] == ["task", "Never mind. And now?"]


# ---- case-068 ---------------------------------------------------------------------------------------------------------


def test_an_empty_reply_is_neither_stored_nor_sent():
    """case-068"""
    asked = Asked(say(""), say(" \n"), say("done"), say("done again"))
    talk = Talk(Agent(SYSTEM, model=asked.model))
    talk.begin("task")
    assert talk.activate() == Departure("completed")
    talk.begin("next")
    assert talk.activate() == Departure("completed")
    asked.check()
    assert [message.content for message in asked.last if message.role is Role.ASSISTANT] == ["done"]
    assert not any(message.role is Role.ASSISTANT and not message.content for message in talk.state().messages())


# ---- case-068, case-070: a server with rules of its own --------------------------------------------------------------


class StrictServer(ModelServer):
    """Refuses what strict chat templates refuse. Else it gives its answers in order."""

    refusals = 0

    def answer_to(self, request: Received) -> bytes:
        problem = _problem(cast("list[dict[str, Any]]", request.body["messages"]))
        if problem is None:
            return super().answer_to(request)
        self.refusals += 1
        return http_answer({"error": {"message": problem}}, status=400)


def _problem(messages: list[dict[str, Any]]) -> str | None:
    before = ""
    for position, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "system" and position:
            return "System message must be at the beginning."
        if role == "user" and before == "tool":
            return "Unexpected role 'user' after role 'tool'"
        if role == before and role != "tool":
            return "Conversation roles must alternate user/assistant/user/assistant/..."
        if not content and not message.get("tool_calls"):
            return "messages: text content blocks must be non-empty"
        before = role
    return None


def chat_call(name: str, **arguments: object) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return http_answer(
        chat_reply({"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]})
    )


def chat_text(text: str) -> bytes:
    return http_answer(chat_reply({"content": text}))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(("strict", "refusals"), [(False, 1), (True, 0)])
def test_a_server_that_wants_turns_by_turns_gets_them(strict: bool, refusals: int):
    """case-068, case-070: one refusal, one repair, which is kept; none where the client was told."""
    answers = (chat_call("look", what="", size=0), chat_text(""), chat_call("look"), chat_text("done"))
    with StrictServer(*answers) as server:
        model = OpenAIModel("m", base_url=server.url, strict_turns=strict)
        agent = Agent(SYSTEM, tools=[look], model=model, budget=Budget(max_steps=5))
        result = asyncio.run(agent.run("task"))  # the budget's notes stand behind results of tools
    assert result.output == "done"
    assert server.refusals == refusals
    failed = [one.event for one in result.events if isinstance(one.event, ModelFailed)]
    assert [event.usage.model_calls for event in failed] == [0] * refusals
    sent = cast("list[dict[str, Any]]", server.received[-1].body["messages"])
    assert [message["role"] for message in sent if message["role"] == "tool"] == ["tool", "tool"]
    assert sent[1] == {"role": "user", "content": "task"}


# ---- case-071 ---------------------------------------------------------------------------------------------------------


class Count(BaseModel):
    """A typed result."""

    files: int


@pytest.mark.parametrize("strategy", ["window", "summary", "llm_summary"])
def test_a_compaction_keeps_the_instructions_the_tasks_and_the_recent_rounds(strategy: str):
    """case-071: two tasks, twelve rounds each."""
    rounds = [call("look", what=f"round {number} ", size=600) for number in range(24)]
    end = call("terminate", files=3)
    summaries = iter(range(100))

    def reply(request: ModelRequest) -> ModelReply:
        requests.append(request)
        if request.purpose == "summary":
            return say(f"summary {next(summaries)}")
        return script.pop(0)

    requests: list[ModelRequest] = []
    script = [*rounds[:12], end, *rounds[12:], end]
    window = ContextManager(max_tokens=1_200, recent_messages=6, strategy=strategy)  # pyright: ignore[reportArgumentType]
    talk = Talk(Agent(SYSTEM, tools=[look], model=FunctionModel(reply), context=window, output_schema=Count))
    for task in ("count files in A", "use a timeout"):
        talk.begin(task)
        assert talk.activate() == Departure("completed")
        assert talk.record.all_of(ContextCompacted)

    for request in requests:
        assert_sendable(request.messages)
    last = requests[-1]
    system, *rest = last.messages
    assert (system.content or "").startswith(SYSTEM)
    assert "count files in A" in (system.content or "")
    assert rest[0].content == "use a timeout"
    assert [message.content for message in rest if message.role is Role.TOOL][-1] == "round 23 " + "word " * 120
    (exit_tool,) = [one for one in last.tools if one.name == "terminate"]
    assert "files" in cast("dict[str, object]", exit_tool.parameters["properties"])
    if strategy == "llm_summary":
        newest = talk.record.all_of(ContextCompacted)[-1].summary
        assert (system.content or "").count("summary ") == 1
        assert newest in (system.content or "")


def test_the_form_of_the_result_survives_a_compaction_in_every_dialect():
    """case-071"""
    for dialect in ("json", "react"):
        requests: list[ModelRequest] = []

        def reply(request: ModelRequest, kept: list[ModelRequest] = requests, spoken: str = dialect) -> ModelReply:
            kept.append(request)
            if request.step > 8:
                return say(
                    '{"tool": "terminate", "arguments": {"files": 3}}'
                    if spoken == "json"
                    else 'Final Answer: {"files": 3}'
                )
            arguments = json.dumps({"what": f"round {request.step} ", "size": 900})
            return say(
                f'{{"tool": "look", "arguments": {arguments}}}'
                if spoken == "json"
                else f"Action: look\nAction Input: {arguments}"
            )

        window = ContextManager(max_tokens=1_200, recent_messages=4)
        agent = Agent(
            SYSTEM, tools=[look], model=FunctionModel(reply), context=window, output_schema=Count, dialect=dialect
        )
        result = virtual_time.run(agent.run("count files in A"))
        assert result.output == Count(files=3)
        assert any(isinstance(one.event, ContextCompacted) for one in result.events)
        words = requests[-1].messages[0].content or ""
        assert words.startswith(SYSTEM)
        assert '"files"' in words
        assert any("count files in A" in (message.content or "") for message in requests[-1].messages[1:])


# ---- case-074 ---------------------------------------------------------------------------------------------------------

BROKEN = "a\udc9db \ud83d c" + "\U0001f680"


@tool
def ls(folder: str = "") -> str:
    """List."""
    return BROKEN


@tool
def fails() -> str:
    """Fails."""
    raise OSError(f"no such file: {BROKEN}")


def test_text_that_utf8_cannot_carry_is_mended_at_every_border():
    """case-074: the task, arguments, results, errors, the model's text, a person's reply, the result."""
    asked = Asked(
        ModelReply(
            content=f"thinking {BROKEN}",
            tool_calls=(RawToolCall("ls", {"folder": BROKEN}, id="\ud83d"), RawToolCall("fails", "{}")),
            finish_reason="tool_calls\ud83d",
            model="m\ud83d",
        ),
        call("ask_user", question=f"Which {BROKEN}?"),
        say(f"done {BROKEN}"),
    )
    agent = Agent(SYSTEM, tools=[ls, fails, question_tool()], model=asked.model)

    async def reply(request: Any) -> Any:
        return Answer(request.request, "reply", text=f"the first {BROKEN}")

    result = virtual_time.run(agent.run(f"x {BROKEN} y", answer=reply))
    for one in result.events:
        encode(one.event)
    asked.check()
    assert result.output == "done a\ufffdb \ufffd c\U0001f680"
    for message in asked.last:
        (message.content or "").encode()
    assert results_in(asked.last)[0] == "a\ufffdb \ufffd c\U0001f680"
    assert results_in(asked.last)[-1] == "the first a\ufffdb \ufffd c\U0001f680"
    assert_valid(asked.last[1:])


@pytest.mark.parametrize(
    "answer",
    [
        Answer("1.0", "approve", arguments={BROKEN: BROKEN, "folder": [BROKEN]}),
        Answer("1.0", "reject", text=BROKEN),
        Answer("1.0", "expired", text=BROKEN),
    ],
)
@pytest.mark.parametrize("dialect", ["tools", "json", "react"])
def test_what_a_person_says_may_be_text_that_utf8_cannot_carry(dialect: str, answer: Answer):
    """case-074: changed arguments and reasons, in every dialect."""

    @tool(approval=True)
    def lists(folder: str = "") -> str:
        """Lists."""
        return folder

    replies = {
        "tools": (call("lists"), say("done")),
        "json": (
            say('{"tool": "lists", "arguments": {}}'),
            say('{"tool": "terminate", "arguments": {"result": "done"}}'),
        ),
        "react": (say("Action: lists\nAction Input: {}"), say("Final Answer: done")),
    }
    asked = Asked(*replies[dialect])

    async def reply(_: RequestOpened) -> Answer:
        return answer

    agent = Agent(SYSTEM, tools=[lists], model=asked.model, dialect=dialect)
    result = virtual_time.run(agent.run("go", answer=reply))
    assert result.output == "done"
    for one in result.events:
        encode(one.event)
    for message in asked.last:
        json.dumps(asdict(message), ensure_ascii=False).encode()


def test_a_summary_may_be_text_that_utf8_cannot_carry():
    """case-074: its text, and all that a model's client says beside it."""

    def reply(request: ModelRequest) -> ModelReply:
        if request.purpose == "summary":
            return ModelReply(content=f"summary {BROKEN}", model=BROKEN, finish_reason=BROKEN)
        return call("look", size=900) if request.step < 6 else say("done")

    window = ContextManager(max_tokens=1_000, recent_messages=4, strategy="llm_summary")
    result = virtual_time.run(Agent(SYSTEM, tools=[look], model=FunctionModel(reply), context=window).run("go"))
    compacted = [one.event for one in result.events if isinstance(one.event, ContextCompacted)]
    assert compacted
    for event in compacted:
        assert event.model == event.summary.removeprefix("summary ") == "a\ufffdb \ufffd c\U0001f680"


def test_a_terminal_tool_and_a_validator_may_return_what_utf8_cannot_carry():
    """case-074"""

    @tool(terminal=True)
    def finish() -> dict[str, list[str]]:
        """Ends it."""
        return {BROKEN: [BROKEN]}

    ended = virtual_time.run(Agent(SYSTEM, tools=[finish], model=Asked(call("finish")).model).run("go"))
    assert ended.output == {"a\ufffdb \ufffd c\U0001f680": ["a\ufffdb \ufffd c\U0001f680"]}
    broken = Agent(SYSTEM, model=Asked(say("done")).model, output_validators=[lambda text: f"{text} {BROKEN}"])
    last = virtual_time.run(broken.run("go")).events[-1].event
    assert isinstance(last, RunCompleted)
    encode(last)


def test_no_cut_parts_an_emoji():
    """case-074: a preview, a summary and a cut result, at every length."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"

    @tool
    def album(before: int) -> str:
        """Shows families."""
        return "x" * before + family * 40

    for before in range(len(family)):
        asked = Asked(call("album", before=before), say("done"))
        window = ContextManager(result_preview=100)
        virtual_time.run(Agent(SYSTEM, tools=[album], model=asked.model, context=window).run("go"))
        (shown,) = results_in(asked.last)
        assert shown is not None
        pictures = shown.partition("\n[…")[0].lstrip("x")
        assert pictures == family * (len(pictures) // len(family))
        assert len(pictures) > 80
