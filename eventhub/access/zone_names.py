"""The names of zones by their numbers, for rooms that know only the numbers. Sql module."""

from collections.abc import Sequence

from eventhub.eventlog.database import Connection

_NAMES = "SELECT id, name FROM zones WHERE id = ANY (%s::bigint[])"


async def zone_names(connection: Connection, zone_ids: Sequence[int]) -> dict[int, str]:
    """Zones that are not there are left out."""
    if not zone_ids:
        return {}
    return dict(await (await connection.execute(_NAMES, (list(zone_ids),))).fetchall())
