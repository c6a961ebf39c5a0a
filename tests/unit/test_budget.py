"""What a run may use: reservations, the last answer, and amounts in words."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.budget import (
    LAST_ANSWER_TOKENS,
    MOST_DOLLARS,
    MOST_SECONDS,
    Breach,
    Budget,
    Elapsed,
    Reservation,
    Usage,
    in_words,
    left,
    low,
    reserve,
    wall_ms_left,
)
from agent.models.base import LongRequestPrice, Price

AT_ONCE = Elapsed(active_ms=0, wall_ms=0)
PRICE = Price(Decimal("2.5"), Decimal(10))
FREE = Price(Decimal(0), Decimal(0))
LONGER = Price(Decimal(1), Decimal(4), (LongRequestPrice(1000, Decimal(2), Decimal(6)),))


def ask(
    budget: Budget,
    *,
    input_tokens: int = 100,
    usage: Usage | None = None,
    step: int = 0,
    price: Price | None = None,
    wanted_output: int | None = None,
) -> Reservation | Breach:
    return reserve(
        budget,
        usage or Usage(),
        step,
        AT_ONCE,
        input_tokens=input_tokens,
        price=price,
        wanted_output=wanted_output,
    )


def granted(answer: Reservation | Breach) -> Reservation:
    assert isinstance(answer, Reservation), answer
    return answer


def test_without_limits_4096_tokens_are_reserved_or_what_the_agent_asks_for():
    assert ask(Budget(max_steps=None)) == Reservation(input_tokens=100, output_tokens=4096)
    assert granted(ask(Budget(), wanted_output=50)).output_tokens == 50


def test_a_prompt_over_the_limit_is_not_sent():
    """case-107"""
    assert ask(Budget(max_total_tokens=1000), input_tokens=1500) == Breach("max_total_tokens", "0", "1000")
    assert ask(Budget(max_input_tokens=1000), input_tokens=1001) == Breach("max_input_tokens", "0", "1000")


def test_the_request_is_lowered_to_what_is_left():
    """case-107: a prompt of 600 leaves 400; the next call could not even read this one, so this is the last answer."""
    assert ask(Budget(max_total_tokens=1000), input_tokens=600) == Reservation(
        input_tokens=600, output_tokens=400, last=True
    )


def test_what_failed_and_was_billed_counts_like_an_answer():
    """case-109: the calls of the case; the fourth is not made, since the third booking leaves no room for it."""
    usage = Usage()
    budget = Budget(max_total_tokens=500)
    for answered in (Usage(model_calls=1, input_tokens=100, output_tokens=50),) * 2:
        assert granted(ask(budget, usage=usage)).output_tokens <= 500 - usage.total_tokens - 100
        usage = usage.plus(answered, active_ms=0)
    usage = usage.plus(Usage(), active_ms=0)  # 429: costs nothing
    assert (usage.total_tokens, usage.model_calls) == (300, 2)
    assert ask(budget, usage=usage, input_tokens=180) == Reservation(input_tokens=180, output_tokens=20, last=True)
    usage = usage.plus(Usage(model_calls=1, input_tokens=180, output_tokens=60), active_ms=0)
    assert ask(budget, usage=usage) == Breach("max_total_tokens", "540", "500")


def test_a_money_limit_of_zero_allows_what_is_free_and_nothing_else():
    """case-114"""
    nothing = Budget(max_cost_usd=Decimal(0))
    assert ask(nothing, price=PRICE) == Breach("max_cost_usd", "0", "0")
    assert ask(nothing, price=FREE) == Reservation(input_tokens=100, output_tokens=4096, cost_nanousd=0)


@pytest.mark.parametrize(
    "limit",
    [
        "max_steps",
        "max_model_calls",
        "max_input_tokens",
        "max_output_tokens",
        "max_total_tokens",
        "max_active_seconds",
        "max_wall_seconds",
    ],
)
def test_a_limit_of_zero_means_that_nothing_may_be_used(limit: str):
    """case-114"""
    assert ask(Budget.model_validate({limit: 0})) == Breach(limit, "0", "0")


def test_without_tool_calls_only_the_exit_is_offered():
    assert granted(ask(Budget(max_tool_calls=0))).last
    assert not granted(ask(Budget(max_tool_calls=1))).last
    assert granted(ask(Budget(max_tool_calls=1), usage=Usage(tool_calls=1))).last


def test_money_is_counted_in_nanodollars_and_rounded_up():
    assert PRICE.cost(1, 1) == 12_500
    assert Price(Decimal("0.0001"), Decimal("0.0001")).cost(1, 0) == 1
    assert Budget(max_cost_usd=0.1).max_cost_usd == Decimal("0.1")  # type: ignore[arg-type]
    assert Usage(cost_nanousd=1).cost_usd == Decimal("0.000000001")
    assert granted(ask(Budget(), price=PRICE)).cost_nanousd == PRICE.cost(100, 4096)


def test_long_requests_are_reserved_at_their_own_price():
    budget = Budget(max_cost_usd=Decimal("0.01"))
    answer = ask(budget, input_tokens=2000, price=LONGER, usage=Usage(cost_nanousd=3_000_000))
    assert answer == Reservation(input_tokens=2000, output_tokens=500, cost_nanousd=7_000_000, last=True)


def test_an_unknown_price_reserves_tokens_and_no_money():
    charge = granted(ask(Budget())).as_usage()
    assert (charge.model_calls, charge.unpriced_calls, charge.cost_nanousd) == (1, 1, 0)
    assert charge.estimated_tokens == charge.total_tokens == 4196


def test_time_is_over_when_it_is_used_up():
    late = Elapsed(active_ms=2500, wall_ms=9000)
    assert reserve(Budget(max_active_seconds=2.5), Usage(), 0, late, input_tokens=1, price=None) == Breach(
        "max_active_seconds", "2.5", "2.5"
    )
    assert reserve(Budget(max_wall_seconds=8), Usage(), 0, late, input_tokens=1, price=None) == Breach(
        "max_wall_seconds", "9", "8"
    )


@pytest.mark.parametrize("limit", ["max_steps", "max_model_calls"])
def test_the_last_of_the_calls_is_the_last_answer(limit: str):
    budget = Budget.model_validate({"max_steps": None, limit: 3})
    lasts = [granted(ask(budget, step=made, usage=Usage(model_calls=made))).last for made in range(3)]
    assert lasts == [False, False, True]
    assert ask(budget, step=3, usage=Usage(model_calls=3)) == Breach(limit, "3", "3")


tokens = st.integers(0, 20_000)
limits = st.none() | st.integers(0, 50_000)
prices = st.sampled_from([None, FREE, PRICE, LONGER, Price(Decimal("0.0003"), Decimal("0.0007"))])
budgets = st.builds(
    Budget,
    max_steps=st.none() | st.integers(0, 12),
    max_model_calls=st.none() | st.integers(0, 12),
    max_tool_calls=st.none() | st.integers(0, 12),
    max_input_tokens=limits,
    max_output_tokens=limits,
    max_total_tokens=limits,
    max_cost_usd=st.none() | st.decimals(0, 1, places=4),
)


@given(budgets, st.builds(Usage, input_tokens=tokens, output_tokens=tokens), tokens, prices, st.integers(1, 9000))
def test_a_reservation_never_exceeds_what_is_left(
    budget: Budget, usage: Usage, input_tokens: int, price: Price | None, wanted: int
):
    answer = reserve(budget, usage, 0, AT_ONCE, input_tokens=input_tokens, price=price, wanted_output=wanted)
    if isinstance(answer, Breach):
        assert getattr(budget, answer.limit) is not None
        return
    assert answer.input_tokens == input_tokens
    assert 1 <= answer.output_tokens <= wanted
    after = usage.plus(answer.as_usage(), active_ms=0)
    for limit, used in (
        (budget.max_input_tokens, after.input_tokens),
        (budget.max_output_tokens, after.output_tokens),
        (budget.max_total_tokens, after.total_tokens),
        (budget.max_model_calls, after.model_calls),
        (budget.max_cost_usd if price else None, after.cost_usd),
    ):
        assert limit is None or used <= limit


@given(budgets, st.integers(1, 5000), prices, st.data())
def test_a_run_within_its_reservations_gets_exactly_one_last_answer(
    budget: Budget, task: int, price: Price | None, data: st.DataObject
):
    """Once the first call fits, no limit is reached before the model was told to come to an end; then it ends at once."""
    usage, step, size = Usage(), 0, task
    offered: list[bool] = []
    for _ in range(40):
        answer = reserve(budget, usage, step, AT_ONCE, input_tokens=size, price=price)
        if isinstance(answer, Breach):
            assert not offered, f"{answer} before a last answer was offered, after {len(offered)} calls"
            return
        offered.append(answer.last)
        if answer.last:
            return
        written = data.draw(st.integers(1, answer.output_tokens))
        cost = 0 if price is None else price.cost(size, written)
        usage = usage.plus(
            Usage(model_calls=1, tool_calls=1, input_tokens=size, output_tokens=written, cost_nanousd=cost),
            active_ms=0,
        )
        step, size = step + 1, size + written


@given(budgets, st.builds(Usage, input_tokens=tokens, output_tokens=tokens, tool_calls=st.integers(0, 20)))
def test_what_is_left_is_never_below_zero(budget: Budget, usage: Usage):
    rest = left(budget, usage, 5, AT_ONCE)
    assert set(rest) == {name for name, value in budget if value is not None}
    assert all(amount >= 0 for amount in rest.values())
    assert low(budget, rest).items() <= rest.items()


def test_a_tenth_but_at_most_1024_tokens_are_kept_for_the_last_answer():
    small = granted(ask(Budget(max_output_tokens=1000)))
    assert (small.output_tokens, small.last) == (900, False)
    large = granted(ask(Budget(max_output_tokens=20_000), wanted_output=30_000))
    assert large.output_tokens == 20_000 - LAST_ANSWER_TOKENS


def test_additions_raise_limits_that_are_there_and_make_none():
    budget = Budget(max_steps=5, max_cost_usd=Decimal("0.1"), max_active_seconds=1.5)
    raised = budget.raised(Budget(max_steps=2, max_cost_usd=Decimal("0.2"), max_tool_calls=9))
    assert raised == Budget(max_steps=7, max_cost_usd=Decimal("0.3"), max_active_seconds=1.5)
    assert budget.raised(Budget()) == budget, "a default is not an addition"


def test_usage_adds_up_but_active_time_is_a_reading():
    once = Usage(model_calls=1, input_tokens=2, output_tokens=3, cost_nanousd=4, active_ms=500)
    assert once.plus(once, active_ms=800) == Usage(
        model_calls=2, input_tokens=4, output_tokens=6, cost_nanousd=8, active_ms=800
    )
    assert once.plus(once, active_ms=0).active_ms == 500


def test_nonsense_is_refused():
    for wrong in (
        {"max_steps": -1},
        {"max_cost_usd": -1},
        {"max_steps": 1.5},
        {"max_step": 1},
        {"max_cost_usd": "nan"},
    ):
        with pytest.raises(ValidationError):
            Budget.model_validate(wrong)


def test_amounts_in_plain_digits():
    amounts = (12_345_678, 0, 86_400.0, 1.25, Decimal("0.10"), Decimal("0.000000012"), Decimal(1200))
    assert [in_words(amount) for amount in amounts] == [
        "12345678",
        "0",
        "86400",
        "1.25",
        "0.1",
        "0.000000012",
        "1200",
    ]


@pytest.mark.parametrize("limit", ["max_active_seconds", "max_wall_seconds"])
@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e300, 1.1e9, -1.0])
def test_a_limit_of_time_is_one_that_a_clock_can_count(limit: str, seconds: float) -> None:
    with pytest.raises(ValidationError, match=limit):
        Budget.model_validate({limit: seconds})


@pytest.mark.parametrize("dollars", [float("inf"), float("nan"), "inf", Decimal("Infinity"), "1e400000", 1.1e9, -1.0])
def test_a_limit_of_cost_is_one_that_can_be_counted(dollars: object) -> None:
    with pytest.raises(ValidationError, match="max_cost_usd"):
        Budget.model_validate({"max_cost_usd": dollars})


def test_a_limit_of_cost_that_is_raised_again_and_again_stays_one() -> None:
    budget = Budget(max_cost_usd=Decimal(1))
    for _ in range(3):
        budget = budget.raised(Budget(max_cost_usd=Decimal(MOST_DOLLARS)))
    assert budget.max_cost_usd == MOST_DOLLARS


def test_a_limit_of_time_that_is_raised_again_and_again_stays_one() -> None:
    budget = Budget(max_active_seconds=1.0, max_wall_seconds=MOST_SECONDS)
    for _ in range(3):
        budget = budget.raised(Budget(max_active_seconds=MOST_SECONDS, max_wall_seconds=MOST_SECONDS))
    assert budget.max_active_seconds == budget.max_wall_seconds == MOST_SECONDS
    assert wall_ms_left(budget, Elapsed(0, 0)) == 10**12
