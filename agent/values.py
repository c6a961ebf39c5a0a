"""Values that are made at every step."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def value(cls: type[Class]) -> type[Class]:
    """A dataclass with slots that nobody changes: type checkers refuse it.

    At run time it is not frozen, for that makes the making of one three times as dear.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
