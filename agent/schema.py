"""JSON Schemas as providers take them: made from Python types by pydantic, then put into plainer words. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from agent.json_schema import JsonSchema
from agent.text import bounded

Schema = dict[str, object]

_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SINGLES: Final = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"})

_OF_ALL_TYPES: Final = frozenset({"title", "description", "default", "examples", "$defs", "definitions"})
"""What is said of a value whatever its type is."""

_WORDS_OF_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "array": frozenset({"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "patternProperties", "propertyNames", "required", "additionalProperties"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
}

_LONGEST_REASON: Final = 300

_LARGEST_INLINED: Final = 5_000
"""Schemas that would have more nodes than this when written out keep their references."""


def schema_of(adapter: "TypeAdapter[Any]") -> Schema:
    """The schema of what the adapter accepts.

    Definitions are written where they are used; only recursive ones stay references. Every array says what its items
    are, tuples are arrays of a fixed length, and there are neither titles nor null defaults.

    Raises:
        PydanticUserError: No schema can be made of the type.
    """
    return _Tidy(cast(Schema, adapter.json_schema(schema_generator=_WholeJsonSchema))).root()


def why_no_schema(error: BaseException) -> str:
    """What is wrong with a type, without pydantic's advice, which would not give it a schema either."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return bounded(line.partition(". Set `arbitrary_types_allowed")[0], _LONGEST_REASON)


def portable(schema: Mapping[str, object], *, depth: int = 3) -> Schema:
    """The same schema for providers that take neither references, nor lists of types, nor enumerations of anything but strings.

    What a model writes by it still fits the tool: a text that does not fit is read once more.

    Args:
        schema: The parameters of a tool.
        depth: How often a recursive definition is written out inside itself before it is cut to `{"type": "object"}`.
    """
    definitions = _definitions(schema)

    def written_out(node: Schema, opened: tuple[str, ...]) -> Schema:
        name = _referenced(node)
        if name in definitions:
            if opened.count(name) > depth:
                return {"type": "object"}
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            return written_out({**definitions[name], **siblings}, (*opened, name))
        children = _map_children(_one_type_each(node), lambda child: written_out(child, opened))
        return _portable_words(_plain_words(children))

    kinds = schema.get("type")
    is_object = isinstance(kinds, list) and "object" in kinds  # arguments are never null
    return written_out({**schema, "type": "object"} if is_object else dict(schema), ())


class _WholeJsonSchema(GenerateJsonSchema):
    """Pydantic's schema, which refuses a union of which one choice cannot be expressed, instead of leaving it out."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)


class _Tidy:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._definitions = _definitions(schema)
        self._kept = {name for name in self._definitions if name in self._reachable(name)}
        if self._size(schema) > _LARGEST_INLINED:
            self._kept = set(self._definitions)

    def root(self) -> Schema:
        name = _referenced(self._schema)
        root = self._tidied(self._definitions.get(name, self._schema))
        root.pop("$defs", None)
        kept = {name: self._tidied(self._definitions[name]) for name in sorted(self._kept)}
        return {**root, **({"$defs": kept} if kept else {})}

    def _tidied(self, node: Schema) -> Schema:
        name = _referenced(node)
        if name in self._definitions and name not in self._kept:
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            return self._tidied({**self._definitions[name], **siblings})
        return _plain_words(_map_children(node, self._tidied))

    def _reachable(self, start: str) -> set[str]:
        """The definitions that a definition refers to, directly or through others."""
        found: set[str] = set()
        pending = [start]
        while pending:
            new = {name for node in _nodes(self._definitions[pending.pop()]) if (name := _referenced(node))} - found
            found |= new
            pending += [name for name in new if name in self._definitions]
        return found

    def _size(self, schema: Schema) -> int:
        """How many nodes the schema has when written out."""

        @cache
        def size_of(name: str) -> int:
            return 1 if name in self._kept else size(self._definitions[name])

        def size(node: Schema) -> int:
            names = [_referenced(inner) for inner in _nodes(node)]
            return len(names) + sum(size_of(name) for name in names if name in self._definitions)

        return size({key: value for key, value in schema.items() if key != "$defs"})


def _plain_words(node: Schema) -> Schema:
    """One node, in the words that all providers know."""
    plain = {key: value for key, value in node.items() if key not in {"title", "discriminator"}}
    if "default" in plain and plain["default"] is None:
        del plain["default"]
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    if "oneOf" in plain and "anyOf" not in plain:
        plain["anyOf"] = plain.pop("oneOf")
    kinds = cast("list[Schema] | None", plain.pop("prefixItems", None))
    if kinds is not None:
        distinct = [kind for position, kind in enumerate(kinds) if kind not in kinds[:position]]
        plain["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    if plain.get("type") == "array" and plain.get("items") in (None, {}, True, False):
        plain["items"] = {"type": "string"}
    return plain


def _one_type_each(node: Schema) -> Schema:
    """A node that allows several types, as a choice between them; each with what is said of values of its type. Where no type
    is left that a value could have, the node says none."""
    kinds = node.get("type")
    if not isinstance(kinds, list):
        return node
    allowed = [node["const"]] if "const" in node else cast("list[object] | None", node.get("enum"))
    of_all = {key: value for key, value in node.items() if key in _OF_ALL_TYPES}
    rest = {key: value for key, value in node.items() if key not in {"type", "enum", "const", *_OF_ALL_TYPES}}
    choices: list[Schema] = []
    for kind in cast("list[str]", kinds):
        values = [value for value in allowed or () if _is_of_type(kind, value)]
        if values or allowed is None:
            said = {key: value for key, value in rest.items() if key not in _words_of_others(kind)}
            choices.append({"type": kind, **said, **({"enum": values} if values and kind != "null" else {})})
    if not choices:
        return {key: value for key, value in node.items() if key != "type"}
    return {**of_all, **choices[0]} if len(choices) == 1 else {**of_all, "anyOf": choices}


def _words_of_others(kind: str) -> set[str]:
    own = "number" if kind == "integer" else kind
    return {word for other, words in _WORDS_OF_TYPES.items() if other != own for word in words}


def _is_of_type(kind: str, value: object) -> bool:
    return not any(JsonSchema({"type": kind}).problems(value))


def _portable_words(node: Schema) -> Schema:
    """One node, with a type, and with texts where it enumerates anything else."""
    plain = {key: value for key, value in node.items() if key not in {"$defs", "definitions"}}
    if "enum" in plain:
        plain["type"] = "string"
        plain["enum"] = [_text(value) for value in cast("list[object]", plain["enum"])]
        if "default" in plain:
            plain["default"] = _text(plain["default"])
    elif not set(plain) & {"type", "anyOf", "oneOf", "allOf"}:
        plain["type"] = "object" if "properties" in plain else "array" if "items" in plain else "string"
    return plain


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _definitions(schema: Mapping[str, object]) -> dict[str, Schema]:
    return cast("dict[str, Schema]", schema.get("$defs") or schema.get("definitions") or {})


def _referenced(node: Mapping[str, object]) -> str:
    """The name of the definition that a node refers to, or ''."""
    reference = node.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else ""


def _map_children(node: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """The node with each schema directly inside it changed. True and False, for anything and nothing, say no more than {}."""

    def changed_child(child: object) -> Schema:
        return change(cast(Schema, child) if isinstance(child, dict) else {})

    changed: Schema = {}
    for key, value in node.items():
        if key in _SINGLES and isinstance(value, dict):
            changed[key] = change(cast(Schema, value))
        elif key in _LISTS and isinstance(value, list):
            changed[key] = [changed_child(child) for child in cast("list[object]", value)]
        elif key in _MAPS and isinstance(value, dict):
            changed[key] = {name: changed_child(child) for name, child in cast("dict[str, object]", value).items()}
        else:
            changed[key] = value
    return changed


def _nodes(node: Schema) -> Iterator[Schema]:
    """The node and all schemas inside it."""
    children: list[Schema] = []

    def remember(child: Schema) -> Schema:
        children.append(child)
        return child

    _map_children(node, remember)
    yield node
    for child in children:
        yield from _nodes(child)
