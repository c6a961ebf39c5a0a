"""Makes `typing.TypedDict` known to pydantic, which before Python 3.12 takes only that of typing_extensions."""

import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Required, cast

from typing_extensions import TypedDict


def with_known_typed_dicts(annotation: object, opened: tuple[object, ...] = ()) -> object:
    """The annotation, in which every `typing.TypedDict` is replaced by one that pydantic takes.

    Args:
        annotation: Any type, with the names in it resolved.
        opened: The classes that are being replaced; one that holds itself stays as it is, and pydantic refuses it.
    """
    if sys.version_info >= (3, 12) or annotation in opened:
        return annotation
    if isinstance(annotation, type) and typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _replaced(annotation, (*opened, annotation))
    arguments = typing.get_args(annotation)
    changed = tuple(with_known_typed_dicts(argument, opened) for argument in arguments)
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    origin = typing.get_origin(annotation)
    generic = typing.Union if origin is types.UnionType else Annotated if origin is Annotated else origin
    return cast(Any, generic)[changed]


def _replaced(typed_dict: type, opened: tuple[object, ...]) -> object:
    required = cast("frozenset[str]", cast(Any, typed_dict).__required_keys__)
    fields: dict[str, object] = {}
    for name, hint in typing.get_type_hints(typed_dict, include_extras=True).items():
        bare = typing.get_args(hint)[0] if typing.get_origin(hint) in {Required, NotRequired} else hint
        kind = cast(Any, with_known_typed_dicts(bare, opened))
        fields[name] = Required[kind] if name in required else NotRequired[kind]
    make = cast("Callable[[str, dict[str, object]], type]", TypedDict)
    made = make(typed_dict.__name__, fields)
    made.__doc__ = typed_dict.__doc__
    return made
