"""Checks values against a JSON Schema that was written by hand. Strict: nothing is coerced. Pure.

It knows the words that tools use: type, enum, const, properties, required, additionalProperties, items, prefixItems,
the limits of numbers, texts and arrays, anyOf, oneOf, allOf, not, and references inside the schema. Others are ignored.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

Path = tuple[str, ...]
Problem = tuple[Path, str]

_TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


class JsonSchema:
    """A JSON Schema, ready to check values.

    Raises:
        ValueError: The schema itself is wrong; the message says where.
    """

    def __init__(self, schema: Mapping[str, object]) -> None:
        self._root = schema
        self._check(schema, ())

    def problems(self, value: object) -> Iterator[Problem]:
        """What does not fit, each with its path."""
        return self._problems(value, self._root, ())

    # What a value must be.

    def _problems(self, value: object, schema: object, path: Path) -> Iterator[Problem]:
        if schema is True or schema is False:
            if schema is False:
                yield path, "is not allowed"
            return
        words = cast("Mapping[str, object]", schema)
        if "$ref" in words:
            yield from self._problems(value, self._target(words["$ref"]), path)
        kinds = _as_list(words.get("type", []))
        if kinds and not any(_TYPES[cast(str, kind)](value) for kind in kinds):
            yield path, f"must be of type {' or '.join(map(str, kinds))}"
            return
        if "enum" in words and not _is_among(value, cast("Sequence[object]", words["enum"])):
            yield path, f"must be one of {words['enum']}"
        if "const" in words and not _is_among(value, [words["const"]]):
            yield path, f"must be {words['const']!r}"
        yield from self._combined(value, words, path)
        if isinstance(value, str):
            yield from _text_problems(value, words, path)
        elif isinstance(value, Mapping):
            yield from self._object_problems(cast("Mapping[str, object]", value), words, path)
        elif isinstance(value, list | tuple):
            yield from self._array_problems(cast("Sequence[object]", value), words, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _number_problems(value, words, path)

    def _combined(self, value: object, words: Mapping[str, object], path: Path) -> Iterator[Problem]:
        for schema in cast("Sequence[object]", words.get("allOf", ())):
            yield from self._problems(value, schema, path)
        for word in ("anyOf", "oneOf"):
            if word in words:
                choices = [
                    list(self._problems(value, choice, path)) for choice in cast("Sequence[object]", words[word])
                ]
                fitting = sum(not choice for choice in choices)
                if not fitting:
                    yield max(choices, key=_depth)[0]
                elif word == "oneOf" and fitting > 1:
                    yield path, "fits more than one of the allowed shapes"
        if "not" in words and not any(self._problems(value, words["not"], path)):
            yield path, "has a shape that is not allowed"

    def _object_problems(
        self, value: Mapping[str, object], words: Mapping[str, object], path: Path
    ) -> Iterator[Problem]:
        properties = cast("Mapping[str, object]", words.get("properties", {}))
        for name in cast("Sequence[str]", words.get("required", ())):
            if name not in value:
                yield (*path, name), "is required"
        for name, item in value.items():
            if name in properties:
                yield from self._problems(item, properties[name], (*path, name))
            elif words.get("additionalProperties") is False:
                yield (*path, name), "is not known here"
            elif "additionalProperties" in words:
                yield from self._problems(item, words["additionalProperties"], (*path, name))
        yield from _size_problems(len(value), words, ("minProperties", "maxProperties", "properties"), path)

    def _array_problems(self, value: Sequence[object], words: Mapping[str, object], path: Path) -> Iterator[Problem]:
        leading = cast("Sequence[object]", words.get("prefixItems", ()))
        for index, item in enumerate(value):
            schema = leading[index] if index < len(leading) else words.get("items", True)
            yield from self._problems(item, schema, (*path, str(index)))
        if words.get("uniqueItems") is True and any(_is_among(item, value[:i]) for i, item in enumerate(value)):
            yield path, "must not hold the same item twice"
        yield from _size_problems(len(value), words, ("minItems", "maxItems", "items"), path)

    def _target(self, reference: object) -> object:
        """What a reference such as `#/$defs/Item` points to."""
        target: object = self._root
        for part in str(reference).lstrip("#").split("/"):
            if part:
                name = part.replace("~1", "/").replace("~0", "~")
                target = cast("Mapping[str, object]", target).get(name) if isinstance(target, Mapping) else None
        return target

    # What a schema must be.

    def _check(self, schema: object, path: Path) -> None:
        if isinstance(schema, bool):
            return
        if not isinstance(schema, Mapping):
            raise ValueError(f"{_spelled(path)}: a schema must be an object, not {schema!r}")
        words = cast("Mapping[str, object]", schema)
        for kind in _as_list(words.get("type", [])):
            if kind not in _TYPES:
                raise ValueError(f"{_spelled(path)}: there is no type {kind!r}")
        for word in ("enum", "required", "anyOf", "oneOf", "allOf", "prefixItems"):
            if word in words and not isinstance(words[word], list | tuple):
                raise ValueError(f"{_spelled(path)}: {word} must be a list")
        if "pattern" in words:
            try:
                re.compile(cast(str, words["pattern"]))
            except (re.error, TypeError) as error:
                raise ValueError(f"{_spelled(path)}: the pattern cannot be read: {error}") from error
        if "$ref" in words and not isinstance(self._target(words["$ref"]), Mapping | bool):
            raise ValueError(f"{_spelled(path)}: {words['$ref']!r} points to nothing")
        for word, inner in _inner_schemas(words):
            self._check(inner, (*path, word))


def _inner_schemas(words: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for word in ("properties", "$defs", "definitions"):
        inner = words.get(word, {})
        if not isinstance(inner, Mapping):
            raise ValueError(f"{word} must be an object")
        yield from cast("Mapping[str, object]", inner).items()
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        yield from (
            (f"{word}.{index}", inner) for index, inner in enumerate(cast("Sequence[object]", words.get(word, ())))
        )
    for word in ("items", "additionalProperties", "not"):
        if word in words:
            yield word, words[word]


def _text_problems(value: str, words: Mapping[str, object], path: Path) -> Iterator[Problem]:
    yield from _size_problems(len(value), words, ("minLength", "maxLength", "characters"), path)
    if "pattern" in words and not re.search(cast(str, words["pattern"]), value):
        yield path, f"must match the pattern {words['pattern']}"


def _number_problems(value: float, words: Mapping[str, object], path: Path) -> Iterator[Problem]:
    limits = cast("Mapping[str, float]", words)
    if "minimum" in words and value < limits["minimum"]:
        yield path, f"must be at least {words['minimum']}"
    if "maximum" in words and value > limits["maximum"]:
        yield path, f"must be at most {words['maximum']}"
    if "exclusiveMinimum" in words and value <= limits["exclusiveMinimum"]:
        yield path, f"must be greater than {words['exclusiveMinimum']}"
    if "exclusiveMaximum" in words and value >= limits["exclusiveMaximum"]:
        yield path, f"must be less than {words['exclusiveMaximum']}"
    if "multipleOf" in words and not math.isclose(value / limits["multipleOf"], round(value / limits["multipleOf"])):
        yield path, f"must be a multiple of {words['multipleOf']}"


def _size_problems(
    size: int, words: Mapping[str, object], names: tuple[str, str, str], path: Path
) -> Iterator[Problem]:
    least, most, unit = names
    if least in words and size < cast(int, words[least]):
        yield path, f"must have at least {words[least]} {unit}"
    if most in words and size > cast(int, words[most]):
        yield path, f"must have at most {words[most]} {unit}"


def _depth(problems: Sequence[Problem]) -> int:
    """How far a value fitted before it did not: the choice that was meant goes deepest."""
    return max(len(path) for path, _ in problems)


def _is_among(value: object, values: Sequence[object]) -> bool:
    """Equality as JSON has it: true is not 1."""
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


def _as_list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]


def _spelled(path: Path) -> str:
    return ".".join(path) or "the schema"
