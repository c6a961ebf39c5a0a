"""What models cost, from the price list that the package genai-prices carries. Nothing is fetched.

Money is integer nano-dollars inside, where it is added up, and Decimal US dollars outside.
"""

from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from agent.models.base import LongRequestPrice, Price

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

FREE: Final = Price(Decimal(0), Decimal(0))
"""The price of a model that costs nothing, such as one on your own machine. It has to be said: unknown is not free."""

_NANO: Final = 1_000_000_000


def usd(nano_dollars: int) -> Decimal:
    """Nano-dollars as exact US dollars."""
    return Decimal(nano_dollars) / _NANO


def nano(dollars: Decimal | str | float | int) -> int:
    """US dollars as nano-dollars, rounded up. A float counts as it is printed: 0.1 is a tenth.

    Raises:
        ValueError: It is no finite amount.
    """
    try:
        return int((Decimal(str(dollars)) * _NANO).to_integral_value(rounding=ROUND_CEILING))
    except (InvalidOperation, OverflowError, ValueError):
        raise ValueError(f"{dollars!r} is not an amount of US dollars") from None


def per_million(*, input: Decimal | str | float | int, output: Decimal | str | float | int) -> Price:
    """A price of your own, in US dollars for one million tokens: `per_million(input="0.15", output="0.60")`."""
    return Price(Decimal(str(input)), Decimal(str(output)))


def price_of(model: str, *, base_url: str) -> Price | None:
    """The price of a model at the server that serves it; None if it is not known.

    Cheaper cached input is not counted. Where a price depends on the time of day, it is the one of now.

    Args:
        model: The model's name as that server knows it.
        base_url: The same name costs differently elsewhere, and what an unknown server charges is unknown.
    """
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 -- the list is large: read when first asked

    try:
        _, found = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return None
    return _price(found.get_prices(datetime.now(UTC)))


def _price(listed: "ModelPrice") -> Price | None:
    from genai_prices.types import TieredPrices  # noqa: PLC0415

    def at(price: Decimal | TieredPrices, input_tokens: int) -> Decimal:
        if isinstance(price, Decimal):
            return price
        reached = [tier.price for tier in price.tiers if input_tokens > tier.start]
        return reached[-1] if reached else price.base

    input_price, output_price = listed.input_mtok, listed.output_mtok
    has_fee = listed.requests_kcount is not None  # for each request, which a `Price` cannot say
    if input_price is None or output_price is None or has_fee:
        return None
    starts = sorted(
        {tier.start for price in (input_price, output_price) if isinstance(price, TieredPrices) for tier in price.tiers}
    )
    return Price(
        at(input_price, 0),
        at(output_price, 0),
        tuple(LongRequestPrice(start, at(input_price, start + 1), at(output_price, start + 1)) for start in starts),
    )
