"""What models cost."""

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.base import LongRequestPrice, Price
from agent.prices import FREE, nano, per_million, price_of, usd

OPENAI = "https://api.openai.com/v1"


def test_a_listed_price():
    assert price_of("gpt-4o", base_url=OPENAI) == Price(Decimal("2.5"), Decimal(10))


def test_what_is_not_listed_is_unknown_and_not_free():
    """case-114"""
    assert price_of("gpt-4o-with-a-typo", base_url=OPENAI) is None
    assert price_of("gpt-4o", base_url="http://127.0.0.1:8080/v1") is None
    assert price_of("text-embedding-3-small", base_url=OPENAI) is None
    assert FREE.cost(10**9, 10**9) == 0


def test_a_fee_for_each_request_is_no_price_for_tokens():
    assert price_of("sonar", base_url="https://api.perplexity.ai") is None


def test_long_requests_may_cost_more():
    listed = price_of("gemini-2.5-pro", base_url="https://generativelanguage.googleapis.com/v1beta/openai")
    assert listed is not None
    assert listed.long_requests
    price = Price(Decimal(1), Decimal(10), (LongRequestPrice(200_000, Decimal(2), Decimal(15)),))
    assert price.cost(200_000, 1000) == nano("0.21")
    assert price.cost(200_001, 1000) == nano("0.415002")
    assert price.at(300_000) == Price(Decimal(2), Decimal(15))
    assert price.at(10) == Price(Decimal(1), Decimal(10))


def test_a_price_of_ones_own():
    assert per_million(input="0.15", output=0.6).cost(1_000_000, 1_000_000) == nano("0.75")


def test_a_cost_is_rounded_up():
    assert per_million(input="0.0001", output=0).cost(1, 0) == 1


@given(st.integers(0, 10**18))
def test_nano_dollars_are_exact(amount: int):
    assert nano(usd(amount)) == amount


def test_amounts_as_people_write_them():
    assert {nano("0.1"), nano(0.1), nano(Decimal("0.1"))} == {100_000_000}
    assert nano("0.0000000001") == 1
    for odd in ("much", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not an amount of US dollars"):
            nano(odd)


def test_the_price_list_is_not_loaded_before_it_is_asked():
    program = "import agent, agent.prices, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "agent.prices" in loaded
    assert "genai_prices" not in loaded
