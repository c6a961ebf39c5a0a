"""What OpenAI-compatible servers answer, odd shapes included."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.dialects.base import text_of
from agent.dialects.calls import read_calls
from agent.models.base import ModelReply, RawToolCall
from agent.models.openai_reply import read_reply
from agent.models.untrusted import parsed
from tests.support.model_server import chat_reply


def read(message: dict[str, object], **fields: object) -> ModelReply:
    reply = read_reply(chat_reply(message, **fields), origin="openai:m")
    assert reply is not None
    return reply


def call(name: str, arguments: object, **fields: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def test_calls_in_the_shapes_that_servers_use():
    """case-001, case-003, case-009"""
    reply = read(
        {
            "content": None,
            "tool_calls": [
                call("get_time", "", id="call_1"),
                call("search", {"query": "abc", "limit": 3}, id=7),
                call("roll", None),
                call("odd", [1]),
                "not even an object",
            ],
        },
        finish_reason="tool_calls",
    )
    assert list(reply.tool_calls) == [
        RawToolCall("get_time", "", "call_1"),
        RawToolCall("search", {"query": "abc", "limit": 3}, "7"),
        RawToolCall("roll", None, None),
        RawToolCall("odd", "[1]", None),
        RawToolCall(None, None, None),
    ]
    assert len(read_calls(reply.tool_calls, step=1, finish_reason=reply.finish_reason)) == 5


def test_a_single_call_as_servers_once_spelled_it():
    reply = read({"function_call": {"name": "add", "arguments": "{}"}}, finish_reason="function_call")
    assert list(reply.tool_calls) == [RawToolCall("add", "{}", None)]


@pytest.mark.parametrize("finish_reason", ["network_error", "eos", "STOP", None])
def test_the_finish_reason_is_kept_as_it_came(finish_reason: str | None):
    """case-018"""
    reply = read(
        {"content": "partial"}, finish_reason=finish_reason, usage={"prompt_tokens": 10, "completion_tokens": 2}
    )
    assert (reply.content, reply.finish_reason) == ("partial", finish_reason)
    assert (reply.input_tokens, reply.output_tokens) == (10, 2)


def test_a_choice_without_a_message_is_an_empty_reply():
    """case-019, case-020"""
    body: dict[str, object] = {
        "choices": [{"finish_reason": "malformed_function_call"}],
        "usage": {"prompt_tokens": 100},
    }
    reply = read_reply(body, origin="openai:m")
    assert reply is not None
    assert (reply.content, list(reply.tool_calls), reply.input_tokens, reply.output_tokens) == (None, [], 100, None)


def test_content_in_parts(caplog: pytest.LogCaptureFixture):
    """case-021"""
    caplog.set_level(logging.DEBUG)
    reply = read(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "reasoning"}]},
                {"type": "text", "text": "final "},
                {"type": "hologram"},
                "answer",
            ]
        }
    )
    assert (reply.content, reply.reasoning) == ("final answer", "reasoning")
    assert "hologram" in caplog.text


def test_content_in_other_shapes():
    assert read({"content": {"type": "text", "text": "hello"}}).content == "hello"
    assert read({"content": [{"text": "hel"}, {"type": "text", "text": "lo"}]}).content == "hello"
    assert read({"content": []}).content is None


def test_a_call_among_the_parts_of_the_content():
    part = {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}}
    reply = read({"content": [{"type": "text", "text": "I look"}, part]}, finish_reason="tool_use")
    assert (reply.content, list(reply.tool_calls)) == ("I look", [RawToolCall("search", {"q": "x"}, "t1")])
    assert reply.provider_fields is None
    both = read({"content": [part], "tool_calls": [call("search", "{}", id="c1")]})
    assert list(both.tool_calls) == [RawToolCall("search", "{}", "c1")]


def test_reasoning_that_a_server_left_in_the_content():
    reply = read({"content": "<think>a plan</think>\n\n42"})
    assert (reply.content, reply.reasoning) == ("42", "a plan")
    reply = read({"content": "a plan\n</think>\n\n42"})
    assert (reply.content, reply.reasoning) == ("42", "a plan")
    reply = read({"content": "<think>a plan</think>42", "reasoning_content": "known"})
    assert (reply.content, reply.reasoning) == ("42", "known")
    assert read({"content": "<think>a pl"}).content is None
    assert read({"content": "  42\n"}).content == "  42\n"


@pytest.mark.parametrize("known", ["reasoning_content", "reasoning"])
def test_an_answer_may_speak_of_the_end_of_reasoning_that_came_apart(known: str):
    answer = "The closing tag is\n</think>\nand that is all."
    reply = read({"content": answer, known: "known"})
    assert (reply.content, reply.reasoning) == (answer, "known")
    assert text_of(reply) == answer
    assert text_of(read({"content": f"<think>\n\n</think>\n\n{answer}"})) == answer


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None, "completion_tokens": None}, {"prompt_tokens": "5"}]
)
def test_missing_usage_is_unknown_and_not_zero(usage: object):
    """case-023"""
    reply = read({"content": "ok"}, usage=usage)
    assert (reply.content, reply.input_tokens, reply.output_tokens, reply.cost) == ("ok", None, None, None)


def test_the_cost_that_a_server_reports_is_kept_in_nano_dollars():
    assert read({"content": "ok"}, usage={"cost": 0.00014}).cost == 140_000
    for odd in (True, -1, "0.1", float("inf"), float("nan")):
        assert read({"content": "ok"}, usage={"cost": odd}).cost is None


@pytest.mark.parametrize(
    ("usage", "nano_dollars"),
    [
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.065}}, 65_000_000),
        ({"cost": 0.001, "cost_details": {"upstream_inference_cost": 0.02}}, 21_000_000),
        ({"cost": 0.02, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 20_000_000),
        ({"cost": 0.018, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 18_000_000),
        ({"cost": 0.02, "cost_details": {"upstream_inference_cost": None}}, 20_000_000),
        ({"cost_details": {"upstream_inference_cost": 0.02}}, 20_000_000),
        ({"cost": 0, "cost_details": "none"}, 0),
    ],
)
def test_what_the_provider_behind_a_router_charges_is_part_of_the_cost(usage: dict[str, object], nano_dollars: int):
    """With a key of one's own for it the router charges its fee, or nothing; else its charge holds the provider's."""
    assert read({"content": "ok"}, usage=usage).cost == nano_dollars


def test_refusals():
    """case-032"""
    assert read({"content": None, "refusal": "I can't help with that."}).refusal == "I can't help with that."
    reply = read({"content": [{"type": "refusal", "refusal": "I can't help with that."}]})
    assert (reply.content, reply.refusal) == (None, "I can't help with that.")


def test_what_a_server_wants_back_is_kept_for_turns_that_call_tools():
    """case-022, case-011"""
    signed = call("search", "{}", id="c1", index=0, extra_content={"google": {"thought_signature": "SIG=="}})
    reply = read({"content": "", "reasoning_content": "I should look it up", "tool_calls": [signed]})
    assert reply.reasoning == "I should look it up"
    assert reply.provider_fields == {
        "openai:m": {
            "reasoning_content": "I should look it up",
            "tool_calls": [{"extra_content": {"google": {"thought_signature": "SIG=="}}}],
        }
    }
    assert read({"content": "done", "reasoning_content": "I know"}).provider_fields is None


def test_text_that_utf_8_cannot_carry_is_mended_while_parsing():
    """case-074"""
    assert parsed(b'{"a": "x \\ud83d y", "\\uDC00": "\\ud83d\\ude80"}') == {"a": "x \ufffd y", "\ufffd": "🚀"}
    assert parsed(b'{"a": NaN}') == {"a": None}


keys = st.sampled_from(
    ["choices", "message", "content", "tool_calls", "function", "name", "arguments", "usage", "type", "text", "error"]
)
anything: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(keys, anything))
def test_no_body_breaks_the_reading(body: dict[str, object]):
    reply = read_reply(body, origin="openai:m")
    if reply is not None:
        read_calls(reply.tool_calls, step=1, finish_reason=reply.finish_reason)
