"""What servers send as tool calls, and the one form that is stored."""

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from agent.dialects.calls import CUT_OFF, read_calls
from agent.messages import ToolCall
from agent.models.base import RawToolCall


def read_one(arguments: str | dict[str, object] | None, finish_reason: str | None = "tool_calls") -> ToolCall:
    (call,) = read_calls([RawToolCall("tool", arguments, "c1")], step=1, finish_reason=finish_reason)
    return call


def problem_of(arguments: str | dict[str, object] | None, finish_reason: str | None = "tool_calls") -> str:
    call = read_one(arguments, finish_reason)
    assert call.problem is not None
    assert call.arguments == "{}"
    return call.problem


def test_nothing_at_all_is_an_empty_object():
    """case-001"""
    empty: dict[str, object] = {}
    for nothing in ("", "  \n", None, "null", "{}", empty, "[]", '""', " [ ] "):
        assert read_one(nothing) == ToolCall(id="c1", name="tool", arguments="{}")


def test_an_object_and_its_text_are_stored_alike():
    """case-003"""
    as_object = read_one({"query": "ābc", "limit": 3})
    as_text = read_one('{"query": "\\u0101bc",\n "limit": 3}')
    assert as_object == as_text
    assert as_object.arguments == '{"query":"ābc","limit":3}'


def test_cut_arguments_are_never_completed():
    """case-005: whatever the finish reason says."""
    cut = '{"path": "a.txt", "text": "first half of'
    for finish_reason in ("length", "tool_calls", None):
        assert problem_of(cut, finish_reason) == CUT_OFF


def test_every_beginning_of_an_object_is_cut_off_when_the_server_says_so():
    whole = '{"a": [1, -2.5e3, true, null], "b": {"c": "d\\u00e9 \\n"}}'
    for end in range(len(whole)):
        assert problem_of(whole[:end], "length") == CUT_OFF


def test_only_the_last_call_of_a_reply_can_be_cut():
    raw = [RawToolCall("clock", "", "c1"), RawToolCall("clock", "", "c2")]
    first, last = read_calls(raw, step=1, finish_reason="max_tokens")
    assert first.problem is None
    assert last.problem == CUT_OFF


def test_whole_arguments_are_whole_at_the_output_limit():
    assert read_one('{"a":1}', "length") == ToolCall(id="c1", name="tool", arguments='{"a":1}')


def test_objects_glued_together_are_named():
    """case-007: neither the first alone nor both."""
    for glued in ('{"a":2,"b":2}{"city":"Rome"}', '{"a":1}\n{"a":1}', '{"a":1}{"b'):
        assert "several JSON objects glued together" in problem_of(glued)


def test_a_duplicate_key_is_named_at_any_depth():
    """case-034"""
    assert "duplicate key path" in problem_of('{"path":"a","path":"b"}')
    assert "duplicate key id" in problem_of('{"rows":[{"id":1,"id":1}]}')


def test_merged_objects_are_invalid_json_with_a_bounded_preview():
    """case-034"""
    problem = problem_of('{"path":"a"{"path":"b","path":"c"}' + "x" * 1000)
    assert "invalid JSON at column 12" in problem
    assert len(problem) < 200


def test_what_is_no_object_is_not_made_one():
    for arguments in ("[1]", '"text"', "7", "true", '"{\\"a\\":1}"'):
        assert "not a JSON object" in problem_of(arguments)


def test_numbers_and_nestings_that_json_does_not_carry():
    for arguments in ('{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", "[" * 100_000):
        assert problem_of(arguments)
    assert problem_of({"a": float("inf")})


def test_a_raw_line_break_in_a_text_can_mean_one_thing_only():
    assert json.loads(read_one('{"text": "one\ntwo"}').arguments) == {"text": "one\ntwo"}


def test_lone_surrogates_are_replaced_and_split_pairs_joined():
    """case-074"""
    assert read_one('{"a": "x \\ud83d y"}').arguments == '{"a":"x \ufffd y"}'
    assert read_one({"a": "\ud83d\ude80"}).arguments == '{"a":"🚀"}'
    (call,) = read_calls([RawToolCall("to\ud83dol", "", "c\ud83d")], step=1, finish_reason=None)
    assert (call.id, call.name) == ("c\ufffd", "to\ufffdol")


def test_a_call_without_a_name_is_answered_and_not_executed():
    (call,) = read_calls([RawToolCall(None, '{"a":1}', "c1")], step=1, finish_reason="tool_calls")
    assert call.problem == "The call names no tool. Nothing was executed."


def test_missing_and_repeated_ids_get_fresh_ones():
    """case-009: four calls stay four calls, the same ones after a resume."""
    ids = (None, "", "x", "x")
    raw = [RawToolCall("echo", {"v": index}, call_id) for index, call_id in enumerate(ids)]
    read = read_calls(raw, step=3, finish_reason="tool_calls")
    assert [call.id for call in read] == ["call_3_0", "call_3_1", "x", "call_3_3"]
    assert [json.loads(call.arguments) for call in read] == [{"v": 0}, {"v": 1}, {"v": 2}, {"v": 3}]
    assert read == read_calls(raw, step=3, finish_reason="tool_calls")


def test_a_fresh_id_never_meets_one_that_the_server_gave():
    raw = [RawToolCall("echo", "{}", None), RawToolCall("echo", "{}", "call_1_0")]
    assert [call.id for call in read_calls(raw, step=1, finish_reason=None)] == ["call_1_0_", "call_1_0"]


def test_equal_calls_are_both_kept():
    """case-138"""
    raw = [RawToolCall("roll", "{}", "c1"), RawToolCall("roll", "{}", "c2")]
    assert [(call.id, call.name) for call in read_calls(raw, step=1, finish_reason=None)] == [
        ("c1", "roll"),
        ("c2", "roll"),
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
texts = st.text() | json_values.map(json.dumps) | st.text('{}[]":,\\ \nu0123456789eE+-.truefalsnNI"')
raw_calls = st.builds(
    RawToolCall,
    name=st.none() | st.text(st.characters(codec=None)),
    arguments=st.none() | texts | st.dictionaries(st.text(), json_values),
    id=st.none() | st.text(st.characters(codec=None)) | st.sampled_from(["x", "call_1_0", "call_1_1"]),
)


@given(st.lists(raw_calls, max_size=6), st.none() | st.sampled_from(["length", "tool_calls", "stop"]) | st.text())
def test_any_reply_is_read_into_what_can_be_stored_and_sent(raw: list[RawToolCall], finish_reason: str | None):
    read = read_calls(raw, step=1, finish_reason=finish_reason)
    assert len(read) == len(raw)
    assert len({call.id for call in read}) == len(raw)
    for call in read:
        assert isinstance(json.loads(call.arguments), dict)
        assert call.problem is None or call.arguments == "{}"
        json.dumps(asdict(call), ensure_ascii=False).encode()
    assert read == read_calls(raw, step=1, finish_reason=finish_reason)
