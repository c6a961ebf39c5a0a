"""Values that are made at every step."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def value(cls: type[Class]) -> type[Class]:
    """A dataclass with slots that nobody changes: type checkers refuse it.

    At run time it is not frozen, for that makes the making of one three times as dear; nor is it a model of pydantic, which
    makes each look at an attribute dearer than the making.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def keyword_value(cls: type[Class]) -> type[Class]:
    """A `value` whose fields are all given by name."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
