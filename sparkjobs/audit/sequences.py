"""Whether the rows of a segment are exactly those that were sealed: each sequence from the first to
the last once, in order. Plain module.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING, DUPLICATE, DISORDER, OUTSIDE = "missing", "duplicate", "out_of_order", "out_of_bounds"
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class SequenceRange(NamedTuple):
    """Sequences, both ends included."""

    first: int
    last: int


class SequenceCheck:
    """Takes the rows of one segment in the order of the file. Memory: 5 bytes for each event."""

    def __init__(self, first: int, last: int) -> None:
        """The bounds recorded at sealing; of an open segment its head."""
        self._first, self._last = first, last
        self._times = np.zeros(last - first + 1, np.int32)  # each was seen
        self._late = np.zeros(last - first + 1, np.bool_)  # a higher one came before it
        self._outside: list[Integers] = []
        self._highest = first - 1

    def take(self, sequences: Integers) -> Flags:
        """The next rows; which of them belong there and were not seen before."""
        inside = (sequences >= self._first) & (sequences <= self._last)
        if not inside.all():
            self._outside.append(np.unique(sequences[~inside]))
        fresh = np.zeros(len(sequences), np.bool_)
        rows = np.flatnonzero(inside)
        places = sequences[rows] - self._first
        kinds, at = np.unique(places, return_index=True)
        fresh[rows[at[self._times[kinds] == 0]]] = True
        np.add.at(self._times, places, 1)
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
        """Different ones that belong there."""
        return int(np.count_nonzero(self._times))

    def missing(self) -> list[SequenceRange]:
        return ranges(np.flatnonzero(self._times == 0) + self._first)

    def faults(self) -> list[tuple[str, SequenceRange]]:
        """What is wrong, by kind; nothing if the rows are those that were sealed."""
        outside = np.unique(np.concatenate([np.zeros(0, np.int64), *self._outside]))
        found = {
            MISSING: self.missing(),
            DUPLICATE: ranges(np.flatnonzero(self._times > 1) + self._first),
            DISORDER: ranges(np.flatnonzero(self._late) + self._first),
            OUTSIDE: ranges(outside),
        }
        return [(kind, each) for kind, several in found.items() for each in several]


def ranges(numbers: Integers) -> list[SequenceRange]:
    """Numbers that rise, as few ranges."""
    if not len(numbers):
        return []
    ends = np.flatnonzero(np.diff(numbers) > 1)
    firsts = numbers[np.concatenate([[0], ends + 1])].tolist()
    lasts = numbers[np.concatenate([ends, [len(numbers) - 1]])].tolist()
    return [SequenceRange(*each) for each in zip(firsts, lasts, strict=True)]
