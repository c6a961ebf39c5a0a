"""What servers mean by their finish reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.finish_reasons import FinishKind, finish_kind


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (FinishKind.STOP, ["stop", "STOP", "eos", "end_turn", "", None]),
        (
            FinishKind.STOP,
            ["stop_sequence", "eos_token", "complete", "COMPLETE", "done", "finished", "endoftext", "end_of_turn"],
        ),
        (
            FinishKind.STOP,
            ["FinishReason.STOP", "FINISH_REASON_STOP", "FINISH_REASON_UNSPECIFIED", "null", "None", "<|im_end|>"],
        ),
        (FinishKind.STOP, ["endTurn", "stop_words", "stop_str", "STOP_CRITERIA_MET", "FINISHED_STOPPED", "EOSToken"]),
        (FinishKind.STOP, ["completion", "Successful", "stopSequence", "FinishReasonStop"]),
        (FinishKind.LENGTH, ["MaxTokens", "maxOutputTokens", "max_output"]),
        (FinishKind.TOOL_CALLS, ["toolUse", "ToolCalls"]),
        (FinishKind.LENGTH, ["length", "MAX_TOKENS", "model_context_window_exceeded", "max_new_tokens", "max_length"]),
        (
            FinishKind.LENGTH,
            ["max_completion_tokens", "context_length_exceeded", "model_length", "token_limit", "max_output_tokens"],
        ),
        (FinishKind.TOOL_CALLS, ["tool_calls", "tool_use", "function_call", "tool-calls"]),
        (
            FinishKind.FILTERED,
            ["content_filter", "sensitive", "guardrail_intervened", "SAFETY", "refusal", "stop_by_filter"],
        ),
        (FinishKind.FAILED, ["error", "network_error", "abort", "upstream_error", "error_finish", "connection-error"]),
        (
            FinishKind.FAILED,
            ["rate_limit", "engine_overloaded", "aborted", "insufficient_system_resource", "timed_out"],
        ),
        (FinishKind.MALFORMED, ["malformed_function_call", "function_call_filter: MALFORMED_FUNCTION_CALL"]),
        (FinishKind.MALFORMED, ["unexpected_tool_call", "function_call_filter: UNEXPECTED_TOOL_CALL"]),
        (FinishKind.PAUSED, ["pause_turn", "incomplete", "unfinished"]),
        (FinishKind.UNKNOWN, ["brand_new_reason", "OTHER", "load", "partial"]),
    ],
)
def test_words_of_several_servers(kind: FinishKind, reasons: list[str | None]):
    """case-017, case-018, case-019"""
    assert {finish_kind(reason) for reason in reasons} == {kind}


@given(st.text())
def test_any_word_has_a_kind(reason: str):
    assert finish_kind(reason) in FinishKind
