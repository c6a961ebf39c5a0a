"""The command `pawl`. A file for each group of verbs; nothing heavy is imported before a verb needs it."""

import sys
from pathlib import Path


def main() -> None:
    """The entry point. Our packages come first, for users' files in the current folder may have the same names."""
    ours, here = str(Path(__file__).parents[2]), str(Path.cwd())
    sys.path[:] = [ours, *(path for path in sys.path if path not in ("", ours, here)), here]
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is no reason to fail
    from worker.cli.app import app  # noqa: PLC0415 - after the path is right

    if Path(".env").is_file():
        _load_env_file()
    app()


def _load_env_file() -> None:
    from agent.env_file import load_env_file  # noqa: PLC0415
    from agent.errors import ConfigurationError  # noqa: PLC0415
    from worker.cli.errors import complain, exit_code_of  # noqa: PLC0415

    try:
        load_env_file()
    except ConfigurationError as error:
        complain(str(error))
        sys.exit(exit_code_of(error))
