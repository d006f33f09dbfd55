"""What deliveries still need of the log, and what the log's retention asks of them. SQL module.

The composition root gives these functions to the log's upkeep, which knows nothing of deliveries.
A pending delivery keeps no segment: before its event goes, it gets the event's stored bytes.
"""

from typing import NamedTuple

from delivery.partitions.archive import Shelf
from delivery.partitions.retire import retire_deliveries_group
from eventhub.base import limits
from eventhub.base.logs import get_logger
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of, scalars

log = get_logger(__name__)
SQL = queries.load("delivery/sql/retained.sql")


class _Needed(NamedTuple):
    """The lowest sequence of a stream that is needed."""

    stream_id: int
    sequence: int


async def needs(connection: Connection) -> dict[int, int]:
    """The lowest sequence of each stream that is not matched for callbacks yet, or whose deliveries
    are not all written.
    """
    rows = await (await cursor_of(connection, _Needed).execute(SQL["needed"])).fetchall()
    return {row.stream_id: row.sequence for row in rows}


async def release(connection: Connection, group: int) -> bool:
    """Give pending deliveries the bytes of events that go with a group; True when all have them."""
    values = {"partition_id": group, "rows_max": limits.RETAINED_ROWS_MAX}
    while (await connection.execute(SQL["keep_bytes"], values)).rowcount:
        pass
    return True


async def shed(shelf: Shelf | None, connection: Connection, pressed: bool) -> bool:
    """Drop the oldest deliveries whose events went, with what is pending moved on: at once if none
    are left in their partition, or space is short, or there are too many partitions. They are
    archived first, if there is an archive; when space is short they go also when it takes nothing.

    True if a partition went. It takes turns with the timetable's retirement.
    """
    groups = await (await scalars(connection).execute(SQL["outlived"])).fetchall()
    crowded = len(groups) > limits.RETAINED_PARTITIONS_MAX
    for place, group in enumerate(groups):
        first = place == 0 and (pressed or crowded)
        if first or await _is_empty(connection, group):
            return await _retire(connection, group, shelf, pressed)
    return False


async def _is_empty(connection: Connection, group: int) -> bool:
    return bool(await (await scalars(connection).execute(SQL["is_empty"], (group,))).fetchone())


async def _retire(connection: Connection, group: int, shelf: Shelf | None, pressed: bool) -> bool:
    if not await (await scalars(connection).execute(SQL["lock_retirement"])).fetchone():
        return False
    try:
        return await retire_deliveries_group(connection, group, shelf, pressed=pressed)
    except ValueError:  # the newest partition is not made yet
        return False
    finally:
        await connection.execute(SQL["unlock_retirement"])
