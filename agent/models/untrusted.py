"""Reads JSON that somebody else wrote: what has another shape than expected is as good as absent. PURE."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from agent.text import well_formed_json

_UNREAL: Final = 1e15
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def parsed(data: bytes) -> object:
    """The value that the bytes hold, with texts that UTF-8 can carry.

    Raises:
        ValueError: They are not JSON, or nested too deeply.
    """
    try:
        value: object = json.loads(data, parse_constant=_nothing)
        if _ESCAPED_SURROGATE.search(data):
            value = well_formed_json(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def mapping(value: object) -> Mapping[str, object]:
    """The object, or an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def items(value: object) -> Sequence[object]:
    """The list, or an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def text(value: object) -> str | None:
    """The text, or None."""
    return value if isinstance(value, str) else None


def amount(value: object) -> float | int | None:
    """A number from 0 on that something real can have, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _UNREAL else None


def count(value: object) -> int | None:
    """A whole number from 0 on, or None."""
    number = amount(value)
    return None if number is None or number != int(number) else int(number)


def _nothing(_constant: str) -> None:
    """NaN and the infinities, which are not JSON."""
