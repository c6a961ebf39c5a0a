"""What a tool returned, as the text that the model reads. Pure."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agent.errors import UnrenderableResult
from agent.text import bounded, place_to_cut, well_formed, words_of


def render_result(value: object) -> str:
    """The text of a tool's result.

    Text stays as it is. A model is its JSON. Dicts, lists, tuples, sets and dataclasses are JSON, in which dates are
    in ISO 8601, decimals are texts, and bytes are URL-safe base64. An exception is its type and text. Anything else is
    what `str` makes of it, where its class says more than that it is an object. Lone surrogates become U+FFFD.

    Raises:
        UnrenderableResult: It cannot be shown as text. That is no reason to call the tool again.
    """
    if isinstance(value, str) and not isinstance(value, Enum):
        return well_formed(value)
    try:
        return well_formed(_rendered(value))
    except Exception as error:
        raise UnrenderableResult(
            f"The tool was executed, but its result, of type {type(value).__name__}, cannot be shown as text: "
            f"{bounded(words_of(error), 300)}"
        ) from error


def jsonable(value: Any, fallback: Callable[[Any], object]) -> object:
    """A value as what JSON can carry.

    Args:
        fallback: What to make of an object that JSON does not know.
    """
    try:
        return to_jsonable_python(value, bytes_mode="base64", fallback=fallback)
    except UnicodeError:  # keys with lone surrogates, or a model's bytes, which it writes as UTF-8
        return to_jsonable_python(_opened(value), bytes_mode="base64", fallback=fallback)


def cut(text: str, limit: int) -> str:
    """The text in at most `limit` bytes of UTF-8: its start, and a note of how much was left out.

    Characters that are shown as one, such as an emoji with its skin tone, are kept or left out as one.

    Raises:
        ValueError: The limit has no room for the note.
    """
    whole = text.encode()
    if len(whole) <= limit:
        return text
    room = limit - len(_left_out(len(whole)).encode())
    if room < 0:
        raise ValueError(f"a limit of {limit} bytes leaves no room to say that something was left out")
    kept = text[: place_to_cut(text, len(whole[:room].decode(errors="ignore")))]
    return kept + _left_out(len(whole) - len(kept.encode()))


def _rendered(value: Any) -> str:
    if value is None or (isinstance(value, bool | int | float) and not isinstance(value, Enum)):
        return str(value)
    if isinstance(value, BaseModel):
        try:
            return value.model_dump_json()
        except (PydanticSerializationError, UnicodeError):  # lone surrogates, bytes that are no text, unknown objects
            return json.dumps(jsonable(value, _plainer), ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, datetime | date | time | timedelta | Decimal | Enum | bytes | bytearray | memoryview):
        return str(jsonable(value, _plainer))
    plain = jsonable(value, _plainer)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _opened(value: Any) -> Any:
    """The same with well-formed keys, and with dicts in place of models, whose bytes then are bytes like others."""
    if isinstance(value, BaseModel):
        return _opened(value.model_dump())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _opened(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {well_formed(key) if isinstance(key, str) else key: _opened(item) for key, item in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_opened(item) for item in cast("Iterable[Any]", value)]
    return value


def _plainer(value: Any) -> object:
    """What an object that JSON does not know is shown as: a dict, a list, or its text.

    Raises:
        TypeError: It has none that says anything.
    """
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, memoryview):
        return bytes(cast("memoryview[int]", value))
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, Sequence | Set | Iterator):
        return list(cast("Iterable[object]", value))
    has_text = type(value).__str__ is not object.__str__ or type(value).__repr__ is not object.__repr__
    if not has_text or callable(value) or inspect.isawaitable(value):
        raise TypeError(f"objects of type {type(value).__name__} have no text")
    return str(value)


def _left_out(size: int) -> str:
    return f"… [{size:,} bytes left out]"
