"""Long tool results: the model reads the beginning, and a tool to read on; the whole stays in the run's events. Pure."""

from collections.abc import Mapping
from typing import Final

from pydantic import ConfigDict

from agent.errors import InvalidArguments
from agent.text import place_to_cut
from agent.tools import Tool

READ_RESULT: Final = "read_result"


class ResultReader(Tool):
    """Reads on in a result that was kept aside. The engine answers its calls; nothing is executed."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


def preview(content: str, call: str, shown: int) -> str:
    """What the model reads of a long result: its beginning, and how to read on."""
    end = place_to_cut(content, shown)
    more = f"{len(content) - end:,} more characters"
    return f'{content[:end]}\n[… {more}. To read on: {READ_RESULT}(call="{call}", offset={end})]'


def reader_tool() -> ResultReader:
    """The tool to read on, offered once there is something to read."""
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "Which result, as its end says."},
            "offset": {"type": "integer", "minimum": 0, "description": "The first character to read."},
        },
        "required": ["call", "offset"],
        "additionalProperties": False,
    }
    description = "Read on in a tool's result that was too long to be shown whole."
    return ResultReader(
        name=READ_RESULT, description=description, parameters=parameters, function=_nobody, idempotent=True
    )


def read_on(tool: ResultReader, arguments: str, aside: Mapping[str, str], length: int) -> str:
    """The next part of a result.

    Raises:
        InvalidArguments: There is no such result, or it ends before the offset.
    """
    given = tool.validate_arguments(arguments)
    call, offset = str(given["call"]), int(str(given["offset"]))
    content = aside.get(call)
    if content is None:
        raise InvalidArguments(f"call: there is no result {call!r} to read on; there are {', '.join(aside) or 'none'}")
    if offset >= len(content):
        raise InvalidArguments(f"offset: the result has {len(content):,} characters")
    end = place_to_cut(content, offset + length)
    part = content[offset:end]
    return part if end >= len(content) else f"{part}\n[… {len(content) - end:,} more characters, from offset={end}]"


def _nobody(**arguments: object) -> str:
    raise RuntimeError("this tool is answered by the engine, never executed")
