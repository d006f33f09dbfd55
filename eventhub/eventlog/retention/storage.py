"""The storage report: the bytes that the hub's data uses, and those of each stream (EMC-26). SQL
module.

The connection is synchronous. Zones are numbers here.
"""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.retention import disk
from eventhub.eventlog.retention.drop import SQL
from eventhub.eventlog.retention.quota import StorageBudget, StorageBytes
from eventhub.postgresql.rows import cursor_of, scalars

Connection = psycopg.Connection[Any]


class StreamStorage(NamedTuple):
    """A stream's data in the database. `first`: the first readable sequence, here or in the
    archive; `last` + 1 if there is none.
    """

    name: str
    id: int
    bytes: int
    live: int  # segments
    archived: int
    dropped: int
    first: int
    last: int


class StorageReport(NamedTuple):
    """The whole hub's bytes on the disk with all indexes, its quota (None: none) and number of
    partitions; the streams of one zone or of all, the largest first.
    """

    usage: StorageBytes
    quota_bytes: int | None
    partitions: int
    streams: list[StreamStorage]

    @property
    def used_bytes(self) -> int:
        return sum(self.usage)

    def state(self, disk_state: disk.State) -> disk.State:
        """Return the worse of the quota's and the disk's state. `low`: the oldest segments are
        dropped early; `full`: emits are refused.
        """
        budget = StorageBudget(self.used_bytes, self.quota_bytes)
        if budget.refused or disk_state == "full":
            return "full"
        return "low" if budget.is_over_threshold or disk_state == "low" else "ok"


class DiskReport(NamedTuple):
    """The disk that holds the data folder."""

    free_bytes: int
    total_bytes: int
    state: disk.State


def read_storage(
    connection: Connection, *, zone_id: int | None, quota_bytes: int | None
) -> StorageReport:
    """Read the report. `zone_id` None: streams of all zones. `quota_bytes`: the hub's setting, used
    if no operator has set a quota.
    """
    usage = (
        cursor_of(connection, StorageBytes).execute(SQL["storage_use"]).fetchone() or StorageBytes()
    )
    quota = scalars(connection).execute(SQL["quota"]).fetchone()
    partitions = scalars(connection).execute(SQL["counts"]).fetchone()
    bounds = {"zone": zone_id, "streams_max": limits.STORAGE_STREAMS_MAX}
    streams = cursor_of(connection, StreamStorage).execute(SQL["storage"], bounds).fetchall()
    return StorageReport(usage, quota or quota_bytes, partitions or 0, streams)


def set_quota(connection: Connection, quota_bytes: int | None) -> None:
    """Set the quota, at least QUOTA_BYTES_MIN; None: use the hub's setting. In the caller's
    transaction.
    """
    connection.execute(SQL["set_quota"], (quota_bytes,))


def read_disk(store_dir: str) -> DiskReport | None:
    """Return the state of the disk; None if no disk is watched or it cannot be examined."""
    if not store_dir:
        return None
    try:
        space = disk.measure(Path(store_dir))
    except OSError:
        return None
    return DiskReport(space.free, space.total, space.state)
