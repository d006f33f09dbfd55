"""Partitions that an export is still to read: each stays until then and no longer. SQL module."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import sql

from eventhub.postgresql.arrow import ArrowSnapshot
from sparkjobs.runs.export.statements import render


class HeldPartition(NamedTuple):
    """A table that was there at the snapshot's moment."""

    name: str
    parent: str  # events, deliveries, attempts, listeners
    number: int  # its group, or its day as 20261122

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier(self.name)


class PartitionHolds:
    """Of one transaction. A partition is locked after a savepoint of its own; going back to that
    savepoint gives up the lock. So what is taken last goes first.
    """

    def __init__(self, snapshot: ArrowSnapshot) -> None:
        self._snapshot = snapshot
        self._held: list[HeldPartition] = []  # the next one to be read last

    def take(self, partitions: list[HeldPartition]) -> None:
        """In the order in which they will be read; what was held is not any more. Raises
        DatabaseUnavailable if one is not there: the transaction is of no use then.
        """
        self._held = []
        for partition in reversed(partitions):
            self._run("savepoint")
            self._run("hold", partition=partition.table)
            self._held.append(partition)

    def of(self, parent: str) -> Iterator[HeldPartition]:
        """Those that are next and of one parent; each is let go when the next one is asked for."""
        while self._held and self._held[-1].parent == parent:
            yield self._held[-1]
            self._held.pop()
            self._let_go()

    @contextmanager
    def passing(self, partition: HeldPartition) -> Iterator[bool]:
        """One that need not be there; False if it went."""
        self._run("savepoint")
        self._run("hold_if_there", partition=partition.table)
        asked = render("is_there", table=partition.name).as_string()
        [there] = [row["there"] for one in self._snapshot.batches(asked) for row in one.to_pylist()]
        yield there
        self._let_go()

    def _let_go(self) -> None:
        self._run("let_go")
        self._run("forget_savepoint")

    def _run(self, name: str, **parts: sql.Identifier) -> None:
        self._snapshot.run(render(name, **parts).as_string())
