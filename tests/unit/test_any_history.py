"""Whatever happens to the runs of a session, every request is one that a model's server takes.

Crashes before and behind commits, cancels, hand-overs, approvals, rejections and replies, replies of nothing, calls that are
none, failures, budgets that end, compactions: in any order, over several runs.
"""

import asyncio
import itertools
import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from agent import Agent, Approval, Budget, FunctionModel, ModelReply, ModelRequest, tool
from agent.context_window import ContextManager
from agent.conversation import tokens_of
from agent.driver import Driver
from agent.errors import ModelRefusedRequest, ModelUnavailable
from agent.events import ContextCompacted, Remembered
from agent.mailbox import Cancel, Leave
from agent.messages import Role
from agent.models.base import RawToolCall
from agent.models.scripted import call, calls, say
from agent.requests import Answer, question_tool, remember_tool
from tests.support.talk import ENDED, RESUMABLE, Talk, assert_sendable, some

MAX_TOKENS = 1_500
RUNS = 4
MOST_ACTIVATIONS = 30


@tool(idempotent=True)
async def note(text: str) -> str:
    """Notes."""
    await asyncio.sleep(1)
    return text * 300


@tool
async def pay(amount: int = 1) -> str:
    """Pays."""
    await asyncio.sleep(2)
    return "" if amount > 1 else "paid"


@tool(approval=Approval())
async def send(text: str = "") -> str:
    """Sends."""
    return "sent \ud83d" + text


@tool(on_unknown="ask")
async def launch() -> str:
    """Launches."""
    await asyncio.sleep(1)
    raise RuntimeError("down \udc9d")


def _one_call(luck: random.Random) -> ModelReply:
    return some(
        luck,
        (4, call("note", text=luck.choice(["a ", "\U0001f680", "word "]))),
        (3, call("pay")),
        (1, call("pay", amount=2)),
        (2, call("send")),
        (1, call("launch")),
        (1, call("ask_user", question="Which one?")),
        (1, call("remember", text="blue")),
        (1, call("no_such_tool")),
        (1, call("note", number=1)),
        (1, ModelReply(tool_calls=(RawToolCall("note", '{"text": "x', "same"),), finish_reason="length")),
    )


def _reply(luck: random.Random) -> ModelReply | Exception:
    return some(
        luck,
        (8, calls(*(_one_call(luck) for _ in range(luck.randint(1, 4))))),
        (1, say("done")),
        (1, say("")),
        (1, say("  \n")),
        (1, ModelReply(content="cut", finish_reason="length")),
        (1, ModelReply(content=None, finish_reason="tool_calls")),
        (1, ModelUnavailable("busy \udc9d")),
        (1, ModelRefusedRequest("never")),
    )


def _check(request: ModelRequest) -> None:
    assert_sendable(request.messages)
    assert sum(tokens_of(message) for message in request.messages) <= MAX_TOKENS
    said = [message.content or "" for message in request.messages if message.role is Role.USER]
    assert request.purpose == "summary" or any("task" in text for text in said), "the task at work is always there"


def _agent(luck: random.Random, heard: Callable[[ModelRequest], None]) -> Agent[str]:
    async def answer(request: ModelRequest) -> ModelReply:
        heard(request)
        await asyncio.sleep(1)
        if request.purpose == "summary":
            return some(luck, (3, say("summary")), (1, say("")), (1, None)) or ModelReply(content=None)
        reply = _reply(luck)
        if isinstance(reply, Exception):
            raise reply
        return reply

    context = ContextManager(
        max_tokens=MAX_TOKENS, recent_messages=6, strategy=luck.choice(["window", "summary", "llm_summary"])
    )
    tools = [note, pay, send, launch, question_tool(), remember_tool()]
    return Agent("Do it.", tools=tools, model=FunctionModel(answer), context=context, max_attempts=2)


def _answer(luck: random.Random, request: str, asked: str) -> Answer:
    if asked == "clarification":
        return Answer(request, some(luck, (3, "reply"), (1, "expired")), text="the first")
    edited: object = some(luck, (4, None), (2, {"text": "edited"}), (1, {"wrong": 1}))
    return Answer(request, some(luck, (3, "approve"), (2, "reject"), (1, "expired")), text="no", arguments=edited)  # pyright: ignore[reportArgumentType]


def _live(talk: Talk, luck: random.Random) -> None:
    """One run, over whatever happens to it, to its end."""
    status = "queued"
    for _ in range(MOST_ACTIVATIONS):
        answers: list[Answer] = []
        if status == "waiting":
            exchange = talk.state().exchange
            asked = (
                [one.request for one in exchange.calls.values() if one.request and not one.answer] if exchange else []
            )
            answers = [_answer(luck, one.request, one.kind) for one in luck.sample(asked, min(len(asked), 1))]
        happens: dict[str, object] = some(
            luck,
            (4, {}),
            (2, {"crash_before": luck.randint(1, 6)}),
            (2, {"crash_after": luck.randint(1, 6)}),
            (1, {"started": _at(luck.uniform(0, 6), Cancel("user"))}),
            (1, {"started": _at(luck.uniform(0, 6), Leave("drain", at_once=True))}),
        )
        departure = talk.activate(answers=answers, **happens)  # pyright: ignore[reportArgumentType]
        status = departure.status if departure else "queued"
        if status in RESUMABLE and luck.random() < 0.5:
            talk.resume()
            status = "queued"
        if status in ENDED:
            return
    talk.activate(started=_at(0, Cancel("user")))


def _at(second: float, message: Cancel | Leave) -> Callable[[Driver], None]:
    return lambda driver: asyncio.get_running_loop().call_later(second, driver.post, message) and None


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_every_request_of_any_session_can_be_sent(seed: int):
    luck = random.Random(seed)
    asked: list[ModelRequest] = []
    forgotten: list[ModelRequest] = []

    def hear(request: ModelRequest) -> None:
        asked.append(request)
        remembered = any(record.all_of(Remembered) for record in talk.runs.values())
        if request.purpose == "step" and remembered and "- blue" not in (request.messages[0].content or ""):
            forgotten.append(request)

    talk = Talk(_agent(luck, hear))
    for number in range(RUNS):
        talk.begin(f"task {number}", Budget(max_steps=luck.choice([3, 8, 50])))
        _live(talk, luck)
    for request in asked:
        _check(request)
    assert not forgotten, "what was to be remembered is in every later request"
    positions: list[tuple[int, int]] = []
    runs = list(talk.runs)
    for number, record in enumerate(talk.runs.values()):
        for event in record.all_of(ContextCompacted):
            positions.append((runs.index(event.run) if event.run else number, event.offset))
    assert all(before < after for before, after in itertools.pairwise(positions)), "each message is summarised once"
