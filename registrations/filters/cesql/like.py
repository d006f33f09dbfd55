r"""The patterns of LIKE in CESQL: `%` stands for any characters, `_` for one; `\%` and `\_` are
these characters themselves. Plain module.

A pattern is its texts and no more: compiled regular expressions take many times its memory.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_MARKS = re.compile(r"(\\[%_]|[%_])")
_TEXTS_PER_STEP = 8  # compared in about the time of one step


class Gapped(NamedTuple):
    """A part of a pattern with `_` in it. `chars`: of a text that it matches; `texts`: between its
    `_`; `longest`: of these, and `begins`: where that one begins.
    """

    chars: int
    texts: tuple[str, ...]
    longest: str
    begins: int


LikePart = str | Gapped  # the pattern between two `%`


def like_parts(pattern: str) -> tuple[LikePart, ...]:
    """Split a pattern at each `%`; several in a row are one."""
    first, *others = _MARKS.split(pattern)
    parts = [[first]]
    for mark, text in zip(others[::2], others[1::2], strict=True):
        if mark == "%":
            parts.append([text])
        elif mark == "_":
            parts[-1].append(text)
        else:
            parts[-1][-1] += mark[1] + text
    inner = (part for part in parts[1:-1] if part != [""])
    return tuple(map(_like_part, (parts[0], *inner, *parts[1:][-1:])))


def searched_chars(parts: tuple[LikePart, ...]) -> int:
    """Return the length of the longest text that is searched for."""
    return max(len(part if isinstance(part, str) else part.longest) for part in parts)


def _unbounded(steps: int) -> None:
    pass


def fits_parts(
    parts: tuple[LikePart, ...], text: str, work: Callable[[int], None] = _unbounded
) -> bool:
    """Return whether a text matches a pattern. Each part is searched once. `work` is called with
    the steps of the search, which it may end by an exception.
    """
    first, last = parts[0], parts[-1]
    at, end = _chars(first), len(text) - _chars(last)
    if len(parts) == 1:
        return at == len(text) and _is_at(first, text, 0, work)
    if at > end or not _is_at(first, text, 0, work) or not _is_at(last, text, end, work):
        return False
    work(len(parts) // _TEXTS_PER_STEP)
    for part in parts[1:-1]:
        found = _place(part, text, (at, end), work)
        if found < 0:
            return False
        at = found + _chars(part)
    return True


def _chars(part: LikePart) -> int:
    return len(part) if isinstance(part, str) else part.chars


def _place(part: LikePart, text: str, within: tuple[int, int], work: Callable[[int], None]) -> int:
    """Return the first place of a part in a section of a text, or -1."""
    at, end = within
    if isinstance(part, str):
        return text.find(part, at, end)
    while (found := text.find(part.longest, at + part.begins, end)) >= 0:
        at = found - part.begins
        if at + part.chars > end:
            return -1
        if _is_at(part, text, at, work):
            return at
        at += 1
    return -1


def _is_at(part: LikePart, text: str, at: int, work: Callable[[int], None]) -> bool:
    """Return whether a part matches at a place of a text that is long enough."""
    if isinstance(part, str):
        return text.startswith(part, at)
    for compared, one in enumerate(part.texts):
        if not text.startswith(one, at):
            work(1 + compared // _TEXTS_PER_STEP)
            return False
        at += len(one) + 1
    work(1 + len(part.texts) // _TEXTS_PER_STEP)
    return True


def _like_part(texts: list[str]) -> LikePart:
    if len(texts) == 1:
        return texts[0]
    longest = max(texts, key=len)
    index = texts.index(longest)
    begins = sum(map(len, texts[:index])) + index
    return Gapped(sum(map(len, texts)) + len(texts) - 1, tuple(texts), longest, begins)
