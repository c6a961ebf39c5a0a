"""A file `.env` beside the code: keys and addresses that are nobody else's business, one `NAME=value` on a line.

`pawl` reads the one of the current folder. What the environment says already wins.
"""

import os
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from agent.errors import ConfigurationError

FILE_NAME: Final = ".env"

_LINE: Final = re.compile(
    r"""\s* (?:export\s+)? (?P<name>[A-Za-z_]\w*) \s*=\s*
    (?: "(?P<double>[^"]*)" | '(?P<single>[^']*)' | (?P<plain>[^\s"'#][^#]*?|) ) \s* (?:\#.*)?""",
    re.VERBOSE | re.ASCII,
)


def load_env_file(
    path: str | os.PathLike[str] = FILE_NAME, environment: MutableMapping[str, str] = os.environ
) -> list[str]:
    """Puts what the file says into the environment, where that says nothing. A file that is not there says nothing.

    Returns:
        The names that were set.

    Raises:
        ConfigurationError: A line cannot be read. The message has its number, and not what it says.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{os.fspath(path)} cannot be read: {type(error).__name__}") from error
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        read = _LINE.fullmatch(line)
        if read is None:
            raise ConfigurationError(
                f"{os.fspath(path)}, line {number}: write NAME=value, or NAME='a value with spaces'"
            )
        value = next((found for found in (read["double"], read["single"]) if found is not None), read["plain"] or "")
        if read["name"] not in environment:
            environment[read["name"]] = value
            names.append(read["name"])
    return names
