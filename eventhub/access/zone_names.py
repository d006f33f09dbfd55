"""The names of zones by id, for packages that know only the ids. SQL module."""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import cursor_of

_NAMES = "SELECT id, name FROM zones WHERE id = ANY (%s::bigint[])"


class _ZoneName(NamedTuple):
    id: int
    name: str


async def zone_names(connection: Connection, zone_ids: Sequence[int]) -> dict[int, str]:
    """Return the names of the zones that exist, by id."""
    if not zone_ids:
        return {}
    query = cursor_of(connection, _ZoneName)
    return dict(await (await query.execute(_NAMES, (list(zone_ids),))).fetchall())
