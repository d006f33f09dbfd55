"""Deletes ended versions of registrations and patterns that nothing can read any more, deleted
patterns and pattern groups, barriers without references, and expired secrets of endpoints. SQL
module.

Readers of an ended version are those that match an event within its bounds (forwarders, listeners
that resume, explanations, audits of the log and of the archive), gap notices, deliveries with a
report, and a match index that holds it. purge.sql says when all of them are done.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.base.clock import Clock
from eventhub.base.errors import DatabaseUnavailable
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import blocking
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.match_index.epochs.errors import IndexNotUsed
from registrations.match_index.epochs.facts import EpochFacts, facts_of, refusal
from registrations.match_index.epochs.folder import index_root, indexed
from registrations.match_index.epochs.tables import snapshot_of
from registrations.match_index.format.errors import IndexAbsent, IndexDamaged
from registrations.match_index.format.manifest import read_manifest

SQL = queries.load("registrations/sql/purge.sql")
log = get_logger(__name__)

Connection = psycopg.Connection[Any]
_FIRST = (0, 0)


class Purged(NamedTuple):
    """The numbers of rows that one run deleted."""

    versions: int
    barriers: int


class _PurgeableVersion(NamedTuple):
    """An ended version, with the barrier of its end, and the endpoint that may need its report or
    variable.
    """

    barrier: int
    id: int
    is_free: bool
    endpoint_id: int | None


class _PurgedBarriers(NamedTuple):
    """The last barrier that was checked, None if there was none, and the number of deleted ones."""

    last: int | None
    deleted: int


class VersionPurge:
    """The maintenance task: walks over all ended versions and all barriers, one batch in one
    transaction; a run continues where the last one's time ended.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._version = _FIRST  # the last one checked: the barrier of its end, and its id
        self._barrier = 0

    def run(self, database_url: str, data: Path) -> Purged:
        """Delete for `VERSIONS_PURGE_S_MAX` seconds at most. `data`: the folder with the match
        indexes.
        """
        until_s = self._clock.monotonic_s() + limits.VERSIONS_PURGE_S_MAX
        versions = barriers = 0
        try:
            with blocking(database_url, name="purge") as connection:
                connection.execute(SQL["expired_secrets"])
                epochs = list(_epochs(connection, data))
                for count in self._versions(connection, epochs):
                    versions += count
                    if self._clock.monotonic_s() >= until_s:
                        break
                versions += _purge_patterns(connection, until_s, self._clock)
                for count in self._barriers(connection):
                    barriers += count
                    if self._clock.monotonic_s() >= until_s:
                        break
        except DatabaseUnavailable as error:
            log.info("versions_not_purged", reason=error.code)
        if versions or barriers:
            log.info("versions_purged", versions=versions, barriers=barriers)
        return Purged(versions, barriers)

    def _versions(self, connection: Connection, epochs: list[EpochFacts]) -> Iterator[int]:
        """Delete ended versions batch by batch; yield the number deleted in each batch."""
        values = {
            "epochs": [facts.stream for facts in epochs],
            "xmins": [str(facts.xmin) for facts in epochs],
            "afters": [facts.after for facts in epochs],
            "retained_s": limits.VERSIONS_RETAINED_S,
            "rows_max": limits.VERSIONS_PURGED_AT_ONCE,
        }
        while True:
            barrier, id = self._version
            after = {"barrier": barrier, "id": id}
            rows = cursor_of(connection, _PurgeableVersion)
            found = rows.execute(SQL["ended"], {**values, **after}).fetchall()
            free = {one.id: one.endpoint_id for one in found if one.is_free}
            unused = list(free.keys() - _needed(connection, free.values()))
            if unused:
                connection.execute(SQL["purge"], {"versions": unused})
            self._version = (found[-1].barrier, found[-1].id) if found else _FIRST
            if not found:
                return
            yield len(unused)

    def _barriers(self, connection: Connection) -> Iterator[int]:
        """Delete unreferenced barriers batch by batch; yield the number deleted in each batch."""
        while True:
            values = {
                "after": self._barrier,
                "retained_s": limits.VERSIONS_RETAINED_S,
                "rows_max": limits.VERSIONS_PURGED_AT_ONCE,
            }
            rows = cursor_of(connection, _PurgedBarriers)
            [batch] = rows.execute(SQL["purge_barriers"], values).fetchall()
            self._barrier = batch.last or 0
            if batch.last is None:
                return
            yield batch.deleted


def _purge_patterns(connection: Connection, until_s: float, clock: Clock) -> int:
    """Delete ended versions of patterns, then deleted patterns without versions, then deleted
    groups without patterns, batch by batch; return the number of versions.
    """
    values = {
        "retained_s": limits.VERSIONS_RETAINED_S,
        "rows_max": limits.VERSIONS_PURGED_AT_ONCE,
    }
    versions = 0
    for name in ("purge_patterns", "purge_deleted_patterns", "purge_deleted_groups"):
        deleted = limits.VERSIONS_PURGED_AT_ONCE
        while deleted == limits.VERSIONS_PURGED_AT_ONCE and clock.monotonic_s() < until_s:
            deleted = int(scalars(connection).execute(SQL[name], values).fetchone() or 0)
            versions += deleted if name == "purge_patterns" else 0
    return versions


def _needed(connection: Connection, endpoints: Iterable[int | None]) -> set[int]:
    """Return the versions that pending deliveries to these endpoints need."""
    ids = {endpoint_id for endpoint_id in endpoints if endpoint_id is not None}
    if not ids:
        return set()
    return {*scalars(connection).execute(SQL["needed"], {"endpoints": list(ids)}).fetchall()}


def _epochs(connection: Connection, data: Path) -> Iterator[EpochFacts]:
    """Yield the facts of the usable match indexes of this data folder."""
    for stream_id in indexed(data):
        try:
            manifest = read_manifest(index_root(data, stream_id))
            moment = snapshot_of(connection, stream_id)
        except (IndexAbsent, IndexDamaged, IndexNotUsed, OSError):
            continue
        facts = facts_of(manifest)
        if facts is not None and refusal(manifest, stream_id, moment) is None:
            yield facts
