"""What the events of one stream are matched with beside registrations: the declared types of the
stream's zone, and the groups of its clients. SQL module.

A batch that was read is matched after `learn`, which is at once unless an event in it is of a
version not met before, or has an audience. Concurrency contract: one task of one event loop.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eventhub.access.client_groups import Groups, Members
from eventhub.event.envelope import Event
from eventhub.postgresql.connections import Connection
from eventhub.postgresql.rows import scalars
from eventhub.types.registry import TypeRegistry, ZoneHierarchy

_NOBODY: Members = {}
_NO_GROUPS: frozenset[str] = frozenset()
_OF_STREAM = "SELECT zone_id FROM streams WHERE id = %s"


class Zones(NamedTuple):
    """What this process knows of all zones."""

    types: TypeRegistry
    groups: Groups


class Zone:
    """One stream's view of its zone. `zone_id` None: the hub-wide `system`."""

    def __init__(self, zones: Zones, zone_id: int | None) -> None:
        self.hierarchy = ZoneHierarchy(zones.types, zone_id)
        self._groups = zones.groups
        self._zone_id = zone_id
        self._members = _NOBODY

    async def learn(self, events: Sequence[Event], *, through: int) -> None:
        """Know what matching these events needs. `through`: a sequence that `system` had reached
        when they were read. Raises DatabaseUnavailable.
        """
        await self.hierarchy.learn(events, through=through)
        if self._zone_id is not None and any(event.audience for event in events):
            self._members = await self._groups.of_zone(self._zone_id, through=through)

    def groups_of(self, client: str) -> frozenset[str]:
        """The groups of a client, while an event with an audience is matched."""
        return self._members.get(client, _NO_GROUPS)


async def zone_of_stream(connection: Connection, zones: Zones, stream_id: int) -> Zone:
    """The view that matching a stream takes."""
    return Zone(
        zones, await (await scalars(connection).execute(_OF_STREAM, (stream_id,))).fetchone()
    )
