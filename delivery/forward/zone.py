"""The zone of a stream as matching needs it: the declared types of the zone, and the groups of its
clients. SQL module.

A batch is matched after `learn`, which returns at once unless the batch has an event of a version
not met before, or with an audience. Concurrency contract: one task of one event loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.access.client_groups import Groups, Members
from eventhub.event.envelope import Event
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import fetch_value
from eventhub.types.registry import TypeRegistry, ZoneHierarchy

_NO_MEMBERS: Members = {}
_NO_GROUPS: frozenset[str] = frozenset()
_OF_STREAM = "SELECT zone_id FROM streams WHERE id = %s"


class ZoneCaches(NamedTuple):
    """The types and groups of all zones that this process has cached."""

    types: TypeRegistry
    groups: Groups


class ZoneView:
    """One stream's view of its zone. `zone_id` None: the hub-wide stream `system`."""

    def __init__(self, zones: ZoneCaches, zone_id: int | None) -> None:
        self.hierarchy = ZoneHierarchy(zones.types, zone_id)
        self._groups = zones.groups
        self._zone_id = zone_id
        self._members = _NO_MEMBERS

    async def learn(self, events: Sequence[Event], *, through: int) -> None:
        """Load what matching these events needs. `through`: a sequence that `system` had reached
        when they were read. Raises DatabaseUnavailable.
        """
        await self.hierarchy.learn(events, through=through)
        if self._zone_id is not None and any(event.audience for event in events):
            self._members = await self._groups.of_zone(self._zone_id, through=through)

    def groups_of(self, client: str) -> frozenset[str]:
        """Return the groups of a client, for matching an event with an audience."""
        return self._members.get(client, _NO_GROUPS)


async def zone_of_stream(connection: Connection, zones: ZoneCaches, stream_id: int) -> ZoneView:
    """Return the zone view for matching a stream."""
    return ZoneView(zones, await fetch_value(connection, _OF_STREAM, (stream_id,)))
