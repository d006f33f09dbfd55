"""The tombstones of a shard, by conjunction: a conjunction without any costs one look-up. Plain
module.
"""

from bisect import bisect_right

from registrations.match_index.format.layout import POSITION
from registrations.match_index.format.shard import Shard


class Tombstones:
    """The removed entries of a shard. `partly_deleted`: conjunctions, and their removed dense
    positions.
    """

    def __init__(self, shard: Shard) -> None:
        self.partly_deleted: dict[int, set[int]] = {}
        self._shard = shard

    def mark_removed(self, position: int) -> None:
        self.partly_deleted.setdefault(conjunction_at(self._shard, position), set()).add(position)

    def live(self, conjunction: int, low: int, high: int) -> list[int]:
        removed = self.partly_deleted[conjunction]
        return [position for position in range(low, high) if position not in removed]


def conjunction_at(shard: Shard, position: int) -> int:
    """Return the conjunction of a dense position."""
    return bisect_right(shard.views["dense_at"], position, key=lambda word: word & POSITION) - 1
