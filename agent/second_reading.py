"""Checks arguments the way that models mean them: what does not fit is read once more. Pure.

A text that does not fit is read as JSON, and a null that does not fit is left out, until all fits or nothing is left to read.
"""

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from agent.json_schema import Problem
from agent.text import well_formed

Value = TypeVar("Value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number that JSON has")
    return number


# Python's own reading takes NaN, Infinity and 1e999 as well, and NaN is past every minimum and maximum.
_JSON: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def validated(adapter: TypeAdapter[Value], arguments: Mapping[str, object]) -> Value:
    """The value of the arguments, as JSON has them, read once more where they do not fit.

    Raises:
        ValidationError: They do not fit. It speaks of the arguments as they were given.
    """
    text = _json_of(arguments)
    try:
        return adapter.validator.validate_json(text)
    except ValidationError as error:
        first = last = error
    reading = cast("dict[str, object]", json.loads(text))
    while _read_again(reading, (detail["loc"] for detail in last.errors(include_url=False, include_context=False))):
        try:
            return adapter.validator.validate_json(_json_of(reading))
        except ValidationError as error:
            last = error
    raise first


def fitting(
    arguments: dict[str, object], problems_of: Callable[[Mapping[str, object]], list[Problem]]
) -> tuple[dict[str, object], list[Problem]]:
    """The arguments, read once more where they do not fit, and no problems; or as they were given, and their problems.

    Args:
        problems_of: What does not fit, each with its path.
    """
    first = last = problems_of(arguments)
    reading = copy.deepcopy(arguments) if first else arguments
    while last and _read_again(reading, (path for path, _ in last)):
        last = problems_of(reading)
    return (arguments, first) if last else (reading, [])


def _json_of(arguments: Mapping[str, object]) -> bytes:
    try:
        return to_json(arguments)
    except PydanticSerializationError:  # lone surrogates
        return well_formed(json.dumps(arguments, ensure_ascii=False)).encode()


def _read_again(arguments: dict[str, object], places: Iterable[Sequence[int | str]]) -> bool:
    """Changes what did not fit: a text is read as JSON, and a null is left out. Tells whether there was any."""
    changed = False
    for place in places:
        holder, key = _located(arguments, place)
        if holder is None:
            continue
        value = holder[key]
        if isinstance(value, str):
            try:
                holder[key] = _JSON.decode(value)
            except (ValueError, RecursionError):
                continue
        elif value is None and isinstance(holder, dict):
            del holder[key]
        else:
            continue
        changed = True
    return changed


def _located(arguments: dict[str, object], location: Sequence[int | str]) -> tuple[Any, int | str]:
    """The object or list that holds what an error is about, and its key; names of union branches are passed over."""
    holder: Any = None
    key: int | str = ""
    current: Any = arguments
    for part in location:
        if isinstance(current, dict | list):
            container = cast(Any, current)
            place = int(part) if isinstance(current, list) and str(part).isdecimal() else part
            try:
                holder, key, current = container, place, container[place]
            except (KeyError, IndexError, TypeError):
                continue
    return holder, key
