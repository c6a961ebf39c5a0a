"""Tool calls as servers send them, read into the one form that is stored. PURE.

Nothing is repaired by guessing: arguments that do not say one thing clearly become a `problem`, which the model reads
as the answer to its call. The same reply always reads the same, so that a resumed run sees the same ids.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, cast

from agent.messages import ToolCall
from agent.models.base import RawToolCall
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.text import bounded, well_formed

CUT_OFF: Final = "The arguments were cut off by the output limit; send a smaller payload. The tool was not executed."

_NO_NAME: Final = "The call names no tool. Nothing was executed."
_PREVIEW_LENGTH: Final = 60


class _UnusableArgumentsError(ValueError):
    """The arguments do not say one thing clearly. Its text is for the model."""


def read_calls(raw: Sequence[RawToolCall], *, step: int, finish_reason: str | None) -> tuple[ToolCall, ...]:
    """The calls of one reply, in order, each with an id of its own; equal calls stay two calls.

    Args:
        raw: The calls as the server sent them.
        step: The step that the reply belongs to; fresh ids are made from it.
        finish_reason: As the server wrote it. An output limit can only have cut the last call.
    """
    ids = _distinct_ids([call.id for call in raw], step)
    cut_at = len(raw) - 1 if finish_kind(finish_reason) is FinishKind.LENGTH else None
    return tuple(
        _read_call(call, call_id, may_be_cut=position == cut_at)
        for position, (call, call_id) in enumerate(zip(raw, ids, strict=True))
    )


def _read_call(raw: RawToolCall, call_id: str, *, may_be_cut: bool) -> ToolCall:
    name = well_formed(raw.name or "").strip()
    if not name:
        return ToolCall(id=call_id, name="", problem=_NO_NAME)
    try:
        return ToolCall(id=call_id, name=name, arguments=_canonical(raw.arguments, may_be_cut=may_be_cut))
    except _UnusableArgumentsError as problem:
        return ToolCall(id=call_id, name=name, problem=well_formed(str(problem)))


def _distinct_ids(given: Sequence[str | None], step: int) -> list[str]:
    """The given ids, with fresh ones in place of the missing and the repeated."""
    readable = [well_formed(call_id or "").strip() for call_id in given]
    taken = set(readable)
    ids: list[str] = []
    for index, call_id in enumerate(readable):
        if not call_id or call_id in ids:
            fresh = f"call_{step}_{index}"
            while fresh in taken:
                fresh += "_"
            ids.append(fresh)
        else:
            ids.append(call_id)
    return ids


def _canonical(arguments: str | Mapping[str, object] | None, *, may_be_cut: bool) -> str:
    """The arguments as compact JSON of an object.

    Raises:
        _UnusableArgumentsError: They do not say one thing clearly.
    """
    value = arguments if isinstance(arguments, Mapping) else _parsed(arguments or "", may_be_cut=may_be_cut)
    try:
        return well_formed(_encode(dict(value)))
    except (ValueError, RecursionError) as error:
        raise _UnusableArgumentsError(
            _not_executed("The arguments hold a number or a nesting beyond what JSON carries")
        ) from error


def _parsed(text: str, *, may_be_cut: bool) -> Mapping[str, object]:
    if not text.strip():
        if may_be_cut:
            raise _UnusableArgumentsError(CUT_OFF)
        return {}
    try:
        value = decode(text)
    except _UnusableArgumentsError:
        raise
    except json.JSONDecodeError as error:
        raise _UnusableArgumentsError(_explained(text, error, may_be_cut=may_be_cut)) from error
    except (ValueError, RecursionError) as error:
        raise _UnusableArgumentsError(
            _not_executed("The arguments hold a number or a nesting too large to read")
        ) from error
    if value is None or value in ([], ""):  # a list or a text that is empty is how some servers write no arguments
        return {}
    if not isinstance(value, dict):
        raise _UnusableArgumentsError(_not_executed("The arguments are not a JSON object"))
    return cast("dict[str, object]", value)


def decode(text: str) -> object:
    """The value that a model's JSON says.

    Raises:
        ValueError: It is not JSON, or does not say one thing clearly.
        RecursionError: It is nested too deep.
    """
    value: object = _decoder.decode(text)
    return value


def decode_beginning(text: str, start: int = 0) -> tuple[object, int]:
    """The value that begins at a place in a model's text, and where it ends.

    Raises:
        ValueError: It is not JSON, or does not say one thing clearly.
        RecursionError: It is nested too deep.
    """
    value, end = _decoder.raw_decode(text, start)
    return cast(object, value), end


def _explained(text: str, error: json.JSONDecodeError, *, may_be_cut: bool) -> str:
    has_more_behind = error.msg == "Extra data"
    if has_more_behind and text.lstrip().startswith("{") and text[error.pos] == "{":
        return _not_executed("The arguments hold several JSON objects glued together; send one call for each")
    ends_too_soon = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    if ends_too_soon or (may_be_cut and not has_more_behind):
        return CUT_OFF
    line = f"line {error.lineno} " if error.lineno > 1 else ""
    preview = bounded(text[max(0, error.pos - _PREVIEW_LENGTH // 2) :], _PREVIEW_LENGTH)
    return _not_executed(f"The arguments are invalid JSON at {line}column {error.colno}, near: {preview!r}")


def _not_executed(problem: str) -> str:
    return f"{problem}. The tool was not executed."


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _UnusableArgumentsError(
            _not_executed(f"The arguments have the duplicate key {bounded(repeated, _PREVIEW_LENGTH)}")
        )
    return value


def _refuse_constant(constant: str) -> NoReturn:
    raise _UnusableArgumentsError(_not_executed(f"The arguments hold {constant}, which is not JSON"))


# Not strict: a raw line break inside a string can mean one thing only.
_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates, parse_constant=_refuse_constant, strict=False
)
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
