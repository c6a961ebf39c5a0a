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
_AUTH = r"authorization|auth[-_]?token"

# What stands between a name and its value, with the bracket of a list; and what is no value, but the type or the lack of one.
_OPENED = r"""\s*+(?P<open>(?:\[(?!redacted\])|[({])\s*+)?+(?:b(?=["']))?+"""
_SEPARATOR = rf"""(?:[\\"']*\s*[:=]|["']\s*,){_OPENED}"""
_VALUE = r"(?!(?:null|none|true|false|any|str|int|float|bool|bytes|dict|list|optional)(?![\w+/-]))"

_CHARACTERS = r"(?:(?!(?P=quote))(?:\\.|[^\n]))++"
_TEXT = rf"""(?P<quote>\\*["']){_CHARACTERS}"""
# All texts of a list; but the first of an object is the name of another field.
_QUOTED = rf"{_TEXT}(?(open)(?!(?P=quote)\s*:)(?:(?P=quote)\s*,\s*(?P=quote){_CHARACTERS})*+)"
_WORD = r"""[^\s"',;&)}\]\\]+"""
_WORDS = rf"(?:\[redacted\]|{_WORD})*+"
_PAIR = rf"""[\w.-]+=(?:\\*"(?!\s*[,:}}\]])[^"\n]*"|{_WORDS})"""

_FIELD = re.compile(
    rf"(?P<name>(?:{_NAME}){_SEPARATOR}){_VALUE}(?:(?:basic|digest)\s+)?(?:{_QUOTED}|(?!\[redacted\]){_WORD})",
    re.IGNORECASE,
)
# More than one word: a scheme and its value. Pairs of names and values go on behind a comma only where the scheme has such:
# otherwise they are the fields that stand behind this one.
_AUTH_FIELD = re.compile(
    rf"(?P<name>(?:{_AUTH}){_SEPARATOR}){_VALUE}"
    rf"(?:(?:digest|signature|oauth|token|hawk|mac|\w+-(?:hmac|rsa)-\w+)[ \t]+{_PAIR}(?:,[ \t]*{_PAIR})*"
    rf"|(?:[a-z][\w-]*[ \t]+)?(?:{_QUOTED}|(?:\[redacted\]|{_WORD}){_WORDS}))",
    re.IGNORECASE,
)
_COOKIE_IN_QUOTES = r"""[\w.-]+='(?!\s*[,:)}\]>])[^'\n]*'"""
# Cookies are pairs, or a text, or an object of texts. What else stands behind the word is prose, or code.
_COOKIES = re.compile(
    rf"""(?P<name>cookies?(?:[\\"']*\s*[:=]|["']\s*,(?=\s*b?["'][^\s"'=]+=)){_OPENED})"""
    rf"""(?:(?P<object>\\*["'][^\s"'\\]+\\*["']\s*:[^{{}}]*)|{_QUOTED}"""
    rf"""|{_COOKIE_IN_QUOTES}(?:[ \t]+{_COOKIE_IN_QUOTES})*|{_PAIR}(?:;[ \t]*(?:{_PAIR}|[\w-]+))*)""",
    re.IGNORECASE,
)
_TEXT_OF_OBJECT = re.compile(rf"(?P<name>:\s*+){_TEXT}")
_BEARER = re.compile(r"(?P<name>bearer(?:\s|%20|\+)+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_URL = re.compile(r"""(?P<name>://[^\s/?#:@"']*:)(?!\d{1,5}/)[^\s"'<>]{1,512}(?=@)""")
_QUERY = re.compile(
    r"""(?P<name>[?&][\w.-]{0,64}(?:key|token|secret|password|passwd|sig|signature|auth)=)[^\s&#"'<>\\]+""",
    re.IGNORECASE,
)

# What well-known services begin their keys with: OpenAI and many like it (but not task-…), GitHub, GitLab, Slack, Groq,
# Hugging Face, Google, AWS. Where names in code begin in the same way, a key is told by its length and by a digit.
_KEY = re.compile(
    r"(?P<name>)(?:(?<![a-z])|(?<=\\[nrt]))(?:sk-[A-Za-z0-9_-]{6,}|gh[pousr]_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{30,}"
    r"|github_pat_\w{10,}|glpat-[A-Za-z0-9_-]{10,}|xox[abprs]-[A-Za-z0-9-]{10,}|gsk_(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{40,}"
    r"|hf_[A-Za-z0-9]{30,}|AIza[A-Za-z0-9_-]{20,}|A[KS]IA(?=[A-Z]{0,15}\d)[A-Z0-9]{16}(?![A-Za-z0-9]))"
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
    ("auth", _AUTH_FIELD),
    ("cookie", _COOKIES),
)

# The beginnings of keys are too short and too many to be looked for as words. But each has a sign in common with others,
# which is found at once, and then only what stands before or behind it is compared.
_DASHED = re.compile(r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[abprs]-))").search
_UNDERSCORED = re.compile(r"_(?:(?<=(?:gh[pousr]|pat|gsk)_)|(?<=hf_))").search
_CAPITAL = re.compile(r"A(?:Iza|[KS]IA)").search

_SECRET_NAME = re.compile(rf"(?:{_NAME}|{_AUTH}|cookie)$", re.IGNORECASE)

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
    groups = match.groupdict()
    if groups.get("object"):
        return match["name"] + _TEXT_OF_OBJECT.sub(_hide_the_value, match["object"])
    quote_mark = groups.get("quote") or ""
    return f"{match['name']}{quote_mark}{REDACTED}"


def _written_forms(secret: str) -> tuple[str, ...]:
    """As it is, in JSON, in a Python text, in a URL."""
    return secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")
