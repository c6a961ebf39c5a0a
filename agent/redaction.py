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

_NAME = r"(?:api|secret|access|private)[-_ ]?key|(?:access|refresh)[-_]?token|secret|password|passwd"
_HEADER = r"authorization|auth[-_]?token|cookie"
_SEPARATOR = r"""(?:[\\"']*\s*[:=]|["']\s*,)\s*(?:b(?=["']))?"""
_QUOTED = r"""(?P<quote>\\*["'])(?:(?!(?P=quote))(?:\\.|[^\n]))+"""
_WORD = r"""[^\s"',;&)}\]\\]+"""
_WORDS = rf"(?:\[redacted\]|{_WORD})*+"
_PAIR = rf"""[\w.-]+=(?:\\*"(?!\s*[,:}}\]])[^"\n]*"|{_WORDS})"""

_FIELD = re.compile(
    rf"(?P<name>(?:{_NAME}){_SEPARATOR})(?:(?:basic|digest)\s+)?(?:{_QUOTED}|(?!\[redacted\]){_WORD})", re.IGNORECASE
)
# A header holds more than one word: a scheme and its value, which may be pairs of names and values, or many cookies.
_HEADER_FIELD = re.compile(
    rf"(?P<name>(?:{_HEADER}){_SEPARATOR})(?:[a-z][\w-]*[ \t]+)?"
    rf"(?:{_QUOTED}|(?:{_PAIR}|(?:\[redacted\]|{_WORD}){_WORDS})(?:[,;][ \t]*{_PAIR}|;[ \t]*[\w-]+)*)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<name>bearer(?:\s|%20|\+)+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_URL = re.compile(r"""(?P<name>://[^\s/?#:@"']*:)(?!\d{1,5}/)[^\s"'<>]{1,512}(?=@)""")
_QUERY = re.compile(
    r"""(?P<name>[?&][\w.-]{0,64}(?:key|token|secret|password|passwd|sig|signature|auth)=)[^\s&#"'<>\\]+""",
    re.IGNORECASE,
)

# What well-known services begin their keys with: OpenAI and many like it (but not task-…), GitHub, GitLab, Slack, Groq,
# Hugging Face, Google, AWS.
_KEY = re.compile(
    r"(?P<name>)(?:(?<![a-z])|(?<=\\[nrt]))(?:sk-[A-Za-z0-9_-]{6,}|gh[pousr]_[A-Za-z0-9]{10,}|github_pat_\w{10,}"
    r"|glpat-[A-Za-z0-9_-]{10,}|xox[abprs]-[A-Za-z0-9-]{10,}|(?:gsk|hf)_[A-Za-z0-9]{10,}|AIza[A-Za-z0-9_-]{20,}"
    r"|A[KS]IA[A-Z0-9]{12,})"
)

# Most texts hold no secret, and the step log looks at thousands of lines a second: so before a shape is looked for, a word
# is that stands in every text which the shape matches, or a sign. That costs nanoseconds, a shape costs microseconds.
_SHAPES = (
    ("bearer", _BEARER),
    ("@", _URL),
    ("=", _QUERY),
    ("key", _FIELD),
    ("secret", _FIELD),
    ("passw", _FIELD),
    ("access", _FIELD),
    ("refresh", _FIELD),
    ("auth", _HEADER_FIELD),
    ("cookie", _HEADER_FIELD),
)

# The beginnings of keys are too short and too many to be looked for as words. But each has a sign in common with others,
# which is found at once, and then only what stands before or behind it is compared.
_DASHED = re.compile(r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[abprs]-))").search
_UNDERSCORED = re.compile(r"_(?:(?<=(?:gh[pousr]|pat|gsk)_)|(?<=hf_))").search
_CAPITAL = re.compile(r"A(?:Iza|[KS]IA)").search

_SECRET_NAME = re.compile(rf"(?:{_NAME}|{_HEADER})$", re.IGNORECASE)

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
    if ("-" in text and _DASHED(text)) or ("_" in text and _UNDERSCORED(text)) or ("A" in text and _CAPITAL(text)):
        text = _KEY.sub(_hide_the_value, text)
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
