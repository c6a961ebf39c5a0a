"""PURE. Texts for terminals. Those of runs are somebody else's: nothing in them may steer one."""

import re
from typing import Final

# Control characters but for newline and tab, and those that turn the direction of writing.
_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with all that could steer a terminal written out, such as `\\x1b`."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable_json(line: str) -> str:
    """A line of JSON whose strings hold nothing that could steer a terminal; it means the same."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
