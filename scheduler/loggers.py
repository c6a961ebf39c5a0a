"""Loggers of what also runs inside of a user's program: the client rings and mends there.

`pawl` configures structlog. Where nobody has, lines go to the standard library's logging, which the program leads where it
likes, instead of to its standard output.
"""

import logging
from typing import Any

import structlog


def get_logger(name: str) -> Any:
    """The logger of that name, as the program wants it."""
    if structlog.is_configured():
        return structlog.get_logger(name)
    plain = structlog.processors.KeyValueRenderer(key_order=["event"])
    return structlog.wrap_logger(
        logging.getLogger(name), processors=[plain], wrapper_class=structlog.stdlib.BoundLogger
    )
