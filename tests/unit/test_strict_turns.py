"""Histories for servers that insist on their shape, and how a client learns that its server is one of them."""

import asyncio
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ModelRefusedRequest, ModelUnavailable
from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelReply, ModelRequest
from agent.models.openai import OpenAIModel
from agent.models.strict_turns import EMPTY, GO_ON, READ, in_strict_turns
from tests.support.engine import assert_valid
from tests.support.model_server import ModelServer, chat_reply, http_answer


def system(text: str) -> Message:
    return Message(role=Role.SYSTEM, content=text)


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def assistant(text: str | None, *ids: str) -> Message:
    return Message(role=Role.ASSISTANT, content=text, tool_calls=tuple(ToolCall(id=one, name="look") for one in ids))


def answer(call_id: str, text: str = "found") -> Message:
    return Message(role=Role.TOOL, tool_call_id=call_id, name="look", content=text)


def shape(*messages: Message) -> list[tuple[str, str | None]]:
    return [(message.role.value, message.content) for message in in_strict_turns(messages)]


def test_neighbours_of_one_role_are_joined_and_system_text_moves_to_the_front():
    """case-070: the history of the case, with a summary as one more message of the user."""
    assert shape(
        system("Help."),
        user("What came before: a talk."),
        user("task"),
        assistant("which city?"),
        user("Rome"),
        system("Be brief."),
        user("(system nudge) answer in JSON"),
    ) == [
        ("system", "Help.\n\nBe brief."),
        ("user", "What came before: a talk.\n\ntask"),
        ("assistant", "which city?"),
        ("user", "Rome\n\n(system nudge) answer in JSON"),
    ]


def test_results_of_tools_stay_one_message_each():
    """case-070"""
    turns = in_strict_turns([user("go"), assistant("Wait."), assistant(None, "a", "b"), answer("a"), answer("b", "")])
    assert [turn.role.value for turn in turns] == ["user", "assistant", "tool", "tool"]
    assert (turns[1].content, [turn.content for turn in turns[2:]]) == ("Wait.", ["found", EMPTY])
    assert_valid(turns)


def test_a_word_of_the_user_behind_results_has_a_turn_of_the_assistant_before_it():
    turns = shape(user("go"), assistant(None, "a"), answer("a"), user("[Budget left: 1 step.]"))
    assert turns[2:] == [("tool", "found"), ("assistant", READ), ("user", "[Budget left: 1 step.]")]


def test_nothing_is_empty():
    """case-068"""
    assert shape(user(""), assistant(""), assistant(" \n"), user("hello")) == [("user", f"{EMPTY}\n\nhello")]


def test_it_begins_and_ends_with_the_user():
    assert shape(system("Help."), assistant("Hello."), user("hi"), assistant("I will not.")) == [
        ("system", "Help."),
        ("user", GO_ON),
        ("assistant", "Hello."),
        ("user", "hi"),
        ("assistant", "I will not."),
        ("user", GO_ON),
    ]


_TURNS = st.lists(
    st.tuples(st.sampled_from(["system", "user", "assistant", "calls"]), st.text(max_size=5)), max_size=20
)


def history(turns: list[tuple[str, str]]) -> list[Message]:
    messages: list[Message] = []
    for number, (kind, text) in enumerate(turns):
        if kind == "calls":
            ids = (f"call.{number}", f"call.{number}/2")
            messages += [assistant(text or None, *ids), *(answer(one, text) for one in ids)]
        else:
            messages.append(Message(role=Role(kind), content=text))
    return messages


@given(_TURNS)
def test_whatever_comes_in_the_shape_is_kept(turns: list[tuple[str, str]]):
    strict = in_strict_turns(history(turns))
    spoken = strict[1:] if strict[0].role is Role.SYSTEM else strict
    assert all(turn.role is not Role.SYSTEM for turn in spoken)
    assert (spoken[0].role, spoken[-1].role in (Role.USER, Role.TOOL)) == (Role.USER, True)
    for before, turn in itertools.pairwise(spoken):
        assert before.role is not turn.role or turn.role is Role.TOOL
        assert (before.role, turn.role) != (Role.TOOL, Role.USER)
    assert all(turn.content or turn.tool_calls for turn in strict)
    assert all(re.fullmatch("[a-z0-9]{9}", call.id) for turn in strict for call in turn.tool_calls)
    assert_valid(spoken)
    assert shape(*strict) == [(turn.role.value, turn.content) for turn in strict]


REFUSALS = [
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (500, "After the optional system message, conversation roles must alternate user/assistant"),
    (400, "Unexpected role 'user' after role 'tool'"),
    (400, "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"),
    (422, "Assistant message must have either content or tool_calls, but not none."),
    (400, "Tool call id was call_1_0 but must be a-z, A-Z, 0-9, with a length of 9."),
    (400, "messages: text content blocks must be non-empty"),
    (400, "all messages must have non-empty content except for the optional final assistant message"),
    (400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
    (400, "System message must be at the beginning."),
    (400, "deepseek-reasoner does not support successive user or assistant messages"),
    (400, "Please ensure that function call turn comes immediately after a user turn"),
    (400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'"),
    (400, "Invalid value for 'content': expected a string, got null."),
]
OTHERS = [
    (400, "This model's maximum context length is 8192 tokens; please reduce the length of the messages."),
    (400, "Invalid schema for function 'look': 'objekt' is not a type"),
    (400, "Unsupported value: 'temperature' does not support 0.2 with this model"),
    (401, "Your role does not allow this."),
    (429, "Too many consecutive requests"),
    (503, "The system message queue is full"),
]
OK = http_answer(chat_reply({"content": "ok"}))
MESSAGES = [user("task"), user("nudge")]


def refusal(status: int, words: str) -> bytes:
    return http_answer({"error": {"message": words}}, status=status)


def ask_twice(model: OpenAIModel) -> list[ModelReply | Exception]:
    async def exchanges() -> list[ModelReply | Exception]:
        answers: list[ModelReply | Exception] = []
        for _ in range(2):
            try:
                answers.append(await model.complete(ModelRequest(MESSAGES, max_tokens=9)))
            except (ModelUnavailable, ModelRefusedRequest) as error:
                answers.append(error)
        await model.close()
        return answers

    return asyncio.run(exchanges())


@pytest.mark.parametrize(("status", "words"), REFUSALS)
def test_a_history_that_was_refused_is_never_sent_unchanged_again(status: int, words: str):
    """case-068, case-070: repaired once, at once, and the repair is kept."""
    with ModelServer(refusal(status, words), OK) as server:
        model = OpenAIModel("m", base_url=server.url)
        refused, answered = ask_twice(model)
        assert isinstance(refused, ModelUnavailable)
        assert (refused.retry_after, refused.billed) == (0, False)
        assert words[:20] in str(refused)
        assert isinstance(answered, ModelReply)
        assert all(isinstance(answered, ModelReply) for answered in ask_twice(model))
    sent = [len(request.body["messages"]) for request in server.received]  # pyright: ignore[reportArgumentType]
    assert sent == [2, 1, 1, 1]


def test_a_history_that_is_refused_in_strict_turns_too_is_given_up():
    with ModelServer(refusal(*REFUSALS[0])) as server:
        refused, again = ask_twice(OpenAIModel("m", base_url=server.url))
    assert isinstance(refused, ModelUnavailable)
    assert isinstance(again, ModelRefusedRequest)


@pytest.mark.parametrize(("status", "words"), OTHERS)
def test_other_refusals_change_nothing(status: int, words: str):
    with ModelServer(refusal(status, words)) as server:
        ask_twice(OpenAIModel("m", base_url=server.url))
    assert [len(request.body["messages"]) for request in server.received] == [2, 2]  # pyright: ignore[reportArgumentType]


def test_strict_turns_can_be_asked_for():
    with ModelServer(OK) as server:
        ask_twice(OpenAIModel("m", base_url=server.url, strict_turns=True))
    assert server.received[0].body["messages"] == [{"role": "user", "content": "task\n\nnudge"}]
