"""Locks on the partitions that an export has yet to read: each is held until it was read, and no
longer. SQL module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import sql

from eventhub.postgresql.arrow import ArrowSnapshot
from sparkjobs.runs.export.statements import render


class HeldPartition(NamedTuple):
    """A partition that existed at the snapshot's time."""

    name: str
    parent: str  # events, deliveries, attempts, listeners
    number: int  # its partition id, or its day as 20261122

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier(self.name)


class PartitionHolds:
    """The holds of one transaction. Each partition is locked under a savepoint of its own, and
    rolling back to it releases the lock; so the last one locked is the first one released.
    """

    def __init__(self, snapshot: ArrowSnapshot) -> None:
        self._snapshot = snapshot
        self._held: list[HeldPartition] = []  # the next one to read is last

    def take(self, partitions: list[HeldPartition]) -> None:
        """Lock partitions, given in reading order; earlier holds are forgotten. Raises
        DatabaseUnavailable if one does not exist, which makes the transaction unusable.
        """
        self._held = []
        for partition in reversed(partitions):
            self._run("savepoint")
            self._run("hold", partition=partition.table)
            self._held.append(partition)

    def of(self, parent: str) -> Iterator[HeldPartition]:
        """Yield the next partitions while they belong to a parent; requesting the next one releases
        the one before.
        """
        while self._held and self._held[-1].parent == parent:
            yield self._held[-1]
            self._held.pop()
            self._release()

    @contextmanager
    def optional(self, partition: HeldPartition) -> Iterator[bool]:
        """Hold a partition in the block, if it exists; yield whether it does."""
        self._run("savepoint")
        self._run("hold_if_exists", partition=partition.table)
        query = render("exists", table=partition.name).as_string()
        rows = [row for batch in self._snapshot.batches(query) for row in batch.to_pylist()]
        yield rows[0]["is_there"]
        self._release()

    def _release(self) -> None:
        self._run("release_locks")
        self._run("forget_savepoint")

    def _run(self, name: str, **parts: sql.Identifier) -> None:
        self._snapshot.run(render(name, **parts).as_string())
