"""What the hub's data takes, and what each stream holds: the report of storage (EMC-26). Sql
module. SQL module.

The connection is synchronous. Zones are only numbers here.
"""

from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.eventlog.retention import disk
from eventhub.eventlog.retention.drop import SQL
from eventhub.eventlog.retention.quota import StorageBudget, StorageUse
from eventhub.postgresql.rows import cursor_of, scalars

Connection = psycopg.Connection[Any]


class StreamStorage(NamedTuple):
    """What a stream holds in the database. `first` is the first sequence that can be read, here or
    in the archive; `last` + 1 if there is none.
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
    """Of the whole hub: bytes on the disk with all indexes, the quota (None: none), partitions of
    events; of one zone, or of all: its streams, the largest first.
    """

    held: StorageUse
    quota_bytes: int | None
    partitions: int
    streams: list[StreamStorage]

    @property
    def used_bytes(self) -> int:
        return sum(self.held)

    def state(self, disk_state: disk.State) -> disk.State:
        """The worse of the quota's and the disk's: `low`, the oldest segments leave before their
        time; `full`, emits are refused.
        """
        room = StorageBudget(self.used_bytes, self.quota_bytes)
        if room.refused or disk_state == "full":
            return "full"
        return "low" if room.over_mark or disk_state == "low" else "ok"


class DiskReport(NamedTuple):
    """Of the disk that holds the data folder."""

    free_bytes: int
    total_bytes: int
    state: disk.State


def read_storage(
    connection: Connection, *, zone_id: int | None, quota_bytes: int | None
) -> StorageReport:
    """`zone_id` None: streams of all zones. `quota_bytes`: the hub's setting, where no operator has
    set another.
    """
    held = cursor_of(connection, StorageUse).execute(SQL["storage_use"]).fetchone() or StorageUse()
    quota = scalars(connection).execute(SQL["quota"]).fetchone()
    partitions = scalars(connection).execute(SQL["counts"]).fetchone()
    bounds = {"zone": zone_id, "streams_max": limits.STORAGE_STREAMS_MAX}
    streams = cursor_of(connection, StreamStorage).execute(SQL["storage"], bounds).fetchall()
    return StorageReport(held, quota or quota_bytes, partitions or 0, streams)


def set_quota(connection: Connection, quota_bytes: int | None) -> None:
    """From QUOTA_BYTES_MIN on; None: the hub's setting. In the caller's transaction."""
    connection.execute(SQL["set_quota"], (quota_bytes,))


def read_disk(store_dir: str) -> DiskReport | None:
    """None when nobody watches a disk, or it cannot be looked at."""
    if not store_dir:
        return None
    try:
        space = disk.look(Path(store_dir))
    except OSError:
        return None
    return DiskReport(space.free, space.total, space.state)
