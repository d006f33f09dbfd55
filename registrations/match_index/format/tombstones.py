"""What is gone from a shard, by conjunction: a conjunction from which nothing is gone costs one
look. Plain module.
"""

from bisect import bisect_right

from registrations.match_index.format.layout import PLACE
from registrations.match_index.format.shard import Shard


class Graves:
    """`wounded`: conjunctions, and the dense places in them that are not found any more."""

    def __init__(self, shard: Shard) -> None:
        self.wounded: dict[int, set[int]] = {}
        self._shard = shard

    def bury(self, place: int) -> None:
        self.wounded.setdefault(conjunction_at(self._shard, place), set()).add(place)

    def alive(self, conjunction: int, low: int, high: int) -> list[int]:
        gone = self.wounded[conjunction]
        return [place for place in range(low, high) if place not in gone]


def conjunction_at(shard: Shard, place: int) -> int:
    """Whose dense place that is."""
    return bisect_right(shard.views["dense_at"], place, key=lambda word: word & PLACE) - 1
