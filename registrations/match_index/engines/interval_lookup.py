"""The intervals of the match index that a value is in, in Python. Plain module.

The tree has levels of blocks: a block of the lowest has FANOUT intervals, of the next one FANOUT
blocks. Its top is the greatest upper bound in it.
"""

from bisect import bisect_left
from collections.abc import Iterator

from registrations.match_index.format.errors import IndexDamaged
from registrations.match_index.format.intervals import FANOUT
from registrations.match_index.format.shard import Shard

Span = tuple[int, int]


class Intervals:
    """The intervals of a shard. `first`: the conjunction of the first one."""

    def __init__(self, shard: Shard) -> None:
        self.first = shard.head.conjunctions - shard.head.intervals
        self.lows, self.highs = shard.views["lows"], shard.views["highs"]
        self.levels = []  # the tops of blocks of so many intervals, from small to large
        size, count, at = 1, shard.head.intervals, 0
        while count > 1:
            size, count = size * FANOUT, -(-count // FANOUT)
            self.levels.append((size, shard.views["tops"][at : at + count]))
            at += count
        if at != len(shard.views["tops"]):
            raise IndexDamaged(f"The section tops of {shard.path.name} has the wrong length.")

    def stabbed(self, first: int, end: int, below: int, above: int) -> Iterator[Span]:
        """Yield ranges of the conjunctions from `first` to before `end`, of one group and gate,
        that have a lower bound before the key `below` and an upper bound from `above` on.
        """
        begin = at = first - self.first
        end = bisect_left(self.lows, below, begin, end - self.first)
        if begin < 0:
            raise IndexError(first)
        highs, levels = self.highs, self.levels
        while at < end:
            step = 0
            for size, tops in levels:
                if at % size or tops[at // size] >= above:
                    break
                step = size
            if not step:
                if highs[at] >= above:
                    yield at + self.first, at + self.first + 1
                step = 1
            at += step
