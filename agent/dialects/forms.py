"""A JSON Schema as a form that small models understand: the object itself, with words where its values go. PURE.

    {
      "customer": {"name": text of at most 30 characters, "city": text},
      "unit": "piece" or "box",
      "price": number  // Of all of it.
    }

A small model that reads JSON Schema takes its words and its limits for what it shall write.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

Node = Mapping[str, object]

_LINE: Final = 100
_WORDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}
_READ: Final = frozenset({
    "$ref", "type", "enum", "const", "anyOf", "oneOf", "properties", "required", "additionalProperties", "items",
    "description", "title", "default", "examples", "format", "pattern", "$defs", "definitions", "discriminator",
    "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
})  # fmt: skip
"""What can be said in words. A part that says anything else stays JSON Schema."""


def form_of(schema: Node, *, indent: str = "") -> str:
    """The form. Definitions that it refers to stand below it, by their names.

    Args:
        indent: What stands before each line but the first.
    """
    definitions = cast("Mapping[str, Node]", schema.get("$defs") or schema.get("definitions") or {})
    parts = [_form(schema, indent)]
    parts += [f"{name} is {_form(definition, indent)}" for name, definition in definitions.items()]
    return f"\n{indent}".join(parts)


def _form(node: Node, indent: str) -> str:
    if not set(node) <= _READ:
        return json.dumps(node, ensure_ascii=False)
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    choices = cast("Sequence[Node] | None", node.get("anyOf") or node.get("oneOf"))
    if choices:
        return " or ".join(_form(choice, indent) for choice in choices)
    values = [node["const"]] if "const" in node else cast("Sequence[object]", node.get("enum", ()))
    if values:
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in values)
    kind = node.get("type")
    if isinstance(kind, list):
        return " or ".join(_form({**node, "type": one}, indent) for one in cast("list[str]", kind))
    match kind:
        case "object":
            return _object(node, indent)
        case "array":
            return _list(node, indent)
        case str() if kind in _WORDS:
            return " ".join([_WORDS[kind], *_limits(node, kind)])
        case _:
            return "anything"


def _object(node: Node, indent: str) -> str:
    """On one line where it fits there and nothing is to be said of its fields, else a line for each."""
    properties = cast("Mapping[str, Node]", node.get("properties", {}))
    required = cast("Sequence[str]", node.get("required", ()))
    deeper = indent + "  "
    fields = [f"{json.dumps(name, ensure_ascii=False)}: {_form(field, deeper)}" for name, field in properties.items()]
    others = node.get("additionalProperties")
    if isinstance(others, Mapping):
        fields.append(f'"<name>": {_form(cast("Node", others), deeper)}, …')
    notes = [_note(field, optional=name not in required) for name, field in properties.items()] + [""]
    inline = "{" + ", ".join(fields) + "}"
    if not any(notes) and "\n" not in inline and len(inline) <= _LINE:
        return inline
    lines = (
        f"{deeper}{field}{',' if number < len(fields) else ''}{note}"
        for number, (field, note) in enumerate(zip(fields, notes, strict=False), start=1)
    )
    return "\n".join(["{", *lines, indent + "}"])


def _list(node: Node, indent: str) -> str:
    items = cast("Node", node.get("items") or {})
    amount = _range(node.get("minItems"), node.get("maxItems"), "items")
    different = ", all different" if node.get("uniqueItems") else ""
    return f"[{_form(items, indent)}, …]{f' of {amount}' if amount else ''}{different}"


def _note(field: Node, *, optional: bool) -> str:
    """What is to be said of a field behind it."""
    description = " ".join(str(field.get("description", "")).split())
    default = f" ({json.dumps(field['default'], ensure_ascii=False)} if left out)" if "default" in field else ""
    words = [description, f"May be left out{default}." if optional else ""]
    said = " ".join(word for word in words if word)
    return f"  // {said}" if said else ""


def _limits(node: Node, kind: str) -> Iterator[str]:
    if kind == "string":
        if "format" in node:
            yield f"({node['format']})"
        if "pattern" in node:
            yield f"that matches {node['pattern']}"
        if length := _range(node.get("minLength"), node.get("maxLength"), "characters"):
            yield f"of {length}"
        return
    if values := _range(node.get("minimum"), node.get("maximum")):
        yield f"({values})"
    if "exclusiveMinimum" in node:
        yield f"(more than {node['exclusiveMinimum']})"
    if "exclusiveMaximum" in node:
        yield f"(less than {node['exclusiveMaximum']})"


def _range(least: object, most: object, unit: str = "") -> str:
    if least is not None and most is not None:
        words = f"{least}" if least == most else f"{least} to {most}"
    elif most is not None:
        words = f"at most {most}"
    else:
        words = f"at least {least}" if least is not None else ""
    return f"{words} {unit}".rstrip() if words else ""
