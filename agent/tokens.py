"""How many tokens a text may be, without a tokenizer and without a download. Pure.

The estimate follows how byte-pair vocabularies part texts: a word is one token, or a few if it is long; digits go by threes;
signs go together; characters of other scripts count by script. Measured against two public vocabularies it is within 15 % for
English, Chinese, code and emoji. What a server reports for a run's own requests corrects it further.
"""

import re
from dataclasses import dataclass
from typing import Final

MESSAGE_TOKENS: Final = 4
"""What a message costs beside its text: role and separators."""

_PARTS: Final = re.compile(r"[._]?([A-Z]?[a-z]+|[A-Z]+)|([0-9]+)|([!-/:-@\[-^`{-~]+|_+)|(\s*\n\s*)", re.ASCII)
"""Words (a dot or underline before one goes with it), digits, signs, line breaks; single spaces go with the word behind."""

_SAMPLED: Final = 6_000
"""Of a longer text only the beginning, the middle and the end are looked at."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens for one character, by script: Han and kana and their signs, Hangul, Cyrillic and Greek, accented Latin, pictures,
    others."""

    han: float
    sign: float
    hangul: float
    cyrillic: float
    accented: float
    picture: float
    other: float


O200K: Final = Vocabulary(han=0.65, sign=0.5, hangul=0.6, cyrillic=0.36, accented=0.9, picture=1.62, other=0.9)
"""Of newer models, such as gpt-4o; what is estimated with where nothing else is known."""

CL100K: Final = Vocabulary(han=1.08, sign=0.8, hangul=1.1, cyrillic=0.54, accented=2.6, picture=2.36, other=1.5)
"""Of older models, such as gpt-4."""


def estimate(text: str, vocabulary: Vocabulary = O200K) -> int:
    """Roughly the tokens of a text."""
    if not text:
        return 0
    if len(text) > _SAMPLED:
        third = _SAMPLED // 3
        middle = (len(text) - third) // 2
        sample = text[:third] + text[middle : middle + third] + text[-third:]
        return round(estimate(sample, vocabulary) * len(text) / len(sample))
    tokens = _ascii(text)
    if not text.isascii():
        tokens += sum(_of(character, vocabulary) for character in text if character >= "\x80")
    return max(round(tokens), 1)


def _ascii(text: str) -> float:
    tokens = 0.0
    for word, digits, signs, space in _PARTS.findall(text):
        if word:
            tokens += 1 + max(len(word) - 4, 0) // 5 * 0.5
        elif digits:
            tokens += (len(digits) + 2) // 3
        elif signs:
            tokens += (len(signs) + 1) // 2
        elif space:
            tokens += 1
    return tokens


def _of(character: str, vocabulary: Vocabulary) -> float:
    code = ord(character)
    if 0x3400 <= code <= 0x9FFF or 0x3040 <= code <= 0x30FF or 0xF900 <= code <= 0xFAFF or 0x20000 <= code <= 0x3FFFF:
        return vocabulary.han
    if 0x3000 <= code <= 0x303F or 0xFF00 <= code <= 0xFFEF or 0x2010 <= code <= 0x2027:
        return vocabulary.sign
    if 0x370 <= code <= 0x52F:
        return vocabulary.cyrillic
    if 0xAC00 <= code <= 0xD7AF:
        return vocabulary.hangul
    if 0x80 <= code <= 0x24F:
        return vocabulary.accented
    if code >= 0x1F000 or 0x2600 <= code <= 0x27BF:
        return vocabulary.picture
    return vocabulary.other
