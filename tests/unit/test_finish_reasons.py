"""What servers mean by their finish reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.finish_reasons import FinishKind, finish_kind


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (FinishKind.STOP, ["stop", "STOP", "eos", "end_turn", "", None]),
        (FinishKind.LENGTH, ["length", "MAX_TOKENS", "model_context_window_exceeded"]),
        (FinishKind.TOOL_CALLS, ["tool_calls", "tool_use", "function_call"]),
        (FinishKind.FILTERED, ["content_filter", "sensitive", "guardrail_intervened", "SAFETY", "refusal"]),
        (FinishKind.FAILED, ["error", "network_error", "abort"]),
        (FinishKind.MALFORMED, ["malformed_function_call", "function_call_filter: MALFORMED_FUNCTION_CALL"]),
        (FinishKind.UNKNOWN, ["pause_turn", "brand_new_reason"]),
    ],
)
def test_words_of_several_servers(kind: FinishKind, reasons: list[str | None]):
    """case-017, case-018, case-019"""
    assert {finish_kind(reason) for reason in reasons} == {kind}


@given(st.text())
def test_any_word_has_a_kind(reason: str):
    assert finish_kind(reason) in FinishKind
