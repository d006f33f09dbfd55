"""The numbering of a shard's keys: in classes, each in an order that does not depend on the order
of the entries. Plain module.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from registrations.match_index.format.columns import FIRST_KEY
from registrations.match_index.format.names import prefixed
from registrations.match_index.format.terms import (
    Above,
    AboveText,
    Below,
    BelowText,
    Key,
    OneOf,
    PathExists,
    TypeKey,
    Value,
)
from registrations.match_index.format.text_keys import TextKey, WildcardKey, grams_of


class Numbering(NamedTuple):
    """Keys by number from FIRST_KEY on, gates first, then the grams by which wildcards are found;
    these two are no keys of filters.
    """

    gates: list[bytes]
    grams: list[bytes]
    implying: list[Value]
    values: list[Value]
    named: list[TextKey | TypeKey]
    there: list[PathExists]
    sets: list[OneOf]
    wildcards: dict[WildcardKey, bytes]  # and the gram of each
    numbers: list[Above | Below]
    texts: list[AboveText | BelowText]

    def number_of(self) -> dict[Key, int]:
        return {key: at for at, key in enumerate(self.keys(), self.grams_end)}

    def keys(self) -> list[Key]:
        return [
            *(*self.implying, *self.values, *self.named, *self.there, *self.sets),
            *(*self.wildcards, *self.numbers, *self.texts),
        ]

    @property
    def gates_end(self) -> int:
        return FIRST_KEY + len(self.gates)

    @property
    def grams_end(self) -> int:
        return self.gates_end + len(self.grams)

    @property
    def implying_end(self) -> int:
        return self.grams_end + len(self.implying)

    @property
    def named_end(self) -> int:
        return self.implying_end + len(self.values) + len(self.named)

    @property
    def wildcards_first(self) -> int:
        return self.named_end + len(self.there) + len(self.sets)

    @property
    def numbers_first(self) -> int:
        return self.wildcards_first + len(self.wildcards)

    @property
    def texts_first(self) -> int:
        return self.numbers_first + len(self.numbers)

    @property
    def end(self) -> int:
        return self.texts_first + len(self.texts)

    def names(self) -> list[bytes]:
        """Return the names of all numbers below `named_end`; 0 and 1 have none."""
        keys = (*self.implying, *self.values, *self.named)
        return [b"", b"", *self.gates, *self.grams, *map(name_of, keys)]


def numbered(gates: Iterable[bytes], keys: set[Key]) -> Numbering:
    """Assign numbers to the keys. The thresholds of a path are adjacent: first the lower bounds,
    the weakest first, then the upper bounds, the strongest first.
    """
    sets = sorted(key for key in keys if isinstance(key, OneOf))
    implying = {Value(name, one.path) for one in sets for name in one.names}
    named = [key for key in keys if isinstance(key, TextKey | TypeKey)]
    wildcards = grams_of(sorted(key for key in keys if isinstance(key, WildcardKey)))
    numbers = [key for key in keys if isinstance(key, Above | Below)]
    texts = [key for key in keys if isinstance(key, AboveText | BelowText)]
    return Numbering(
        sorted(gates),
        sorted({*wildcards.values()}),
        sorted(implying),
        sorted(key for key in keys if isinstance(key, Value) and key not in implying),
        sorted(named, key=name_of),
        sorted(key for key in keys if isinstance(key, PathExists)),
        sets,
        wildcards,
        sorted(numbers, key=_threshold_order),
        sorted(texts, key=_threshold_order),
    )


def rank_of(key: Above | Below | AboveText | BelowText) -> int:
    """Return 1 if a value equal to the threshold counts as below it, as `>` and `<=` need, else
    0.
    """
    return key.strict if isinstance(key, Above | AboveText) else not key.strict


def name_of(key: Value | TextKey | TypeKey) -> bytes:
    return prefixed(key.kind, key.path) + key.text if isinstance(key, TextKey) else key.name


def paths_of(keys: Iterable[Key]) -> list[str]:
    return sorted({key.path for key in keys if not isinstance(key, TypeKey)})


def spans(
    keys: list[Above | Below] | list[AboveText | BelowText], first: int
) -> dict[str, tuple[int, int, int]]:
    """Return for each path the first number, the first of the upper bounds, and the end."""
    found: dict[str, tuple[int, int, int]] = {}
    at = first
    for path, group in groupby(keys, key=lambda key: key.path):
        of_path = [isinstance(key, Above | AboveText) for key in group]
        found[path] = at, at + sum(of_path), at + len(of_path)
        at += len(of_path)
    return found


def _threshold_order(key: Above | Below | AboveText | BelowText) -> tuple[object, ...]:
    return key.path, not isinstance(key, Above | AboveText), key.than, rank_of(key)
