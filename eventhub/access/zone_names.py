"""The names of zones by their numbers, for rooms that know only the numbers. SQL module."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of

_NAMES = "SELECT id, name FROM zones WHERE id = ANY (%s::bigint[])"


class _Zone(NamedTuple):
    id: int
    name: str


async def zone_names(connection: Connection, zone_ids: Sequence[int]) -> dict[int, str]:
    """Zones that are not there are left out."""
    if not zone_ids:
        return {}
    query = cursor_of(connection, _Zone)
    return dict(await (await query.execute(_NAMES, (list(zone_ids),))).fetchall())
