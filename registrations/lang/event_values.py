"""What tests ask of one event, found out once: the hundredth test of a long list costs what a test
of a single value does. Plain.

Without this an event would cost the tests times the members of its lists, and both are chosen by
others.
"""

from bisect import bisect_left
from functools import cached_property
from typing import Any

from eventhub import limits
from eventhub.event.envelope import Event
from registrations.lang.ast import Arithmetic, Const, Operand, Text
from registrations.lang.values import (
    MISSING,
    key_of,
    members,
    number_of,
    outermost,
    result,
    same,
    value_of,
)
from registrations.lang.wildcard import fits

FEW = 8  # values that are looked at one by one
_BETWEEN = "\0"  # joined texts: what is looked for and does not have it is found within one
Values = tuple[Any, ...]  # that an operand stands for; none if it is missing


class Many(Values):
    """Values, and what tests ask of all of them together."""

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
        """Whether one of the texts is so."""
        if test.op == "prefix":
            return bool(_beginning(self.texts, test.text))
        if test.op == "suffix":
            return bool(_beginning(self._backwards, test.text[::-1]))
        if test.op == "wildcard":
            return any(fits(test.parts, one) for one in self._may_fit(test.parts))
        if _BETWEEN in test.text:
            return any(test.text in one for one in self.texts)
        return bool(self.texts) and test.text in self._joined

    def _may_fit(self, parts: tuple[str, ...]) -> list[str]:
        """Few texts, if one can: each costs more than all do here."""
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


class EventValues:
    """One event while it is matched. It is not asked after its event was changed."""

    __slots__ = ("_lists", "_results", "_verdicts", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self._lists: dict[int, Values] = {}  # by identity: the event holds the lists
        self._results: dict[Arithmetic, Values] = {}
        self._verdicts: dict[Text, bool] = {}

    def of(self, operand: Operand) -> Values:
        """The values that an operand stands for."""
        if isinstance(operand, Const):
            return (operand.value,)
        if isinstance(operand, Arithmetic):
            found = self._results.get(operand)
            if found is None:
                found = self._results[operand] = self._calculated(operand)
            return found
        value = value_of(operand, self.event)
        if isinstance(value, list | tuple):
            return self._of_list(value)
        return () if value is MISSING or isinstance(value, dict) else (value,)

    def has(self, test: Text) -> bool:
        """Whether a text at the test's path is so."""
        found = self.of(test.path)
        if not isinstance(found, Many):
            return any(_is_so(test, one) for one in found)
        verdict = self._verdicts.get(test)
        if verdict is None:
            verdict = self._verdicts[test] = found.has(test)
        return verdict

    def _of_list(self, value: Any) -> Values:
        found = self._lists.get(id(value))
        if found is None:
            found = self._lists[id(value)] = _some(tuple(members(value)))
        return found

    def _calculated(self, operand: Arithmetic) -> Values:
        """Each with each; nothing where these are too many."""
        lefts, rights = self.of(operand.left), self.of(operand.right)
        if len(lefts) * len(rights) > limits.ARITHMETIC_RESULTS_MAX:
            return ()
        others = [one for one in map(number_of, rights) if one is not None]
        found = tuple(
            each
            for one in map(number_of, lefts)
            if one is not None
            for other in others
            for each in result(operand.op, one, other)
        )
        return _some(found)


def meet(some: Values, others: Values) -> bool:
    """True if one of each are the same; in a time that grows with both, not with their product."""
    if len(some) == 1 and len(others) == 1:
        return same(some[0], others[0])
    return not keys_of(some).isdisjoint(keys_of(others))


def deciding(values: Values, *, least: bool) -> list[Any] | Values:
    """Of values those that decide whether an order holds for any."""
    if isinstance(values, Many):
        return values.least if least else values.greatest
    return values


def keys_of(values: Values) -> frozenset[Any]:
    """What `key_of` makes of them."""
    return values.keys if isinstance(values, Many) else frozenset(map(key_of, values))


def _some(values: Values) -> Values:
    return Many(values) if len(values) > FEW else values


def _beginning(texts: list[str], prefix: str) -> list[str]:
    """Of texts in order those that begin so."""
    first = bisect_left(texts, prefix)
    end = bisect_left(texts, True, first, key=lambda one: not one.startswith(prefix))
    return texts[first:end]


def _is_so(test: Text, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if test.op == "prefix":
        return value.startswith(test.text)
    if test.op == "suffix":
        return value.endswith(test.text)
    if test.op == "substring":
        return test.text in value
    return fits(test.parts, value)
