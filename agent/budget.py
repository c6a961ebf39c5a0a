"""Budgets: what a run may use, what it has used, and whether the next model call fits. Pure.

The rules: a model call is reserved before it is made and settled after it. A call that does not fit is not made; a reply
that was paid for is always kept, and an answer that completes the run completes it, even where it went over a limit. The
last model call and some output tokens are kept for the last answer, which offers the model nothing but the exit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Final, NamedTuple, cast

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from agent.models.base import Price
from agent.values import value

DEFAULT_OUTPUT_TOKENS = 4096
"""Output tokens reserved for a call where nobody said how many it may make."""

LEAST_OUTPUT_TOKENS = 64
"""A call that could not even write this many tokens is not worth making before the last answer."""

LAST_ANSWER_TOKENS = 1024
"""At most this many output tokens are kept for the last answer; a tenth of the limit where that is less."""

LOW_SHARE = 0.2
"""The model is told what is left once a limit has less than this share of itself left."""

NANO = 1_000_000_000

MOST_SECONDS = 1e9
"""The longest limit of time, 31 years: clocks and Redis count in milliseconds, exactly. None is for no limit."""

MOST_DOLLARS = 1_000_000_000
"""The highest limit of cost: in nano-dollars it still fits the integers of Redis. None is for no limit."""

Amount = int | float | Decimal


def _exact(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, float) else value


Money = Annotated[Decimal, BeforeValidator(_exact), Field(ge=0, le=MOST_DOLLARS)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]


class Budget(BaseModel, frozen=True, extra="forbid"):
    """The limits of one run. None means no limit; 0 means nothing may be used.

    Attributes:
        max_steps: Turns of the loop, one model reply each.
        max_tool_calls: Tool calls that are executed. The exit is always allowed, but counts when it is called.
        max_model_calls: Model calls that may be billed, failed ones too.
        max_input_tokens, max_output_tokens, max_total_tokens: Tokens over all model calls.
        max_cost_usd: US dollars over all model calls. Needs a model whose price is known.
        max_active_seconds: Seconds in which a worker held the run.
        max_wall_seconds: Seconds since the run was submitted, waiting included.
    """

    max_steps: Count | None = 50
    max_tool_calls: Count | None = None
    max_model_calls: Count | None = None
    max_input_tokens: Count | None = None
    max_output_tokens: Count | None = None
    max_total_tokens: Count | None = None
    max_cost_usd: Money | None = None
    max_active_seconds: Seconds | None = None
    max_wall_seconds: Seconds | None = None

    def __eq__(self, other: object) -> bool:
        """Whether all limits are the same, by whatever way they were set."""
        return self is other or (isinstance(other, Budget) and other.__dict__ == self.__dict__)

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def raised(self, additions: "Budget") -> "Budget":
        """This budget with the limits of `additions` that were set added on top. A limit that is not there stays away."""
        mine = self.model_dump()
        for name in additions.model_fields_set:
            if mine[name] is not None and getattr(additions, name) is not None:
                mine[name] += getattr(additions, name)
                if (most := _MOST.get(name)) is not None:
                    mine[name] = min(mine[name], most)
        return Budget(**mine)


_MOST: Final[Mapping[str, float | Decimal]] = {
    "max_cost_usd": Decimal(MOST_DOLLARS),
    "max_active_seconds": MOST_SECONDS,
    "max_wall_seconds": MOST_SECONDS,
}


@value
class Usage:
    """What a run has used so far.

    Attributes:
        cost_nanousd: Nano-dollars of the calls whose price is known.
        unpriced_calls: Model calls whose price is not known; their cost is not in `cost_nanousd`.
        estimated_tokens: Tokens of all that were estimated, since the server did not report them.
        active_ms: Milliseconds in which a worker held the run.
    """

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_nanousd: int = 0
    unpriced_calls: int = 0
    estimated_tokens: int = 0
    active_ms: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def cost_usd(self) -> Decimal:
        """US dollars of the calls whose price is known; see `unpriced_calls` for the others."""
        return Decimal(self.cost_nanousd) / NANO

    def plus(self, other: "Usage", *, active_ms: int) -> "Usage":
        """Both together, at `active_ms` milliseconds of active time (which is a reading, not an amount)."""
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_nanousd=self.cost_nanousd + other.cost_nanousd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
            estimated_tokens=self.estimated_tokens + other.estimated_tokens,
            active_ms=max(self.active_ms, active_ms),
        )


NO_USAGE = Usage()


@value
class Reservation:
    """What is set aside for one model call before it is made.

    Attributes:
        output_tokens: The most the call may write; sent to the server as `max_tokens`.
        cost_nanousd: None where the model's price is not known.
        last: True for the last answer that the budget allows.
    """

    input_tokens: int
    output_tokens: int
    cost_nanousd: int | None = None
    last: bool = False

    def to_bytes(self) -> bytes:
        """JSON, defaults left out."""
        return _RESERVATION.serializer.to_json(self, exclude_defaults=True)

    @classmethod
    def of(cls, data: bytes) -> "Reservation":
        """The reservation that was written.

        Raises:
            ValueError: It cannot be read.
        """
        return _RESERVATION.validate_json(data)

    def as_usage(self) -> Usage:
        """The charge for a call whose real usage nobody will know: all that was reserved."""
        return Usage(
            model_calls=1,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_nanousd=self.cost_nanousd or 0,
            unpriced_calls=int(self.cost_nanousd is None),
            estimated_tokens=self.input_tokens + self.output_tokens,
        )


_RESERVATION: Final = TypeAdapter(Reservation)


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that leaves no room for the next call. `used` and `allowed` are in the limit's own unit, as text."""

    limit: str
    used: str
    allowed: str


class Elapsed(NamedTuple):
    """Two readings, taken outside: milliseconds in which workers held the run, and since it was submitted."""

    active_ms: int
    wall_ms: int


def left(budget: Budget, usage: Usage, step: int, elapsed: Elapsed) -> dict[str, Amount]:
    """What is left of every limit that is set, by its name, in its own unit. Never below zero."""
    return {
        name: _rest_of(name, limit, usage, step, elapsed)
        for name, limit in budget.__dict__.items()  # its fields, without a generator: asked for at every step
        if limit is not None
    }


def _rest_of(name: str, limit: Amount, usage: Usage, step: int, elapsed: Elapsed) -> Amount:
    used: Amount
    match name:
        case "max_steps":
            used = step
        case "max_active_seconds":
            used = elapsed.active_ms / 1000
        case "max_wall_seconds":
            used = elapsed.wall_ms / 1000
        case "max_cost_usd":
            return max(Decimal(limit) - usage.cost_usd, Decimal(0))
        case _:  # the name of what is used, behind `max_`
            used = getattr(usage, name[4:])
    return max(cast("float", limit) - cast("float", used), 0)


def low(budget: Budget, rest: Mapping[str, Amount]) -> dict[str, Amount]:
    """Of what is left, that of which less than a fifth of the limit is left."""
    return {name: amount for name, amount in rest.items() if float(amount) < float(getattr(budget, name)) * LOW_SHARE}


def out_of_time(budget: Budget, elapsed: Elapsed) -> Breach | None:
    """The limit of time that is used up, if one is."""
    if budget.max_active_seconds is None and budget.max_wall_seconds is None:
        return None
    for limit, used, allowed in (
        ("max_active_seconds", elapsed.active_ms / 1000, budget.max_active_seconds),
        ("max_wall_seconds", elapsed.wall_ms / 1000, budget.max_wall_seconds),
    ):
        if allowed is not None and used >= allowed:
            return Breach(limit, f"{used:g}", f"{allowed:g}")
    return None


def wall_ms_left(budget: Budget, elapsed: Elapsed) -> int | None:
    """Milliseconds until the wall time of a run is over; None without that limit."""
    return None if budget.max_wall_seconds is None else max(int(budget.max_wall_seconds * 1000) - elapsed.wall_ms, 0)


def reserve(
    budget: Budget,
    usage: Usage,
    step: int,
    elapsed: Elapsed,
    *,
    input_tokens: int,
    price: Price | None,
    wanted_output: int | None = None,
) -> Reservation | Breach:
    """What to set aside for the next model call, or the limit that leaves no room for it.

    Args:
        step: Steps already made.
        input_tokens: The (estimated) size of the request.
        wanted_output: Output tokens that the agent asks for; 4,096 where it does not say.
    """
    if (over := out_of_time(budget, elapsed)) is not None:
        return over
    for limit, used, allowed in (
        ("max_steps", step, budget.max_steps),
        ("max_model_calls", usage.model_calls, budget.max_model_calls),
    ):
        if allowed is not None and used >= allowed:
            return Breach(limit, in_words(used), in_words(allowed))
    last = (
        budget.max_steps == step + 1
        or budget.max_model_calls == usage.model_calls + 1
        or (budget.max_tool_calls is not None and usage.tool_calls >= budget.max_tool_calls)
    )
    wanted = wanted_output or DEFAULT_OUTPUT_TOKENS
    roomy = wanted if last else _room(budget, usage, input_tokens, price, wanted, spare=True)
    if isinstance(roomy, Breach) or roomy < min(LEAST_OUTPUT_TOKENS, wanted):
        last = True
    output = _room(budget, usage, input_tokens, price, wanted, spare=False) if last else roomy
    if isinstance(output, Breach):
        return output
    cost = None if price is None else price.cost(input_tokens, output)
    return Reservation(input_tokens=input_tokens, output_tokens=output, cost_nanousd=cost, last=last)


def _room(
    budget: Budget, usage: Usage, input_tokens: int, price: Price | None, wanted: int, *, spare: bool
) -> int | Breach:
    """Output tokens that one call of this size may make; with `spare`, so that a last answer still fits behind it.

    The last answer reads at least what this call reads and writes, and writes up to the kept tokens itself; so every limit
    is shared out between the two calls.
    """
    room = wanted
    tokens = (
        ("max_input_tokens", usage.input_tokens, budget.max_input_tokens, 1, 0),
        ("max_output_tokens", usage.output_tokens, budget.max_output_tokens, 0, 1),
        ("max_total_tokens", usage.total_tokens, budget.max_total_tokens, 1, 1),
    )
    for limit, used, allowed, reads, writes in tokens:
        if allowed is None:
            continue
        rest = allowed - used - reads * input_tokens
        if spare:
            kept = writes * min(LAST_ANSWER_TOKENS, allowed // 10)
            rest = (rest - reads * input_tokens - kept) // (reads + writes)
        if rest < writes:
            return Breach(limit, str(used), str(allowed))
        room = min(room, rest) if writes or spare else room
    if budget.max_cost_usd is not None and price is not None:
        allowed = int(budget.max_cost_usd * NANO)
        this, later = price.at(input_tokens), price.at(input_tokens + wanted)
        rest = allowed - usage.cost_nanousd - this.cost(input_tokens, 0)
        per_token = this.cost(0, 1)
        if spare:
            kept = min(later.cost(0, LAST_ANSWER_TOKENS), allowed // 10)
            rest -= later.cost(input_tokens, 0) + kept
            per_token += later.cost(1, 0)
        if rest < this.cost(0, 1):
            return Breach("max_cost_usd", in_words(usage.cost_usd), in_words(budget.max_cost_usd))
        room = min(room, rest // per_token) if per_token else room
    return room


def in_words(amount: Amount) -> str:
    """An amount in plain digits; seconds and dollars with as many as tell something."""
    if isinstance(amount, int):
        return str(amount)
    if isinstance(amount, float):
        return f"{amount:.3f}".rstrip("0").rstrip(".")
    return f"{amount.normalize():f}"
