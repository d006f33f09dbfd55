"""Which patterns an event concerns, from the leaves that it passes: those that it may begin, and
those that have begun and wait for it, with `per` for its key. Plain module.
"""

from collections.abc import Iterable
from typing import Any

from eventhub.event.envelope import Event
from registrations.filters.ast import Path
from registrations.filters.values import MISSING, key_of, value_of

Elements = dict[int, int]  # the elements of patterns as bits, by the number of the pattern
Begun = dict[Any, dict[int, None]]  # the patterns that have a partition, by its key


class Subscribers:
    """The elements of all patterns by their leaf.

    `begun`: by component, the patterns that have one of its values as the key of a partition. An
    element that cannot come first is found through the shorter of two lists: the patterns with this
    leaf, and those that have begun for the key of the event. Concurrency: none.
    """

    def __init__(self) -> None:
        self._opening: dict[int, Elements] = {}
        self._later: dict[int, dict[Path | None, Elements]] = {}
        self._begun: dict[Path, Begun] = {}

    def begin(self, per: Path, key: Any, number: int) -> None:
        """Note that a pattern has a partition of a key."""
        self._begun.setdefault(per, {}).setdefault(key, {})[number] = None

    def end(self, per: Path, key: Any, number: int) -> None:
        """Note that a pattern that had a partition of a key has none any more."""
        of_keys = self._begun[per]
        patterns = of_keys[key]
        del patterns[number]
        if not patterns:
            del of_keys[key]
            if not of_keys:
                del self._begun[per]

    def add_opening(self, leaf: int, number: int, bit: int) -> None:
        """Add an element that an event may begin a pattern with."""
        _add(self._opening.setdefault(leaf, {}), number, bit)

    def add_later(self, leaf: int, per: Path | None, number: int, bit: int) -> None:
        """Add another element of a pattern, with the component that its partitions are by."""
        _add(self._later.setdefault(leaf, {}).setdefault(per, {}), number, bit)

    def remove_opening(self, leaf: int, number: int) -> None:
        """Remove the elements that a pattern may begin with; do nothing if there are none."""
        patterns = self._opening.get(leaf)
        if patterns is not None and patterns.pop(number, None) is not None and not patterns:
            del self._opening[leaf]

    def remove_later(self, leaf: int, per: Path | None, number: int) -> None:
        """Remove the other elements of a pattern; do nothing if there are none."""
        patterns = self._later.get(leaf, {}).get(per)
        if patterns is not None and patterns.pop(number, None) is not None and not patterns:
            del self._later[leaf][per]
            if not self._later[leaf]:
                del self._later[leaf]

    def concerned(self, event: Event, leaves: Iterable[int]) -> Elements:
        """Return the elements that may take an event which passes these leaves."""
        found: Elements = {}
        of_keys: dict[Path, dict[int, None]] = {}  # what has begun for the event's keys
        for leaf in leaves:
            for number, bits in self._opening.get(leaf, _NOBODY).items():
                found[number] = found.get(number, 0) | bits
            for per, patterns in self._later.get(leaf, _NOTHING).items():
                if per is not None and per not in of_keys:
                    of_keys[per] = self._begun.get(per, {}).get(key_in(per, event), {})
                for number in patterns if per is None else _both(patterns, of_keys[per]):
                    found[number] = found.get(number, 0) | patterns[number]
        return found


def _both(patterns: Elements, of_key: dict[int, None]) -> list[int]:
    """Return the numbers in both, in a time of the shorter one."""
    if len(of_key) < len(patterns):
        return [number for number in of_key if number in patterns]
    return [number for number in patterns if number in of_key]


def key_in(per: Path, event: Event) -> Any:
    """Return the key of an event as dictionaries have it; MISSING if it has none."""
    value = key_value(per, event)
    return MISSING if value is MISSING else key_of(value)


def key_value(per: Path | None, event: Event) -> Any:
    """Return the event's value of a key: None without partitions, MISSING if it has none."""
    if per is None:
        return None
    found = value_of(per, event)
    is_key = found is not None and isinstance(found, str | int | float | bool)
    return found if is_key else MISSING


def _add(patterns: Elements, number: int, bit: int) -> None:
    patterns[number] = patterns.get(number, 0) | bit


_NOBODY: Elements = {}
_NOTHING: dict[Path | None, Elements] = {}
