"""How servers ask to wait."""

from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.retry_after import LONGEST_WAIT, retry_after

NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)


def wait(**headers: str) -> float | None:
    return retry_after(httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()}), NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-5", 0.0),
        ("30,120", 120.0),
        ("86400", LONGEST_WAIT),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:28:00", 30.0),
        ("Wed, 21 Oct 2020 07:28:00 GMT", 0.0),
        ("Wednesday, 21-Oct-26 07:28:00 GMT", 30.0),
        ("2026-10-21T07:28:00Z", 30.0),
        ("2026-10-21T09:28:00+02:00", 30.0),
        ("1792567680", 30.0),
        ("1792567680000", 30.0),
        ("30s", 30.0),
        ("1m30s", 90.0),
        ("26 seconds", 26.0),
        ("500 milliseconds", 0.5),
        ("10s, 1m", 60.0),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("30,soon", None),
    ],
)
def test_the_header(value: str, seconds: float | None):
    """case-024"""
    assert wait(Retry_After=value) == seconds


def test_milliseconds_are_the_more_exact():
    assert wait(retry_after_ms="1500", retry_after="2") == 1.5


def test_a_date_is_measured_by_the_clock_of_the_server():
    assert wait(retry_after="Wed, 21 Oct 2026 07:28:00 GMT", date="Wed, 21 Oct 2026 07:27:50 GMT") == 10.0


def test_the_reset_of_a_used_up_limit():
    assert wait(x_ratelimit_reset_requests="6m0s") == 360.0
    assert wait(x_ratelimit_reset_requests="20ms", x_ratelimit_reset_tokens="1m30.5s") == 90.5
    assert wait(x_ratelimit_reset_requests="6m0s", x_ratelimit_remaining_requests="12") is None
    assert wait(x_ratelimit_reset_requests="6 minutes") == 360.0
    assert wait(x_ratelimit_reset_requests="six minutes") is None
    assert wait() is None


def test_the_reset_in_the_words_of_other_servers():
    assert wait(x_ratelimit_reset="1792567680", x_ratelimit_remaining="0") == 30.0
    assert wait(x_ratelimit_reset="1792567680", x_ratelimit_remaining="3") is None
    assert wait(x_ratelimit_reset_tokens="12.5") == 12.5
    assert wait(ratelimit_reset="50") == 50.0
    moment = "2026-10-21T07:28:00Z"
    assert wait(anthropic_ratelimit_input_tokens_reset=moment, anthropic_ratelimit_input_tokens_remaining="0") == 30.0
    assert wait(anthropic_ratelimit_requests_reset=moment, anthropic_ratelimit_requests_remaining="49") is None


def test_a_limit_that_does_not_say_what_is_left_counts_only_where_nothing_is():
    assert wait(x_ratelimit_reset_day="50000", x_ratelimit_remaining_req_day="10") is None
    assert wait(x_ratelimit_reset_day="50000", x_ratelimit_remaining_req_day="0") == LONGEST_WAIT
    assert wait(x_ratelimit_reset="7", x_ratelimit_remaining_tokens="10.0") is None
    assert wait(x_ratelimit_reset="7", x_ratelimit_remaining="0.0", x_ratelimit_remaining_tokens="10") == 7.0


@pytest.mark.parametrize("said", [{}, {"retry-after": "0"}, {"retry-after": "5"}])
def test_a_limit_says_nothing_of_a_failure_that_was_not_for_it(said: dict[str, str]):
    reset = {"X-RateLimit-Reset": "3600", "X-RateLimit-Remaining": "0"}
    error = {"metadata": {"headers": reset}}
    expected = float(said["retry-after"]) if said else None
    assert retry_after(httpx.Headers(said | reset), NOW, error, limited=False) == expected
    assert retry_after(httpx.Headers(reset), NOW, error) == LONGEST_WAIT


def test_a_wait_of_nothing_gives_way_to_one_that_says_more():
    assert wait(retry_after="0", x_ratelimit_reset_requests="34s") == 34.0
    assert wait(retry_after="0", retry_after_ms="0") == 0.0


def test_a_header_made_to_be_slow_to_read_is_not():
    assert wait(retry_after="1ms" * 3000 + "!") is None


@given(st.text(), st.text(), st.text())
def test_no_header_breaks_the_reading(seconds: str, milliseconds: str, reset: str):
    headers = {"retry-after": seconds, "retry-after-ms": milliseconds, "x-ratelimit-reset-tokens": reset, "date": reset}
    found = retry_after(headers, NOW)
    assert found is None or 0 <= found <= LONGEST_WAIT
