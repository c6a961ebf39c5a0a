"""Reads the signatures of callables, also where annotations are strings or name what only an outer function knows."""

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

_MOST_LAYERS: Final = 100
"""Some objects have any attribute that they are asked for, `__wrapped__` too, and that without end."""


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    """The signature, with annotations as written.

    Raises:
        TypeError: It is not callable.
        ValueError: It has no signature that Python can tell, as some built-in functions.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - the module is new in 3.14

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def layers_of(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """The function and what lies beneath it, outermost first: beneath partials, decorators, methods, callable objects."""
    for _ in range(_MOST_LAYERS):
        yield function
        if isinstance(function, functools.partial):
            function = cast("functools.partial[object]", function).func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = cast("Callable[..., object]", getattr(function, "__wrapped__"))  # noqa: B009
        elif inspect.isroutine(function) or inspect.isclass(function):
            return
        else:
            function = type(function).__call__


def plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """What lies beneath partials, decorators, bound methods and callable objects."""
    *_, plain = layers_of(function)
    return plain


class Namespace:
    """Where the names in a function's annotations are looked up: module, enclosing functions, type parameters.

    Names that an enclosing function knows are found while that function is still running, as it is when a decorator
    is applied.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        plain = plain_function(function)
        if inspect.isclass(plain):
            self._globals: dict[str, object] = vars(sys.modules[plain.__module__])
            self._locals: dict[str, object] = dict(vars(plain))
            return
        self._globals = getattr(plain, "__globals__", {})
        self._locals = {
            **_defining_locals(getattr(plain, "__code__", None)),
            **_closure(plain),
            **{parameter.__name__: parameter for parameter in getattr(plain, "__type_params__", ())},
        }

    def resolve(self, annotation: object) -> object:
        """The annotation with all its names looked up; `Annotated` stays.

        Raises:
            NameError: A name is not known.
            Exception: Whatever the evaluation of a string annotation raises.
        """

        def holder() -> None: ...

        holder.__annotations__ = {"annotation": annotation}
        return typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)["annotation"]


def resolved_annotations(function: Callable[..., object]) -> Mapping[str, object]:
    """The annotations of the parameters, and of the result as `return`; those that cannot be resolved are left out."""
    try:
        signature = signature_of(function)
    except (TypeError, ValueError):
        return {}
    written = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    written["return"] = signature.return_annotation
    namespace = Namespace(function)
    resolved: dict[str, object] = {}
    for name, annotation in written.items():
        if annotation is inspect.Parameter.empty:
            continue
        try:
            resolved[name] = namespace.resolve(annotation)
        except Exception:  # noqa: S112 - evaluating a string can raise anything
            continue
    return resolved


def without_none(annotation: object) -> object:
    """The type inside `Annotated` and `Optional`; a union of several types stays as it is."""
    if typing.get_origin(annotation) is typing.Annotated:
        return without_none(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return without_none(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _defining_locals(code: types.CodeType | None) -> dict[str, object]:
    """The local names of the functions and classes in whose bodies the code stands, as far as they are running now."""
    found: dict[str, object] = {}
    frame = inspect.currentframe()
    while frame is not None and code is not None:
        if _holds(frame.f_code, code):
            found = {**frame.f_locals, **found}
            code = frame.f_code
        frame = frame.f_back
    return found


def _holds(outer: types.CodeType, inner: types.CodeType) -> bool:
    """Whether the inner code is defined directly in the outer; the hidden scope of type parameters does not count."""
    return any(
        constant is inner or (constant.co_name.startswith("<generic") and _holds(constant, inner))
        for constant in outer.co_consts
        if isinstance(constant, types.CodeType)
    )


def _closure(plain: object) -> dict[str, object]:
    names: tuple[str, ...] = getattr(getattr(plain, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(plain, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found
