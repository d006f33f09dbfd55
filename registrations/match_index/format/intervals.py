"""Intervals: conjunctions with a lower and an upper bound of one path, found by both at once.
Plain module.

An event is above the lower bound and below the upper one. The intervals of a path and gate are
sorted by their lower bounds, so those that an event is above are the first ones; of these, a tree
of the greatest upper bounds finds those that it is below. Bounds are compared by the numbers of
their keys, which have the order of the bounds.
"""

from bisect import bisect_right
from typing import NamedTuple

from registrations.match_index.format.lazy_numpy import np
from registrations.match_index.format.numbering import Numbering, spans
from registrations.match_index.format.ragged import Array

FANOUT = 16  # of the tree
NONE = -1


class Thresholds(NamedTuple):
    """The thresholds of a shard, by key from `first` on. A group has those of one path that are
    numbers, or those that are texts.
    """

    first: int
    groups: Array  # of each threshold; one more, NONE
    above: Array  # whether it is a lower bound
    passed: Array  # of a lower bound: the first upper bound of its group that is not below it
    spans: list[tuple[int, int, int]]  # of each group: begin, middle and end of its keys

    def pair(self, words: Array, column: int) -> Array:
        """Return for each row of words the group of the interval of two adjacent ones, or NONE.
        Words are sorted, so these are the strongest bounds.
        """
        low, low_above = self._of(words[:, column])
        high, high_above = self._of(words[:, column + 1])
        is_pair = (low == high) & low_above & ~high_above
        return np.where(is_pair, low, NONE)

    def _of(self, words: Array) -> tuple[Array, Array]:
        at = words.astype(np.int64) - self.first
        is_one = (at >= 0) & (at < len(self.groups))
        at = np.where(is_one, at, 0)
        return np.where(is_one, self.groups[at], NONE), is_one & self.above[at]


class Tree(NamedTuple):
    """Intervals in the order of their conjunctions, and the tree over them."""

    lows: Array
    highs: Array
    tops: Array


def thresholds_of(numbering: Numbering) -> Thresholds:
    first = numbering.numbers_first
    count = numbering.end - first
    groups = np.full(count + 1, NONE, np.int64)  # one more: there may be none
    above, passed = np.zeros(count + 1, bool), np.zeros(count + 1, np.int64)
    found: list[tuple[int, int, int]] = []
    keys = [*numbering.numbers, *numbering.texts]
    for low, middle, high in groups_of(numbering):
        groups[low - first : high - first] = len(found)
        above[low - first : middle - first] = True
        uppers = [keys[number - first].than for number in range(middle, high)]
        for number in range(low, middle):
            below = bisect_right(uppers, keys[number - first].than)
            passed[number - first] = middle + below
        found.append((low, middle, high))
    return Thresholds(first, groups, above, passed, found)


def groups_of(numbering: Numbering) -> list[tuple[int, int, int]]:
    """Return begin, middle and end of the keys of each group, in the order of the groups."""
    return [
        *spans(numbering.numbers, numbering.numbers_first).values(),
        *spans(numbering.texts, numbering.texts_first).values(),
    ]


def depths_of(thresholds: Thresholds, lows: Array, highs: Array) -> Array:
    """Estimate how many of the intervals of each group a value is in: the mean of the values just
    above their lower bounds.
    """
    found = np.ones(len(thresholds.spans), np.float64)
    for group, (low, middle, high) in enumerate(thresholds.spans):
        mine = (lows >= low) & (lows < middle)
        if not mine.any():
            continue
        begun = np.cumsum(np.bincount(lows[mine] - low, minlength=middle - low))
        ended = np.zeros(high - middle + 1, np.int64)
        np.cumsum(np.bincount(highs[mine] - middle, minlength=high - middle), out=ended[1:])
        at = lows[mine] - low
        passed = thresholds.passed[at + low - thresholds.first] - middle
        found[group] = max(float((begun[at] - ended[passed]).mean()), 1.0)
    return found


def tree_of(lows: Array, highs: Array) -> Tree:
    levels, below = [np.zeros(0, "<u4")], highs.astype("<u4")
    while len(below) > 1:
        blocks = -(-len(below) // FANOUT)
        padded = np.zeros(blocks * FANOUT, "<u4")
        padded[: len(below)] = below
        below = padded.reshape(blocks, FANOUT).max(axis=1)
        levels.append(below)
    return Tree(lows.astype("<u4"), highs.astype("<u4"), np.concatenate(levels))
