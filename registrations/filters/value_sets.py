"""Many values of an event, with caches for the tests on all of them. Plain module."""

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from registrations.filters.ast import Text
from registrations.filters.values import key_of, outermost
from registrations.filters.wildcard import fits

_BETWEEN = "\0"  # the separator of joined texts: a needle without it is found within one text
Values = tuple[Any, ...]  # of an operand; empty if it is missing


class ValueSet(Values):
    """Values with cached results."""

    @cached_property
    def keys(self) -> frozenset[Any]:
        return frozenset(map(key_of, self))

    @cached_property
    def least(self) -> list[Any]:
        return outermost(self, least=True)

    @cached_property
    def greatest(self) -> list[Any]:
        return outermost(self, least=False)

    @cached_property
    def texts(self) -> list[str]:
        return sorted({one for one in self if isinstance(one, str)})

    def has(self, test: Text) -> bool:
        """Return whether one of the texts passes the test."""
        if test.op == "substring" and _BETWEEN not in test.text:
            return bool(self.texts) and test.text in self._joined
        return any(True for _ in self.fitting(test))

    def fitting(self, test: Text) -> Iterable[str]:
        """Return the texts that pass the test, each once."""
        if test.op == "prefix":
            return _beginning(self.texts, test.text)
        if test.op == "suffix":
            return (one[::-1] for one in _beginning(self._backwards, test.text[::-1]))
        if test.op == "wildcard":
            return (one for one in self._may_fit(test.parts) if fits(test.parts, one))
        if _BETWEEN not in test.text and test.text not in self._joined:
            return ()
        return (one for one in self.texts if test.text in one)

    def _may_fit(self, parts: tuple[str, ...]) -> list[str]:
        """Return as few candidates as possible: each costs more than the search here."""
        if any(part not in self._joined for part in parts if _BETWEEN not in part):
            return []
        found = _beginning(self.texts, parts[0])
        others = _beginning(self._backwards, parts[-1][::-1])
        return found if len(found) <= len(others) else [one[::-1] for one in others]

    @cached_property
    def _backwards(self) -> list[str]:
        return sorted(one[::-1] for one in self.texts)

    @cached_property
    def _joined(self) -> str:
        return _BETWEEN.join(self.texts)


def _beginning(texts: list[str], prefix: str) -> list[str]:
    """Return those of sorted texts that begin with the prefix."""
    first = bisect_left(texts, prefix)
    end = bisect_left(texts, True, first, key=lambda one: not one.startswith(prefix))
    return texts[first:end]
