"""What an answer without a reply means: an error to wait for, one to give up on, one to come back from with less, or a fault of
the model's."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ContextExceeded, ModelError, ModelRefusedRequest, ModelUnavailable
from agent.models.base import ModelReply
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.models.openai_errors import failure_inside, failure_of_status, is_about_turns

NOW = datetime(2026, 10, 21, 7, 0, tzinfo=UTC)
NO_HEADERS = httpx.Headers()
ANSWERED = {"choices": [{"finish_reason": "stop", "message": {"content": "ok"}}]}


def of_status(status: int, body: object) -> ModelError | ModelReply:
    return failure_of_status(status, NO_HEADERS, json.dumps(body).encode(), NOW)


def inside(body: object) -> ModelError | ModelReply | None:
    return failure_inside(body, NO_HEADERS, NOW)


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        ({"object": "error", "message": "bad key", "code": 401}, ModelRefusedRequest, 401, "bad key"),
        ({"code": 429, "msg": "slow down"}, ModelUnavailable, 429, "slow down"),
        ([{"error": {"code": 429, "message": "quota"}}], ModelUnavailable, 429, "quota"),
        ({"errors": [{"code": 403, "message": "not yours"}]}, ModelRefusedRequest, 403, "not yours"),
        ({"error": True, "message": "broken", "status": 503}, ModelUnavailable, 503, "broken"),
        ({"error": "Unauthorized", "status": 401}, ModelRefusedRequest, 401, "Unauthorized"),
        ({"detail": "gone wrong"}, ModelUnavailable, 500, "gone wrong"),
        ({"object": "error", "code": 500}, ModelUnavailable, 500, "it did not say why"),
        ({"error": {"status": "UNAUTHENTICATED", "message": "who?"}}, ModelRefusedRequest, 401, "who?"),
        ({"error": {"code": "RESOURCE_EXHAUSTED", "message": "quota"}}, ModelUnavailable, 429, "quota"),
        ({"error": {"type": "RateLimitError", "message": "busy"}}, ModelUnavailable, 429, "busy"),
        ({"error": {"code": "invalid_api_key", "message": "no"}}, ModelRefusedRequest, 401, "no"),
    ],
)
def test_errors_inside_a_success_in_the_shapes_that_servers_use(
    body: object, kind: type[ModelError], status: int, said: str
):
    """case-015, case-023: each is that error, and is charged as little."""
    error = inside(body)
    assert isinstance(error, ModelError)
    assert type(error) is kind
    assert (error.status, error.billed) == (status, False)
    assert str(error) == f"The model server answered {status}: {said}"


def test_the_error_of_a_choice_is_the_error_of_the_reply():
    """case-015, case-018: routers tell so that the server behind them failed; what was written by then is no answer."""
    failing = {"finish_reason": "error", "error": {"code": 429, "message": "busy"}, "message": {"content": "Some rea"}}
    error = inside({"choices": [failing], "usage": {"prompt_tokens": 10, "completion_tokens": 0}})
    assert isinstance(error, ModelUnavailable)
    assert (error.status, str(error)) == (429, "The model server answered 429: busy")


@pytest.mark.parametrize(
    "body",
    [
        ANSWERED,
        ANSWERED | {"error": None},
        ANSWERED | {"error": {"code": None, "message": ""}},
        ANSWERED | {"message": "all is well", "code": 0},
        {"choices": [{"error": None, "message": {"content": "ok"}}]},
        {"code": 200, "message": "ok"},
        {"code": 0, "msg": "success", "data": {}},
        {"message": {"role": "assistant", "content": "in another protocol"}},
        {"choices": []},
        [],
        [1],
        None,
    ],
)
def test_what_is_no_error_is_not_taken_for_one(body: object):
    assert inside(body) is None


def test_what_the_server_behind_a_router_said_is_shown():
    error = of_status(502, {"error": {"message": "Provider returned error", "metadata": {"raw": "the GPU is on fire"}}})
    assert str(error) == "The model server answered 502: Provider returned error: the GPU is on fire"


# ---- the model's fault ---------------------------------------------------------------------------------------------------

UNREADABLE_CALLS: list[tuple[int, object]] = [
    (
        400,
        {
            "error": {
                "message": "Failed to call a function. Please adjust your prompt.",
                "code": "tool_use_failed",
                "failed_generation": '<function=search{"q":"x"}>',
            }
        },
    ),
    (400, {"error": {"message": "tool call validation failed: parameters for tool search did not match schema"}}),
    (400, {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}),
    (400, {"error": {"message": "Parsing failed.", "failed_generation": "..."}}),
    (500, {"error": {"message": "error parsing tool call: raw='{\"q\": ', err=unexpected end of JSON input"}}),
]


@pytest.mark.parametrize(("status", "body"), UNREADABLE_CALLS)
def test_a_call_that_the_server_could_not_read_is_a_reply_that_cannot_be_used(status: int, body: Mapping[str, object]):
    """case-019, with another status: the model is asked again, within the bounds for such replies."""
    for reply in (of_status(status, body), inside({"error": {"code": status, **_mapping(body["error"])}})):
        assert isinstance(reply, ModelReply)
        assert (reply.content, list(reply.tool_calls)) == (None, [])
        assert finish_kind(reply.finish_reason) is FinishKind.MALFORMED
    assert "search" in str(of_status(*UNREADABLE_CALLS[1])), "and the record says what it was"


def _mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value  # pyright: ignore[reportUnknownVariableType]


# ---- longer than the model can read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded", "message": "Too much."}),
        (400, {"type": "exceed_context_size_error", "message": "the request exceeds the available context size"}),
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
        (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        ),
        (
            400,
            (
                "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens (129000 in the "
                "messages, 1000 in the completion). Please reduce the length of the messages or completion."
            ),
        ),
        (
            400,
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 8192 "
                "tokens and your request has 7900 input tokens (1000 > 8192 - 7900)."
            ),
        ),
        (400, "litellm.ContextWindowExceededError: prompt is too long"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Input is too long for requested model."),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "Prompt exceeds max length"),
        (422, "too many tokens: the prompt cannot exceed 4081"),
        (413, "Request Entity Too Large"),
        (413, {"code": "rate_limit_exceeded", "message": "Request too large: Limit 6000, Requested 12345"}),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 41000."),
    ],
)
def test_a_request_that_is_too_long_is_told_from_one_that_is_wrong(status: int, error: object):
    found = of_status(status, {"error": error})
    assert type(found) is ContextExceeded
    assert (found.status, found.billed) == (status, False)
    assert not is_about_turns(found)


def test_so_it_is_inside_a_success():
    body = {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}
    assert isinstance(inside(body), ContextExceeded)
    assert isinstance(inside({"error": {"code": "context_length_exceeded", "message": "x"}}), ContextExceeded)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (
            400,
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
            ModelRefusedRequest,
        ),
        (
            400,
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 "
                "tokens and your request has 300 input tokens (4096 > 4096 - 300)."
            ),
            ModelRefusedRequest,
        ),
        (400, "max_output_tokens is invalid: it is larger than the context window", ModelRefusedRequest),
        (400, "Invalid value for 'max_completion_tokens': above the context length.", ModelRefusedRequest),
        (400, "Invalid 'tools[0].function.description': string too long.", ModelRefusedRequest),
        (400, "Invalid request: 'tools[0].function.description' is too long", ModelRefusedRequest),
        (400, "The request has messages[0].content that is too long", ModelRefusedRequest),
        (400, "Invalid request: tool description too long (max 1024)", ModelRefusedRequest),
        (400, "function name exceeds maximum length of 64", ModelRefusedRequest),
        (401, "The context window is for those with a key.", ModelRefusedRequest),
        (429, "Too many tokens, please wait before trying again.", ModelUnavailable),
        (503, "the context window is full of snow", ModelUnavailable),
    ],
)
def test_what_a_shorter_request_does_not_help_is_something_else(status: int, said: str, kind: type[ModelError]):
    assert type(of_status(status, {"error": {"message": said}})) is kind


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_the_reset_of_a_limit_counts_only_where_the_limit_was_the_reason(status: int):
    found = failure_of_status(status, httpx.Headers({"x-ratelimit-reset": "3600"}), b"", NOW)
    assert isinstance(found, ModelUnavailable)
    assert found.retry_after == (3600.0 if status == 429 else None)


# ---- when to come back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"details": [{"@type": "type.googleapis.com/google.rpc.Help"}, {"retryDelay": "34s"}]}, 34.0),
        ({"message": "You exceeded your current quota. Please retry in 34.07s."}, 34.07),
        ({"message": "Rate limit reached. Please try again in 1m12.5s. Visit the console."}, 72.5),
        ({"message": "Please retry after 26 seconds."}, 26.0),
        (
            {"metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1792566030000"}}},
            30.0,
        ),
        ({"message": "You may retry after 3 attempts."}, None),
        ({"details": [{"retryDelay": "soon"}, 7], "metadata": {"headers": 5}}, None),
    ],
)
def test_the_wait_that_only_the_body_says(error: dict[str, object], seconds: float | None):
    for body in ({"error": error}, [{"error": error}]):
        found = of_status(429, body)
        assert isinstance(found, ModelUnavailable)
        assert found.retry_after == seconds


keys = st.sampled_from(
    ["error", "errors", "choices", "code", "status", "message", "msg", "detail", "details", "retryDelay", "metadata"]
)
anything: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@given(anything, st.sampled_from([301, 400, 404, 413, 429, 500, 503]))
def test_no_body_breaks_the_reading(body: object, status: int):
    assert isinstance(of_status(status, body), ModelError | ModelReply)
    assert isinstance(inside(body), ModelError | ModelReply | None)
