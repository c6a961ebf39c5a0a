"""Takes secrets out of what the HTTP client logs: it writes whole URLs, whatever they hold."""

import logging
from typing import Final

from agent.redaction import redact

_LOGGERS: Final = ("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy")


class _Redacting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact(record.getMessage())
        record.args = None
        return True


_redacting: Final = _Redacting()


def redact_http_logs() -> None:
    """From now on the HTTP client's own log lines hold no known secret. May be called again."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_redacting)
