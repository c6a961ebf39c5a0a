"""What of a long conversation a model reads."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import Agent, AgentDefinitionError, Budget, BudgetExceeded, FunctionModel, ModelReply, ModelRequest, tool
from agent.context_window import SUMMARY_CHARACTERS, ContextManager, summarised
from agent.conversation import NO_CONTEXT, ContextState, Conversation, EarlierRun, tokens_of
from agent.errors import ModelRefusedRequest
from agent.events import ContextCompacted, ModelFailed, Recorded, RunCreated
from agent.mailbox import Cancel, Departure
from agent.messages import Message, Role, ToolCall
from agent.models.scripted import call, say
from agent.result import RunResult
from agent.state import Checkpoint, RunState
from tests.support.engine import assert_valid
from tests.support.talk import RUNS_REMEMBERED, Talk

MAX_TOKENS = 1500


@tool(idempotent=True)
async def look(page: int) -> str:
    """Looks at a page."""
    return f"page {page} " + "of many words " * 90


asked: list[ModelRequest] = []


def long_run(context: ContextManager, steps: int = 40, **budget: int) -> tuple[RunResult[str], list[ModelRequest]]:
    seen = asked
    seen.clear()

    def reply(request: ModelRequest) -> ModelReply:
        seen.append(request)
        if request.purpose == "summary":
            return say(f"summary number {sum(one.purpose == 'summary' for one in seen)}")
        return call("look", page=request.step) if request.step < steps else say("done")

    agent = Agent("Look.", tools=[look], model=FunctionModel(reply), context=context)
    limits = Budget(max_steps=steps + 10, **budget)  # pyright: ignore[reportArgumentType]
    return asyncio.run(agent.run("The task: look at all pages.", budget=limits)), list(seen)


def size_of(request: ModelRequest) -> int:
    return sum(tokens_of(message) for message in request.messages)


def compactions(result: RunResult[str]) -> list[ContextCompacted]:
    return [one.event for one in result.events if isinstance(one.event, ContextCompacted)]


@pytest.mark.parametrize("strategy", ["window", "summary", "llm_summary"])
def test_no_request_is_larger_and_the_task_is_always_there(strategy: str):
    result, seen = long_run(ContextManager(max_tokens=MAX_TOKENS, recent_messages=8, strategy=strategy))  # pyright: ignore[reportArgumentType]
    assert result.output == "done"
    assert max(size_of(request) for request in seen) <= MAX_TOKENS
    steps = [request for request in seen if request.purpose == "step"]
    for request in steps:
        assert any("look at all pages" in (message.content or "") for message in request.messages)
        assert_valid([message for message in request.messages if message.role is not Role.SYSTEM])
    offsets = [event.offset for event in compactions(result)]
    assert offsets == sorted(set(offsets)), "each message leaves the window once"
    assert len(offsets) > 1


def test_a_summary_holds_the_beginning_of_each_message_once():
    result, seen = long_run(ContextManager(max_tokens=3000, recent_messages=20), steps=14)
    words = "\n".join(message.content or "" for message in seen[-1].messages)
    for page in range(1, 14):
        assert words.count(f"page {page} of many") == 1, page
    assert len(compactions(result)) >= 1


def test_a_model_that_writes_no_summary_does_not_end_the_run():
    """The beginnings of the messages serve instead."""
    refused: list[int] = []

    def reply(request: ModelRequest) -> ModelReply:
        if request.purpose == "summary":
            refused.append(request.step)
            raise ModelRefusedRequest("no summaries here", status=400)
        return call("look", page=request.step) if request.step < 20 else say("done")

    window = ContextManager(max_tokens=MAX_TOKENS, recent_messages=8, strategy="llm_summary")
    agent = Agent("Look.", tools=[look], model=FunctionModel(reply), context=window)
    result = asyncio.run(agent.run("The task: look at all pages."))
    assert result.output == "done"
    assert len(compactions(result)) == len(refused) > 0
    assert all("page" in event.summary for event in compactions(result))


def test_a_summary_by_the_model_counts_and_is_not_bought_with_the_last_call():
    result, seen = long_run(ContextManager(max_tokens=MAX_TOKENS, recent_messages=8, strategy="llm_summary"))
    bought = [event for event in compactions(result) if event.usage.model_calls]
    assert len(bought) == sum(request.purpose == "summary" for request in seen) > 0
    assert result.usage.model_calls == len(seen)
    assert "summary number" in (seen[-1].messages[0].content or "")
    assert result.steps == 40, "a summary is no step"


def test_the_last_call_is_kept_for_the_answer():
    window = ContextManager(max_tokens=MAX_TOKENS, recent_messages=8, strategy="llm_summary")
    for calls in range(2, 30):
        with pytest.raises(BudgetExceeded):
            long_run(window, max_model_calls=calls)
        assert asked[-1].purpose == "step", calls


def test_replay_gives_the_same_window():
    result, _ = long_run(ContextManager(max_tokens=MAX_TOKENS, recent_messages=8))
    whole = RunState.restore(Checkpoint(), result.events)
    half = RunState.restore(Checkpoint(), result.events[:30])
    again = RunState.restore(half.head, result.events)
    assert (whole.conversation, whole.context) == (again.conversation, again.context)
    assert whole.conversation.window > 0


def test_earlier_runs_stand_in_front_from_the_position_on():
    old = EarlierRun("r1", [Message(role=Role.USER, content=f"old {n}") for n in range(4)], ["blue"])
    conversation = Conversation()
    context = ContextState(first_task="old 0", summary="what was", run="r1", offset=3)
    conversation.begin_behind([old], context)
    conversation.append(Message(role=Role.USER, content="new"))
    assert [message.content for message in conversation.messages] == ["old 3", "new"]
    assert conversation.position_of(0) == ("r1", 3)
    assert conversation.position_of(1) == ("r1", 4), "so that the session knows it, whatever becomes of this run"
    assert conversation.position_of(2) == ("", 1)
    assert conversation.index_of("r1", 4) == 1
    assert conversation.index_of("gone", 7) == 0
    (front, *_) = ContextManager().build(conversation, context, 0)
    assert "old 0" in (front.content or "")
    assert "what was" in (front.content or "")


def test_call_ids_of_earlier_runs_do_not_meet():
    exchange = [
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="call_1_0", name="look"),)),
        Message(role=Role.TOOL, tool_call_id="call_1_0", name="look", content="x"),
    ]
    conversation = Conversation()
    conversation.begin_behind([EarlierRun("r1", exchange), EarlierRun("r2", exchange)], NO_CONTEXT)
    assert_valid(conversation.messages)


def test_one_message_beyond_the_window_is_cut_and_not_left_out():
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="word " * 5000))
    window = ContextManager(max_tokens=600)
    built = window.build(conversation, NO_CONTEXT, 50)
    assert sum(tokens_of(message) for message in built) <= 550
    assert window.due(conversation, NO_CONTEXT, 50) is None, "what does not shrink stops itself"


def with_exchange(conversation: Conversation, number: int, calls: int, text: str) -> None:
    made = tuple(ToolCall(id=f"c{number}.{n}", name="look") for n in range(calls))
    conversation.append(Message(role=Role.ASSISTANT, tool_calls=made))
    for one in made:
        conversation.append(Message(role=Role.TOOL, tool_call_id=one.id, name="look", content=text))


def test_the_newest_exchange_stays_however_many_messages_it_has():
    """case-066: more calls in one reply than recent messages; what is before them can leave all the same."""
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="the task"))
    with_exchange(conversation, 1, 8, "word " * 200)
    with_exchange(conversation, 2, 8, "word " * 200)
    window = ContextManager(max_tokens=1500, recent_messages=4)
    index = window.due(conversation, NO_CONTEXT, 50)
    assert index == 10
    conversation.move_window(index)
    assert window.due(conversation, NO_CONTEXT, 50) is None, "it stops itself"
    built = window.build(conversation, NO_CONTEXT, 50)
    assert_valid(built)
    assert sum(tokens_of(message) for message in built) <= 1450


@pytest.mark.parametrize("text", ["word ", "{}[];", "12345 ", "\u4e2d\u6587", "\U0001f680", "a\n\n"])
def test_whatever_is_cut_fits(text: str):
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="go"))
    with_exchange(conversation, 1, 3, text * 3000)
    window = ContextManager(max_tokens=800)
    built = window.build(conversation, NO_CONTEXT, 50)
    assert_valid(built)
    assert sum(tokens_of(message) for message in built) <= 750
    assert sum(tokens_of(message) for message in built) > 400, "no more is cut than has to be"


def test_what_is_known_leaves_room_however_much_it_is():
    """The task at work, the first task, the summary and the memory are cut to their shares of the window."""
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="TASK " + "work " * 5000))
    with_exchange(conversation, 1, 1, "word " * 300)
    conversation.move_window(1)
    context = ContextState(
        first_task="FIRST " + "old " * 5000,
        summary=summarised("", [Message(role=Role.USER, content="sum " * 5000)] * 100, 2000),
        memory=tuple(f"fact {number} " + "x " * 100 for number in range(50)),
    )
    window = ContextManager(max_tokens=1500)
    built = window.build(conversation, context, 50)
    assert sum(tokens_of(message) for message in built) <= 1450
    words = "\n".join(message.content or "" for message in built)
    for said in ("TASK", "FIRST", "sum ", "fact 49", "word word"):
        assert said in words


def test_a_long_task_stays_whole_where_there_is_room():
    """case-071"""
    task = "Answer only in JSON. " * 400 + "THE END"
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content=task))
    with_exchange(conversation, 1, 1, "found")
    conversation.move_window(1)
    built = ContextManager(max_tokens=20_000).build(conversation, ContextState(first_task=task), 50)
    assert [message.content for message in built if message.role is Role.USER] == [task]
    assert all(message.role is not Role.SYSTEM for message in built), "the task is said once"


@pytest.mark.parametrize("wrong", [{"max_tokens": 100}, {"recent_messages": 1}])
def test_a_window_that_could_hold_nothing_is_refused(wrong: dict[str, int]):
    with pytest.raises(AgentDefinitionError):
        ContextManager(**wrong)  # pyright: ignore[reportArgumentType]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2000)), min_size=1, max_size=40), st.integers(500, 3000))
def test_a_window_never_parts_an_exchange(turns: list[tuple[int, str]], max_tokens: int):
    conversation = Conversation()
    conversation.append(Message(role=Role.USER, content="the task"))
    for number, (calls, text) in enumerate(turns):
        made = tuple(ToolCall(id=f"c{number}.{n}", name="look") for n in range(calls))
        conversation.append(Message(role=Role.ASSISTANT, content=text or "?", tool_calls=made))
        for one in made:
            conversation.append(Message(role=Role.TOOL, tool_call_id=one.id, name="look", content=text))
    window = ContextManager(max_tokens=max_tokens, recent_messages=6)
    context = NO_CONTEXT
    index = window.due(conversation, context, 50)
    if index is not None:
        conversation.move_window(window.compact(conversation, context, index).index)
        assert window.due(conversation, context, 50) != index
    assert_valid([message for message in window.build(conversation, context, 50) if message.role is not Role.SYSTEM])
    assert conversation.window_tokens == sum(conversation.sizes[conversation.window :])


@given(st.lists(st.text(max_size=500), max_size=40))
def test_a_summary_is_bounded(texts: list[str]):
    summary = ""
    for text in texts:
        summary = summarised(summary, [Message(role=Role.USER, content=text)])
        assert len(summary) <= SUMMARY_CHARACTERS


@given(st.lists(st.text("ab \n", max_size=80), max_size=40), st.integers(1, 400))
def test_a_summary_keeps_the_newest_whole_lines(texts: list[str], limit: int):
    summary = summarised("so far\nand more", [Message(role=Role.USER, content=text) for text in texts], limit)
    lines = ["so far", "and more", *(f"user: {' '.join(text.split())}" for text in texts if text.split())]
    kept = summary.split("\n") if summary else []
    assert kept == lines[len(lines) - len(kept) :]
    left_out = lines[: len(lines) - len(kept)]
    assert len(summary) <= limit
    assert not left_out or len("\n".join([left_out[-1], *kept])) > limit, "one more had found room"


def test_what_is_remembered_is_bounded():
    context = NO_CONTEXT
    for number in range(300):
        context = context.remembering([f"fact {number}", "fact 299"])
    assert len(context.memory) == 200
    assert context.memory[0] == "fact 100"


def test_recorded_events_carry_the_position():
    event = Recorded(seq=1, at=0, event=ContextCompacted(run="r", offset=2, summary="s"))
    assert event.event == ContextCompacted(run="r", offset=2, summary="s")


def test_what_a_server_reports_moves_the_border():
    conversation = Conversation()
    for number in range(20):
        conversation.append(Message(role=Role.USER, content=f"{number} " + "word " * 100))
    window = ContextManager(max_tokens=conversation.window_tokens)
    assert window.due(conversation, NO_CONTEXT, 0) is None
    assert window.measured_in_estimates(1.2).due(conversation, NO_CONTEXT, 0) is not None
    generous = ContextManager(max_tokens=int(conversation.window_tokens * 0.9)).measured_in_estimates(0.8)
    assert generous.due(conversation, NO_CONTEXT, 0) is None
    assert generous.build(conversation, NO_CONTEXT, 0) == conversation.messages, "what fits is not cut"
    assert ContextManager(max_tokens=600).measured_in_estimates(4.0).max_tokens == 500


def test_short_runs_are_summarised_before_the_session_has_no_place_for_them():
    talk = Talk(Agent("Do it.", model=FunctionModel(lambda request: say("done"))))
    for number in range(120):
        talk.begin(f"task {number}")
        talk.activate()
    position = list(talk.runs).index(talk.context.run)
    assert len(talk.runs) - position < RUNS_REMEMBERED
    assert talk.context.first_task == "task 0"
    moved = [list(talk.runs).index(event.run) for one in talk.runs.values() for event in one.all_of(ContextCompacted)]
    assert moved == sorted(set(moved))
    assert len(moved) < 10, "not at every run"


def test_a_run_is_cancelled_while_its_conversation_is_summarised():
    """case-125: the call for the summary is charged, and the next run of the session has all that was said."""
    purposes: list[str] = []

    async def reply(request: ModelRequest) -> ModelReply:
        purposes.append(request.purpose)
        if request.purpose == "summary":
            await asyncio.sleep(1_000)
        return call("look", page=request.step) if request.run_id == "r1" else say("done")

    context = ContextManager(max_tokens=MAX_TOKENS, recent_messages=4, strategy="llm_summary")
    talk = Talk(Agent("Look.", tools=[look], model=FunctionModel(reply), context=context))
    talk.begin("The task: look at all pages.")
    departure = talk.activate(
        started=lambda driver: asyncio.get_running_loop().call_later(60, driver.post, Cancel("interrupt")) and None
    )
    assert departure == Departure("cancelled")
    assert purposes[-1] == "summary"
    (lost,) = talk.record.all_of(ModelFailed)
    assert (lost.reason, lost.usage.model_calls) == ("call_lost", 1)
    assert not talk.record.all_of(ContextCompacted)

    talk.begin("And now?")
    talk.agent = Agent("Look.", tools=[look], model=FunctionModel(reply), context=ContextManager())
    assert talk.activate() == Departure("completed")
    pages = [message.content for message in talk.state().conversation.messages if message.role is Role.TOOL]
    assert [(page or "").split(" of ")[0] for page in pages] == [f"page {n}" for n in range(1, len(purposes) - 1)]


def test_a_conversation_begins_with_the_task_of_a_run_that_was_ended_before_it_began() -> None:
    earlier = EarlierRun("a", (Message(role=Role.USER, content="the first task"),))
    created = Recorded(seq=1, at=0, event=RunCreated(agent="a", task="the second", budget=Budget()))
    assert RunState.restore(Checkpoint(seq=1), [created], earlier=[earlier]).context.first_task == "the first task"
    assert RunState.restore(Checkpoint(seq=1), [created]).context.first_task == "the second"
