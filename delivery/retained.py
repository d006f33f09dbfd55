"""What deliveries still need of the log, and what the log's retention asks of them. Sql module.

The composition root gives these functions to the log's upkeep, which knows nothing of deliveries.
A pending delivery keeps no segment: before its event goes, it gets the event's stored bytes.
"""

from pathlib import Path

import delivery
from delivery.forward.retiring import retire_deliveries_group
from delivery.forward.shelf import Shelf
from eventhub import limits
from eventhub.eventlog import queries
from eventhub.eventlog.database import Connection
from eventhub.logs import get_logger

log = get_logger(__name__)
SQL = queries.load("retained.sql", Path(next(iter(delivery.__path__))) / "sql")


async def needs(connection: Connection) -> dict[int, int]:
    """The lowest sequence of each stream that is not matched for callbacks yet, or whose deliveries
    are not all written.
    """
    return dict(await (await connection.execute(SQL["needed"])).fetchall())


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
    rows = await (await connection.execute(SQL["outlived"])).fetchall()
    crowded = len(rows) > limits.RETAINED_GROUPS_MAX
    for place, (group,) in enumerate(rows):
        first = place == 0 and (pressed or crowded)
        if first or await _is_empty(connection, group):
            return await _retire(connection, group, shelf, pressed)
    return False


async def _is_empty(connection: Connection, group: int) -> bool:
    row = await (await connection.execute(SQL["is_empty"], (group,))).fetchone()
    return bool(row and row[0])


async def _retire(connection: Connection, group: int, shelf: Shelf | None, pressed: bool) -> bool:
    row = await (await connection.execute(SQL["lock_retirement"])).fetchone()
    if row is None or not row[0]:
        return False
    try:
        return await retire_deliveries_group(connection, group, shelf, pressed=pressed)
    except ValueError:  # the newest partition is not made yet
        return False
    finally:
        await connection.execute(SQL["unlock_retirement"])
