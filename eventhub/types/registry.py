"""The type registry of a process: the definitions that emitted events are checked against, and the
newest version of each type. SQL module.

It follows `system` as the authorizer does: the cached definitions of a zone count only while the
tail of `system` was confirmed within a second, and are read again when a type of the zone is
declared. Concurrency contract: one event loop; `run` is one task. The `ZoneTypes` that `zone`
returns never change.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventhub.base import limits
from eventhub.event.envelope import Event, version_number
from eventhub.event.inbound import EventIn
from eventhub.eventlog.log import Log
from eventhub.eventlog.stored import StoredEvent
from eventhub.eventlog.system_follower import SystemFollower
from eventhub.postgresql import queries
from eventhub.postgresql.connections import Connection, reading
from eventhub.postgresql.rows import cursor_of, fetch_all
from eventhub.types.definitions import Checker, Definition
from eventhub.types.errors import TypeViolation, UndeclaredType

SQL = queries.load("eventhub/types/sql/types.sql")


class _DefinitionRow(NamedTuple):
    """A definition of a zone; one row of nulls if the zone has none."""

    zone: str
    definition: Definition


class ZoneTypes:
    """The definitions of one zone at one moment. Checkers are compiled once."""

    def __init__(self, definitions: list[Definition]) -> None:
        self._versions: dict[tuple[str, str], list[Definition]] = {}
        self._checkers: dict[tuple[str, str, int], Checker] = {}
        self._hierarchy: dict[tuple[str, str], tuple[str, ...]] = {}
        for one in definitions:  # versions of a type ascend
            self._versions.setdefault((one.domain, one.type), []).append(one)

    def __bool__(self) -> bool:
        return bool(self._versions)

    def checker(self, event: EventIn, *, undeclared: str) -> Checker | None:
        """Return the checker of the version that the event names; without one, set the newest. None
        for an undeclared type. Raises TypeViolation, and UndeclaredType if `undeclared` is
        `refuse`.
        """
        versions = self._versions.get((event.domain, event.type))
        if versions is None or versions[-1].deleted:
            if undeclared == "refuse":
                raise UndeclaredType(field="type")
            return None
        version = version_number(event.version) if event.version else len(versions)
        if not 1 <= version <= len(versions):
            reason = f"the type has the versions 1 to {len(versions)}"
            raise TypeViolation(f"A version: {reason}.", field="version", reason=reason)
        event.version = str(version)
        at = (event.domain, event.type, version)
        found = self._checkers.get(at)
        if found is None:
            found = self._checkers[at] = Checker(self._lineage(versions[version - 1]))
        return found

    def declared(self) -> list[Definition]:
        """Return the newest version of each type that is not deleted."""
        newest = (versions[-1] for versions in self._versions.values())
        return [definition for definition in newest if not definition.deleted]

    def newest(self, domain: str, type: str) -> Definition | None:
        """Return the newest version of a type; None if it is undeclared or deleted."""
        versions = self._versions.get((domain, type))
        return None if versions is None or versions[-1].deleted else versions[-1]

    @property
    def evolved(self) -> bool:
        """True if any type has more than one version."""
        return any(len(versions) > 1 for versions in self._versions.values())

    def newest_for(self, event: Event) -> str:
        """Return the newest version of the event's type; "" unless newer than the event's."""
        versions = self._versions.get((event.domain, event.type))
        if versions is None or not 0 < version_number(event.version) < len(versions):
            return ""
        return str(len(versions))

    def hierarchy(self, event: Event) -> tuple[str, ...]:
        """Return the event's type, then its supertypes (RDY-13), by the version that the event was
        checked against; an event that was not checked has no supertypes. The answer never changes,
        because neither a version nor the parent of a type does.
        """
        at = (event.domain, event.type)
        if not event.version or not self._has(event):
            return at[1:]
        found = self._hierarchy.get(at)
        if found is None:
            lineage = self._lineage(self._versions[at][0])
            found = self._hierarchy[at] = tuple(one.type for one in lineage)
        return found

    def knows(self, event: Event) -> bool:
        """Return False if the event names a version that is not known here."""
        return not event.version or not version_number(event.version) or self._has(event)

    def _has(self, event: Event) -> bool:
        versions = self._versions.get((event.domain, event.type))
        return versions is not None and 0 < version_number(event.version) <= len(versions)

    def _lineage(self, definition: Definition) -> list[Definition]:
        found = [definition]
        while found[-1].parent is not None and len(found) <= limits.TYPE_PARENTS_MAX:
            found.append(self._versions[definition.domain, found[-1].parent][-1])
        return found


async def read_zone_types(connection: Connection, zone_id: int) -> ZoneTypes:
    """Read the present definitions of a zone, for a process that follows no changes."""
    rows = await fetch_all(connection, _DefinitionRow, SQL["zone_definitions"], (zone_id,))
    return ZoneTypes([row.definition for row in rows if row.definition.domain is not None])


class TypeRegistry:
    """The cached definitions of the zones that this process uses."""

    def __init__(self, hub_log: Log) -> None:
        self._log = hub_log
        self._system = SystemFollower(hub_log, "types", self._apply)
        self._zones: dict[int, ZoneTypes] = {}
        self._evolved: dict[int | None, ZoneTypes] = {}  # those with a type of several versions
        self._ids: dict[str, int] = {}  # of those zones, by name
        self._changes = 0
        self.expensive_checks = asyncio.Lock()  # held by the one request whose checks take long

    def fresh(self) -> bool:
        """Return True while the cached definitions count."""
        return self._system.fresh()

    async def zone(self, zone_id: int) -> ZoneTypes:
        """Return the definitions of a zone. Raises DatabaseUnavailable."""
        found = self._zones.get(zone_id)
        if found is None or not self.fresh():
            found = await self._load(zone_id)
        return found

    def has_none(self, zone_id: int) -> bool:
        """Return True if it is known that the zone declares no types."""
        found = self._zones.get(zone_id)
        return found is not None and not found and self.fresh()

    async def zone_of_events(
        self, zone_id: int, events: Sequence[Event], *, through: int | None = None
    ) -> ZoneTypes:
        """Return the definitions of a zone, including every version that one of the events was
        checked against. `through`: a sequence that `system` had reached when the events were read,
        if known. Raises DatabaseUnavailable.
        """
        found = await self.zone(zone_id)
        if all(map(found.knows, events)):
            return found
        if self._system.has_reached(await self._system.head() if through is None else through):
            return await self.zone(zone_id)  # no such version was declared
        return await self._load(zone_id)

    def evolved(self, zone_id: int | None) -> ZoneTypes | None:
        """Return the cached definitions of a zone if a type has several versions: listeners are
        then notified of newer ones (FOX-20). None until `zone` has loaded them.
        """
        return self._evolved.get(zone_id)

    async def run(self) -> None:
        """Follow `system` until cancelled, also across outages of the database."""
        await self._system.run()

    async def _apply(self, stored: StoredEvent | None) -> None:
        if stored is None:
            await self._renew_all()
        elif stored.event.type in ("type.declared", "type.deleted"):
            await self._renew(stored.event.attributes.get("zone"))

    async def _renew_all(self) -> None:
        self._changes += 1
        for zone_id in [*self._zones]:
            await self._load(zone_id)

    async def _renew(self, zone: Any) -> None:
        self._changes += 1
        zone_id = self._ids.get(zone)
        if zone_id is not None:
            self._zones.pop(zone_id, None)
            await self._load(zone_id)

    async def _load(self, zone_id: int) -> ZoneTypes:
        changes = self._changes
        async with reading(self._log.lookups) as connection:
            query = cursor_of(connection, _DefinitionRow)
            rows = await (await query.execute(SQL["zone_definitions"], (zone_id,))).fetchall()
        found = ZoneTypes([row.definition for row in rows if row.definition.domain is not None])
        if changes == self._changes and rows:  # nothing was declared while the rows were read
            if len(self._zones) >= limits.TYPE_ZONES_CACHED_MAX:
                self._zones.clear()
                self._evolved.clear()
                self._ids.clear()
            self._zones[zone_id] = found
            if found.evolved:
                self._evolved[zone_id] = found
            self._ids[rows[0].zone] = zone_id
        return found


class ZoneHierarchy:
    """The type hierarchy of a zone's events (a `TypeHierarchy` of the matchers). Await `learn` with
    each batch of events before you match it.
    """

    def __init__(self, registry: TypeRegistry, zone_id: int | None) -> None:
        """Start empty. Without a zone, as for `system`, no types are declared."""
        self._registry = registry
        self._zone_id = zone_id
        self._types = ZoneTypes([])

    def __call__(self, event: Event) -> tuple[str, ...]:
        """Return the event's type, then its supertypes."""
        return self._types.hierarchy(event)

    def knows(self, events: Sequence[Event]) -> bool:
        """Return whether `learn` would load nothing for these events."""
        return self._zone_id is None or all(map(self._types.knows, events))

    async def learn(self, events: Sequence[Event], *, through: int | None = None) -> None:
        """Load the definitions of the events' types; without I/O unless one has a new version.
        `through` as in `TypeRegistry.zone_of_events`. Raises DatabaseUnavailable.
        """
        if self._zone_id is not None and not self.knows(events):
            self._types = await self._registry.zone_of_events(
                self._zone_id, events, through=through
            )
