"""Takes secrets out of text, for everything that leaves the process: log lines, stored errors, what a model reads.

In two ways. Secrets that Pawl was given (API keys, the password of Redis) are registered and found literally, however
they are escaped. Others are found by their shape, and rather one word too many than one key too few.
"""

import json
import re
from urllib.parse import quote

REDACTED = "[redacted]"

# A shorter text is not looked for: as a literal it would hit ordinary words. Shapes still find it.
SHORTEST_SECRET = 8

# The oldest are forgotten beyond this, so that a process that makes clients for ever does not grow.
MOST_SECRETS = 256

_NAME = (
    r"(?:api|secret|access|private)[-_ ]?key|(?:access|auth|refresh)[-_]?token"
    r"|secret|password|passwd|authorization"
)
_SEPARATOR = r"""(?:[\\"']*\s*[:=]|["']\s*,)\s*(?:b(?=["']))?"""
_VALUE = r"""(?:(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\n]))+|(?!\[redacted\])[^\s"',;&)}\]\\]+)"""

_KEY = re.compile(r"(?P<name>)(?:(?<![a-z])|(?<=\\[nrt]))sk-[A-Za-z0-9_-]{6,}")  # sk-… but not task-…
_BEARER = re.compile(r"(?P<name>bearer(?:\s|%20|\+)+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_URL = re.compile(r"""(?P<name>://[^\s/?#:@"']*:)(?!\d{1,5}/)[^\s"'<>]{1,512}(?=@)""")
_QUERY = re.compile(
    r"""(?P<name>[?&][\w.-]{0,64}(?:key|token|secret|password|passwd|sig|signature|auth)=)[^\s&#"'<>\\]+""",
    re.IGNORECASE,
)
_FIELD = re.compile(rf"(?P<name>(?:{_NAME}){_SEPARATOR})(?:(?:basic|digest)\s+)?{_VALUE}", re.IGNORECASE)

# In every text that a shape can match stands one of its words. Most texts hold none of them, and looking for a word
# costs nanoseconds where looking for a pattern costs microseconds.
_SHAPES = (
    ("sk-", _KEY),
    ("bearer", _BEARER),
    ("://", _URL),
    ("=", _QUERY),
    ("key", _FIELD),
    ("secret", _FIELD),
    ("passw", _FIELD),
    ("auth", _FIELD),
    ("access", _FIELD),
    ("refresh", _FIELD),
)

_SECRET_NAME = re.compile(rf"(?:{_NAME})$", re.IGNORECASE)

_registered: dict[str, None] = {}
_literals: tuple[str, ...] = ()


def register_secret(value: str | None) -> None:
    """From now on `redact` replaces this text wherever it stands. None, or fewer than 8 characters, changes nothing."""
    global _literals  # noqa: PLW0603 - replaced whole, so that readers in other threads see the old or the new
    if value is None or len(value) < SHORTEST_SECRET:
        return
    _registered.pop(value, None)
    _registered[value] = None
    while len(_registered) > MOST_SECRETS:
        _registered.pop(next(iter(_registered)))
    forms = {form for secret in tuple(_registered) for form in _written_forms(secret)}
    _literals = tuple(sorted(forms, key=len, reverse=True))


def redact(text: str) -> str:
    """The text with every secret in it replaced by `[redacted]`."""
    for literal in _literals:
        if literal in text:
            text = text.replace(literal, REDACTED)
    lowered = text.lower()
    for word, shape in _SHAPES:
        if word in lowered:
            text = shape.sub(_hide_the_value, text)
    return text


def names_a_secret(name: str) -> bool:
    """Whether a field of this name, such as `openai_api_key`, holds a secret whatever its value looks like."""
    return _SECRET_NAME.search(name) is not None


def _hide_the_value(match: re.Match[str]) -> str:
    """What names the secret stays, and its opening quote, so that the text still reads."""
    quote_mark = match.groupdict().get("quote") or ""
    return f"{match['name']}{quote_mark}{REDACTED}"


def _written_forms(secret: str) -> tuple[str, ...]:
    """As it is, in JSON, in a Python text, in a URL."""
    return secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")
