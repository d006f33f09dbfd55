"""What is recorded of a response or an error: text without the secrets that a receiver may repeat,
as PostgreSQL can store it. Plain module.
"""

from collections.abc import Iterable

from eventhub.base import limits

_HIDDEN = "(hidden)"


def recorded(text: str, secrets: Iterable[str]) -> str:
    """Return a text with `(hidden)` in the place of each secret, also of the beginning of one at
    the end of the text, where it may have been cut. Shorter secrets than
    `CALLBACK_SECRET_CHARS_HIDDEN_MIN` stay: they may be part of any text.
    """
    chars_min = limits.CALLBACK_SECRET_CHARS_HIDDEN_MIN
    long = sorted((each for each in secrets if len(each) >= chars_min), key=len, reverse=True)
    for secret in long:
        text = text.replace(secret, _HIDDEN)
    for secret in long:
        count = _count_cut(text, secret, chars_min)
        if count:
            text = text[:-count] + _HIDDEN
    return text.replace("\0", "�")


def _count_cut(text: str, secret: str, chars_min: int) -> int:
    """Return the length of the longest beginning of the secret with which the text ends, if it has
    at least so many characters; else 0.
    """
    if len(text) < chars_min:
        return 0
    tail = text[-chars_min:]
    at = secret.rfind(tail)
    while at >= 0:
        if text.endswith(secret[: at + chars_min]):
            return at + chars_min
        at = secret.rfind(tail, 0, at + chars_min - 1)
    return 0
