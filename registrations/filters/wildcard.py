"""Wildcards: texts in which a star matches any characters. Plain module."""

import re
from collections.abc import Sequence
from typing import AnyStr

_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)


def wildcard_parts(pattern: str) -> tuple[str, ...]:
    """Return the texts between the stars, without escapes; consecutive stars are one. Raises
    ValueError for a lone backslash.
    """
    if "\\" not in pattern:
        first, *rest = pattern.split("*")
    else:
        first, *rest = _unescaped(pattern)
    if not rest:
        return (first,)
    return (first, *filter(None, rest[:-1]), rest[-1])


def fits(parts: Sequence[AnyStr], text: AnyStr) -> bool:
    """Return whether a text has the parts of a wildcard in order, the first at its beginning and
    the last at its end. Linear: each part is searched once.
    """
    if len(parts) == 1:
        return text == parts[0]
    at, end = len(parts[0]), len(text) - len(parts[-1])
    if at > end or not text.startswith(parts[0]) or not text.endswith(parts[-1]):
        return False
    for part in parts[1:-1]:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _unescaped(pattern: str) -> list[str]:
    """Split at the unescaped stars."""
    found, at = [""], 0
    for escape in _ESCAPED.finditer(pattern):
        if escape[1] not in ("*", "\\"):
            raise ValueError("In a wildcard, a backslash escapes `*` or a backslash only.")
        before, *after = pattern[at : escape.start()].split("*")
        found[-1] += before
        found += after
        found[-1] += escape[1]
        at = escape.end()
    before, *after = pattern[at:].split("*")
    found[-1] += before
    return found + after
