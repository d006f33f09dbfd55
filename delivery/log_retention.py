"""The hooks of deliveries for the log's retention: the events that deliveries still need, and the
removal of old deliveries. SQL module.

The composition root passes these functions to the log's maintenance, which knows nothing of
deliveries. A pending delivery retains no segment: before its event is removed, it receives a copy
of the event's stored bytes.
"""

from typing import NamedTuple

from delivery.partitions.archive import PartitionArchive
from delivery.partitions.retire import retire_deliveries_partition
from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_all, fetch_value, fetch_values

log = get_logger(__name__)
SQL = queries.load("delivery/sql/log_retention.sql")


class _Needed(NamedTuple):
    """The lowest sequence of a stream that is needed."""

    stream_id: int
    sequence: int


async def lowest_needed_sequences(connection: Connection) -> dict[int, int]:
    """Return each stream's lowest sequence not matched for callbacks, not yet fully fanned out, or
    not acknowledged by a reliable session.
    """
    rows = await fetch_all(connection, _Needed, SQL["needed"])
    return {row.stream_id: row.sequence for row in rows}


async def copy_pending_payloads(connection: Connection, partition_id: int) -> bool:
    """Copy the events of a partition to be dropped into pending deliveries; return True when
    done.
    """
    values = {"partition_id": partition_id, "rows_max": limits.RETAINED_ROWS_MAX}
    while (await connection.execute(SQL["copy_events"], values)).rowcount:
        pass
    return True


async def drop_oldest_partition(
    archive: PartitionArchive | None, connection: Connection, low_space: bool
) -> bool:
    """Drop the oldest partition of deliveries whose events were removed: at once if it is empty,
    space is low, or there are too many such partitions. Pending deliveries move to another
    partition. The rows are archived first, if there is an archive; if space is low, they are
    dropped even if it is not writable.

    Return True if a partition was dropped. It excludes the timetable's retirement meanwhile.
    """
    partition_ids = await fetch_values(connection, SQL["outlived"])
    crowded = len(partition_ids) > limits.RETAINED_PARTITIONS_MAX
    for place, partition_id in enumerate(partition_ids):
        first = place == 0 and (low_space or crowded)
        if first or await fetch_value(connection, SQL["is_empty"], (partition_id,)):
            return await _retire(connection, partition_id, archive, low_space)
    return False


async def _retire(
    connection: Connection, partition_id: int, archive: PartitionArchive | None, low_space: bool
) -> bool:
    if not await fetch_value(connection, SQL["lock_retirement"]):
        return False
    try:
        return await retire_deliveries_partition(
            connection, partition_id, archive, low_space=low_space
        )
    except ValueError:  # the newest partition is not made yet
        return False
    finally:
        await connection.execute(SQL["unlock_retirement"])
