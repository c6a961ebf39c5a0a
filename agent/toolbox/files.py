"""Tools for text files within one folder."""

import codecs
import os
from typing import Final, NamedTuple

from agent.errors import ToolError
from agent.text import well_formed
from agent.toolbox.workspace import Workspace
from agent.tools import Tool, build_tool

_ENCODINGS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class FileTools(NamedTuple):
    """The tools of one folder. Give an agent all of them, as in `tools=[*file_tools("data")]`, or those that it needs."""

    read_file: Tool
    write_file: Tool
    list_files: Tool


def file_tools(root: str | os.PathLike[str], *, max_bytes: int = 1_000_000) -> FileTools:
    """Tools that read, write and list text files within a folder, and nothing outside of it.

    Args:
        root: The folder. Neither `..` nor a link leads out of it.
        max_bytes: The largest file that is read or written.

    Raises:
        ConfigurationError: The system cannot open files relative to a folder, or `max_bytes` is not above 0.
    """
    workspace = Workspace(root)

    def read_file(path: str) -> str:
        """Reads a text file.

        Args:
            path: Where it is, from the working folder on, such as `notes/today.txt`.
        """
        return decoded(workspace.read(path, max_bytes), path)

    def write_file(path: str, content: str) -> str:
        """Writes a text file, in place of what it held. Folders on the way are made.

        Args:
            path: Where it is, from the working folder on, such as `notes/today.txt`.
            content: The whole text.
        """
        encoded = well_formed(content).encode()
        if len(encoded) > max_bytes:
            raise ToolError(f"The text has {len(encoded):,} bytes; at most {max_bytes:,} can be written.")
        workspace.write(path, encoded)
        return f"Wrote {len(encoded):,} bytes to {path}."

    def list_files(path: str = ".") -> list[str]:
        """Lists a folder. The names of folders end with a slash.

        Args:
            path: The folder, from the working folder on; without it, the working folder itself.
        """
        return workspace.entries(path)

    return FileTools(*(build_tool(function, idempotent=True) for function in (read_file, write_file, list_files)))


def decoded(content: bytes, path: str) -> str:
    """The text of a file: in the encoding that its mark says, otherwise in UTF-8; what is none becomes U+FFFD.

    Raises:
        ToolError: It is no text.
    """
    mark, encoding = next((known for known in _ENCODINGS if content.startswith(known[0])), (b"", "utf-8"))
    text = content[len(mark) :].decode(encoding, "replace")
    if "\x00" in text:
        raise ToolError(f"{path!r} is not a text file.")
    return text
