"""The versions of a group's patterns that are to be added and removed, each between two events: at
a barrier every stream is consumed up to its sequence, and nothing after it. Plain module.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from delivery.patterns.group_tables import StoredPatternVersion
from eventhub.eventlog.stored import Cursor


class BarrierChange(NamedTuple):
    """The changes at one barrier. `sequences`: up to which each stream is consumed before."""

    barrier: int
    sequences: dict[int, int]
    added: list[StoredPatternVersion]
    removed: list[int]

    def is_reached(self, cursors: Mapping[int, Cursor]) -> bool:
        """Return whether all events before the change are consumed. A stream that has ended has no
        cursor.
        """
        return all(
            stream not in cursors or cursors[stream].sequence >= sequence
            for stream, sequence in self.sequences.items()
        )

    def adds(self, version: int) -> bool:
        """Return whether a version is among those to be added."""
        return any(one.id == version for one in self.added)


class PendingChanges:
    """The changes of one group that are not applied yet, in the order of their barriers.

    `loaded`: the latest barrier whose changes are known. Concurrency: none.
    """

    def __init__(self, streams: Sequence[int]) -> None:
        self.loaded = 0
        self._streams = streams
        self._changes: dict[int, BarrierChange] = {}

    @property
    def next(self) -> BarrierChange | None:
        """The first change that is not applied yet."""
        return self._changes[min(self._changes)] if self._changes else None

    def take(
        self,
        versions: Sequence[StoredPatternVersion],
        present: Mapping[int, object],
        cursors: Mapping[int, Cursor],
    ) -> None:
        """Add changes that were read from the tables. `present`: the versions that the engines
        have; `cursors`: how far the group is.
        """
        for version in versions:
            self.loaded = max(self.loaded, version.since, version.until or 0)
            until = self._at(version.until, version.until_sequences)
            is_over = until is not None and until.is_reached(cursors)
            if version.suspended or (version.id not in present and is_over):
                continue
            since = self._at(version.since, version.since_sequences)
            if version.id not in present and since is not None and not since.adds(version.id):
                self._changes.setdefault(since.barrier, since).added.append(version)
            if until is not None and version.id not in until.removed:
                self._changes.setdefault(until.barrier, until).removed.append(version.id)

    def applied(self, change: BarrierChange) -> None:
        """Forget a change that was applied."""
        del self._changes[change.barrier]

    def _at(
        self, barrier: int | None, sequences: Sequence[int | None] | None
    ) -> BarrierChange | None:
        if barrier is None or sequences is None:
            return None
        found = self._changes.get(barrier)
        if found is not None:
            return found
        bounds = {
            stream: sequence
            for stream, sequence in zip(self._streams, sequences, strict=True)
            if sequence is not None
        }
        return BarrierChange(barrier, bounds, [], [])
