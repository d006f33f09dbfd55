"""The check of a segment's sequences: each one from first to last once, in order. Plain module."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING, DUPLICATE, DISORDER, OUTSIDE = "missing", "duplicate", "out_of_order", "out_of_bounds"
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class SequenceRange(NamedTuple):
    """A range of sequences; both ends are included."""

    first: int
    last: int


class SequenceCheck:
    """The state of one segment's check, fed in file order. Memory: 5 bytes per event."""

    def __init__(self, first: int, last: int) -> None:
        """Expect the bounds recorded at sealing; for an open segment, up to its head."""
        self._first, self._last = first, last
        self._counts = np.zeros(last - first + 1, np.int32)  # occurrences of each sequence
        self._late = np.zeros(last - first + 1, np.bool_)  # a higher one came before it
        self._outside: list[Integers] = []
        self._highest = first - 1

    def take(self, sequences: Integers) -> Flags:
        """Take the next rows; flag those within the bounds that occur for the first time."""
        inside = (sequences >= self._first) & (sequences <= self._last)
        if not inside.all():
            self._outside.append(np.unique(sequences[~inside]))
        fresh = np.zeros(len(sequences), np.bool_)
        rows = np.flatnonzero(inside)
        offsets = sequences[rows] - self._first
        different, at = np.unique(offsets, return_index=True)
        fresh[rows[at[self._counts[different] == 0]]] = True
        np.add.at(self._counts, offsets, 1)
        self._note_order(sequences[fresh])
        return fresh

    def _note_order(self, sequences: Integers) -> None:
        if len(sequences):
            highest = np.maximum.accumulate(np.concatenate([[self._highest], sequences]))
            late = sequences[sequences < highest[:-1]]
            self._late[late - self._first] = True
            self._highest = int(highest[-1])

    @property
    def events(self) -> int:
        """The number of distinct sequences within the bounds."""
        return int(np.count_nonzero(self._counts))

    def missing(self) -> list[SequenceRange]:
        return ranges(np.flatnonzero(self._counts == 0) + self._first)

    def faults(self) -> list[tuple[str, SequenceRange]]:
        """Return (kind, range) of each fault; empty if the rows are exactly the sealed ones."""
        outside = np.unique(np.concatenate([np.zeros(0, np.int64), *self._outside]))
        by_kind = {
            MISSING: self.missing(),
            DUPLICATE: ranges(np.flatnonzero(self._counts > 1) + self._first),
            DISORDER: ranges(np.flatnonzero(self._late) + self._first),
            OUTSIDE: ranges(outside),
        }
        return [(kind, each) for kind, several in by_kind.items() for each in several]


def ranges(numbers: Integers) -> list[SequenceRange]:
    """Group ascending numbers into maximal ranges."""
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.concatenate([[0], ends + 1])].tolist()
    lasts = numbers[np.concatenate([ends, [len(numbers) - 1]])].tolist()
    return [SequenceRange(*each) for each in zip(firsts, lasts, strict=True)]
