"""Many values of an event, with caches for the tests on all of them. Plain module."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from registrations.filters.ast import Text
from registrations.filters.letter_case import in_one_case
from registrations.filters.text_tests import Address, address_of, range_of
from registrations.filters.values import key_of, outermost
from registrations.filters.wildcard import fits

_BETWEEN = "\0"  # the separator of joined texts: a needle without it is found within one text
Values = tuple[Any, ...]  # of an operand; empty if it is missing


class _LowerCase(NamedTuple):
    """Texts by their lower-case forms, and these sorted forwards and backwards."""

    by_form: dict[str, list[str]]
    forwards: list[str]
    backwards: list[str]


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
        match test.op:
            case "prefix":
                return _beginning(self.texts, test.text)
            case "suffix":
                return (one[::-1] for one in _beginning(self._backwards, test.text[::-1]))
            case "wildcard":
                return (one for one in self._may_fit(test.parts) if fits(test.parts, one))
            case "cidr":
                return self._between(*range_of(test.text))
            case "equals-ignore-case" | "prefix-ignore-case" | "suffix-ignore-case":
                return self._ignoring_case(test.op, test.parts[0])
        if _BETWEEN not in test.text and test.text not in self._joined:
            return ()
        return (one for one in self.texts if test.text in one)

    def _ignoring_case(self, op: str, text: str) -> Iterator[str]:
        """Yield the texts whose lower-case form is, begins or ends with a text in lower case."""
        lower = self._lower
        if op == "equals-ignore-case":
            found = [text] if text in lower.by_form else []
        elif op == "prefix-ignore-case":
            found = _beginning(lower.forwards, text)
        else:
            found = [one[::-1] for one in _beginning(lower.backwards, text[::-1])]
        return (one for form in found for one in lower.by_form[form])

    def _between(self, first: Address, last: Address) -> Iterator[str]:
        """Yield the texts that are addresses within a range."""
        addresses = self._addresses
        begin = bisect_left(addresses, (first, ""))
        end = bisect_left(addresses, (last, ""), begin)
        while end < len(addresses) and addresses[end][0] == last:
            end += 1
        return (text for _, text in addresses[begin:end])

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
    def _lower(self) -> "_LowerCase":
        by_form: dict[str, list[str]] = {}
        for one in self.texts:
            by_form.setdefault(in_one_case(one), []).append(one)
        backwards = sorted(form[::-1] for form in by_form)
        return _LowerCase(by_form, sorted(by_form), backwards)

    @cached_property
    def _addresses(self) -> list[tuple[Address, str]]:
        found = ((address_of(one), one) for one in self.texts)
        return sorted((address, one) for address, one in found if address is not None)

    @cached_property
    def _joined(self) -> str:
        return _BETWEEN.join(self.texts)


def _beginning(texts: list[str], prefix: str) -> list[str]:
    """Return those of sorted texts that begin with the prefix."""
    first = bisect_left(texts, prefix)
    end = bisect_left(texts, True, first, key=lambda one: not one.startswith(prefix))
    return texts[first:end]
