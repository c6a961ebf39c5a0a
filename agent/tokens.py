"""How many tokens a text may be, without a tokenizer and without a download. Pure.

An estimate from the kinds of characters; `RunState` corrects it by what the server reports for the run's own requests.
"""

MESSAGE_TOKENS = 4
"""What a message costs beside its text: role and separators."""


def estimate(text: str) -> int:
    """Roughly the tokens of a text: four ASCII characters make one, other characters one each."""
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_characters = sum(1 for character in text if character < "\x80")
    return (ascii_characters + 3) // 4 + len(text) - ascii_characters
