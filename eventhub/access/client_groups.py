"""The groups of a zone's clients, for processes that deliver events to clients without a request of
theirs: cached, and dropped when `system` announces a change. SQL module.

Only events with an audience need them. Concurrency contract: one event loop; `run` is one task.
The mapping that `of_zone` returns is never changed.
"""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from eventhub.base import limits
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system_follower import SystemFollower
from eventhub.postgresql.connections import reading
from eventhub.postgresql.rows import cursor_of

Members = Mapping[str, frozenset[str]]  # groups by client name, without clients in no group

# The zone's name, and its live clients that are in a group; one row of nulls if there are none.
_OF_ZONE = """
    SELECT z.name AS zone, c.name AS client, c.groups::text AS groups
      FROM zones z
      LEFT JOIN clients c ON c.zone_id = z.id AND c.deleted_at IS NULL AND c.groups <> '[]'
     WHERE z.id = %s
"""


class _MemberRow(NamedTuple):
    """A client and its groups, as JSON; one row of nulls if no client of the zone has groups."""

    zone: str
    client: str | None
    groups: str


class _CachedMembers(NamedTuple):
    zone: str
    members: Members


class Groups:
    """The groups of the zones that this process looked up."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._system = SystemFollower(hub_log, "groups", self._tell)
        self._zones: dict[int, _CachedMembers] = {}
        self._changes = 0

    async def run(self) -> None:
        """Follow `system` until cancelled."""
        await self._system.run()

    async def of_zone(self, zone_id: int, *, through: int = 0) -> Members:
        """Return the groups of a zone's clients. They include every change older than a second and
        every one announced in `system` up to the sequence `through`. Raises DatabaseUnavailable.
        """
        found = self._zones.get(zone_id)
        if found is not None and self._system.fresh() and self._system.has_reached(through):
            return found.members
        return await self._load(zone_id)

    async def _load(self, zone_id: int) -> Members:
        changes = self._changes
        async with reading(self._log.lookups) as connection:
            query = cursor_of(connection, _MemberRow)
            rows = await (await query.execute(_OF_ZONE, (zone_id,))).fetchall()
        sets: dict[str, frozenset[str]] = {}  # most clients of a zone share the same few sets
        members = {
            row.client: sets.setdefault(row.groups, frozenset(orjson.loads(row.groups)))
            for row in rows
            if row.client is not None
        }
        if rows and changes == self._changes:  # nothing changed while the rows were read
            if len(self._zones) >= limits.GROUP_ZONES_CACHED_MAX:
                self._zones.clear()
            self._zones[zone_id] = _CachedMembers(rows[0].zone, members)
        return members

    async def _tell(self, stored: StoredEvent | None) -> None:
        if stored is None:
            self._changes += 1
            self._zones.clear()
        elif stored.event.type.startswith("client."):
            self._changes += 1
            zone = stored.event.attributes.get("zone")
            for zone_id in [id for id, known in self._zones.items() if known.zone == zone]:
                del self._zones[zone_id]
