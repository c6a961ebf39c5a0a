"""Reads arguments that did not fit once more, the way that models mean them. Pure."""

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic import ValidationError


def read_again(arguments: dict[str, object], error: ValidationError) -> dict[str, object] | None:
    """The arguments with each text that did not fit read as JSON and each such null left out; None if there is neither."""
    changed = False
    for detail in error.errors(include_url=False, include_context=False):
        holder, key = _located(arguments, detail["loc"])
        if holder is None:
            continue
        value = holder[key]
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                continue
        elif value is not None:
            continue
        if value is None and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = value
        changed = True
    return arguments if changed else None


def _located(arguments: dict[str, object], location: Sequence[int | str]) -> tuple[Any, int | str]:
    """The object or list that holds what an error is about, and its key; names of union branches are passed over."""
    holder: Any = None
    key: int | str = ""
    current: Any = arguments
    for part in location:
        if isinstance(current, dict | list):
            container = cast(Any, current)
            try:
                holder, key, current = container, part, container[part]
            except (KeyError, IndexError, TypeError):
                continue
    return holder, key
