"""The alpha memories of the network: for each distinct event pattern the remembered events that it
matches, shared by all registrations with that pattern, with an index for each set of values that
joins compare for equality. Plain module.
"""

from collections import deque
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from registrations.filters.ast import Node, Path, Scalar
from registrations.filters.quantities import Quantity, quantity_of
from registrations.patterns.pattern_engine import EventPosition
from registrations.temporal.expressions import JoinTest

Key = Any  # a text, or a tuple of texts
_NOTHING = ()


class Entry:
    """An event that a pattern matched, and the values of the pattern's fields in it. `index`: of
    the event among those of the streams, from 1.
    """

    __slots__ = ("index", "keys", "position", "quantities", "values")

    def __init__(self, index: int, position: EventPosition, values: tuple[Scalar, ...]) -> None:
        self.index = index
        self.position = position
        self.values = values
        self.keys = tuple(map(equality_key, values))
        self.quantities: tuple[Quantity | None, ...] = tuple(map(quantity_of, values))


def equality_key(value: Scalar) -> str:
    """Return a text that two values share if and only if they are equal as in filters. The hash of
    a text is secret, so nobody can emit many values with the same hash, as with numbers.
    """
    if isinstance(value, str):
        return f"'{value}"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return repr(value)


def key_getter(indexes: tuple[int, ...]) -> Callable[[Entry], Key]:
    """Return a function that returns the key of an entry: of the values with these indexes."""
    if not indexes:
        return lambda entry: _NOTHING
    get = itemgetter(*indexes)
    return lambda entry: get(entry.keys)


class AlphaPattern(NamedTuple):
    """What the entries of an alpha memory are: events that pass the filter, have a single value in
    each of the fields, and pass the tests of these values. A variable of a test is named after the
    index of its field.
    """

    filter: Node
    paths: tuple[Path, ...]
    tests: tuple[JoinTest, ...]


class AlphaMemory:
    """The entries of one pattern, in the order of the events.

    `memory`: of the registration with the longest one; older entries are removed. `complete_from`:
    the index from which on all entries are here. `waiting`: the joins with combinations that wait
    for an entry, each a registration and a number in it. Concurrency: none.
    """

    def __init__(self, pattern: AlphaPattern, complete_from: int) -> None:
        self.pattern = pattern
        self.complete_from = complete_from
        self.memory = 0
        self.is_scheduled = False
        self.entries: deque[Entry] = deque()
        self.waiting: set[tuple[int, int]] = set()
        self._indexes: dict[tuple[int, ...], dict[Key, deque[Entry]]] = {}
        self._getters: dict[tuple[int, ...], Callable[[Entry], Key]] = {}

    def add(self, entry: Entry) -> None:
        """Add the entry of the latest event."""
        self.entries.append(entry)
        for indexes, buckets in self._indexes.items():
            key = self._getters[indexes](entry)
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = deque()
            bucket.append(entry)

    def put_before(self, entries: list[Entry], complete_from: int) -> None:
        """Add entries that are older than all others, in order."""
        self.complete_from = complete_from
        self.entries.extendleft(reversed(entries))
        for indexes, buckets in self._indexes.items():
            buckets.clear()  # joins hold this very dictionary
            buckets.update(self._built(indexes))

    def index(self, indexes: tuple[int, ...]) -> dict[Key, deque[Entry]]:
        """Return the index by the values with these indexes; it stays current."""
        found = self._indexes.get(indexes)
        if found is None:
            self._getters[indexes] = key_getter(indexes)
            found = self._indexes[indexes] = self._built(indexes)
        return found

    def remove_until(self, index: int) -> int:
        """Remove all entries up to an index; return how many."""
        entries = self.entries
        before = len(entries)
        while entries and entries[0].index <= index:
            entry = entries.popleft()
            for indexes, buckets in self._indexes.items():
                key = self._getters[indexes](entry)
                bucket = buckets[key]
                bucket.popleft()
                if not bucket:
                    del buckets[key]
        self.complete_from = max(self.complete_from, index + 1)
        return before - len(entries)

    def _built(self, indexes: tuple[int, ...]) -> dict[Key, deque[Entry]]:
        getter = self._getters[indexes]
        buckets: dict[Key, deque[Entry]] = {}
        for entry in self.entries:
            buckets.setdefault(getter(entry), deque()).append(entry)
        return buckets
