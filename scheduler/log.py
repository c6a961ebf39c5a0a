"""How Pawl's processes log: a JSON line for each event outside a terminal, a readable one in it, no secret in either.

`configure` is called by the command `pawl` alone, never on import: in your own program, your own logging stands.
"""

import contextlib
import logging
import sys
import threading
import time
import types
from functools import lru_cache, partial
from typing import Literal, TextIO

import structlog
from pydantic_core import to_json
from structlog.typing import EventDict, WrappedLogger

from agent.redaction import REDACTED, names_a_secret, redact
from agent.text import well_formed
from scheduler.printable import printable

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["auto", "console", "json"]

# They tell every request at INFO; their warnings are wanted, the rest only by those who ask for it.
TALKATIVE_LIBRARIES = ("asyncio", "httpcore", "httpx", "redis", "rq")


def configure(
    *, level: Level = "info", library_level: Level = "warning", form: Form = "auto", stream: TextIO | None = None
) -> None:
    """Sets up structlog; the standard library's logging, warnings and uncaught errors become lines of the same kind.

    Args:
        level: The least that is shown.
        library_level: The least that is shown of talkative libraries (HTTP, Redis, RQ, asyncio).
        form: JSON, or for people; "auto" looks whether the stream is a terminal.
        stream: Where the lines go; stderr if not given.
    """
    target = stream if stream is not None else sys.stderr
    for_people = form == "console" or (form == "auto" and target.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            ConsoleLine(colors=target.isatty()) if for_people else json_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=partial(LineWriter, target),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[Bridge()], level=level.upper(), force=True)
    levels = logging.getLevelNamesMapping()
    for name in TALKATIVE_LIBRARIES:
        logging.getLogger(name).setLevel(max(levels[level.upper()], levels[library_level.upper()]))
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = lambda uncaught: _log_uncaught(uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)


def json_line(logger: WrappedLogger, level: str, event: EventDict) -> str:
    """The last processor outside a terminal. The step log writes thousands of lines a second: no pass too many."""
    line = {"timestamp": _now(), "level": level, "logger": logger.name, **event}
    try:
        text = to_json(line, fallback=_text_of, inf_nan_mode="strings")
    except (TypeError, ValueError, RecursionError):  # half a character, bytes, a ring
        plain = {name: value if isinstance(value, int) else _text_of(value) for name, value in line.items()}
        text = to_json(plain)
    return redact(text.decode())


class ConsoleLine:
    """The last processor in a terminal. Looks for secrets before the colours come between a name and its value."""

    def __init__(self, *, colors: bool) -> None:
        self._render = structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback, sort_keys=False
        )

    def __call__(self, logger: WrappedLogger, level: str, event: EventDict) -> str:
        line = {"timestamp": _now(), "level": level, "logger": logger.name}
        for name, value in event.items():
            line[name] = REDACTED if names_a_secret(name) else redact(printable(_text_of(value)))
        return redact(self._render(logger, level, line))


class LineWriter:
    """What structlog calls a logger: it gets rendered lines. A full disk or a closed pipe costs lines, not runs."""

    def __init__(self, stream: TextIO, name: str = "pawl") -> None:
        self.name = name
        self._write = stream.write
        self._flush = stream.flush

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._write(line + "\n")
            self._flush()

    debug = info = warning = error = critical = msg


_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class Bridge(logging.Handler):
    """Leads records of the standard library's logging into structlog, and so past the redaction."""

    def emit(self, record: logging.LogRecord) -> None:
        level = max(known for known in _LEVELS if known <= max(record.levelno, logging.DEBUG))
        structlog.get_logger().log(level, _message_of(record), logger=record.name, exc_info=record.exc_info or None)


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # arguments that do not fit the text
        return f"{record.msg} {record.args}"


def _now() -> str:
    milliseconds = time.time_ns() // 1_000_000
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=2)  # many lines are of one second
def _second(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(number))


def _text_of(value: object) -> str:
    """A log line never raises into what it tells about."""
    try:
        return well_formed(str(value))
    except Exception as error:
        return f"<{type(value).__name__} that cannot be printed: {type(error).__name__}>"


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, traceback: types.TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error or kind(), traceback)
        return
    structlog.get_logger().critical("uncaught_error", exc_info=error)
