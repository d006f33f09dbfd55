"""Makes, suspends, resumes and deletes groups of registrations; each change is announced in its own
transaction, and has a barrier if it says what is matched.
"""

from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.system import append_announced, prepare, raw_connection
from eventhub.errors import LimitReached, NotFound
from eventhub.eventlog.system import Announcement
from registrations import rows as registration_rows
from registrations.endpoints.rows import Whose
from registrations.errors import GroupExists, GroupInUse
from registrations.groups import rows
from registrations.groups.rows import Behind, Group
from registrations.owners import Owner, require_some_listen


def create_group(*, actor: Actor, owner: Owner, name: str, suspended: bool = False) -> Group:
    """A new group of the client, in which is nothing yet."""
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        if registration_rows.lock_session(connection, owner.id) is None:
            raise NotFound("This zone has no such client.", field="client")
        if rows.count(connection, owner.id) >= limits.GROUPS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.GROUPS_PER_CLIENT_MAX)
        group_id = rows.insert(connection, actor.zone_id, owner.id, name)
        if group_id is None:
            raise GroupExists(field="name")
        barrier = registration_rows.new_barrier(connection) if suspended else None
        if barrier is not None:
            rows.suspend(connection, group_id, barrier)
        made = rows.get(connection, Whose(actor.zone_id, owner.id), group_id)
        _announce(actor, "registration_group.created", made, [], barrier)
    return made


def change_group(
    *,
    actor: Actor,
    whose: Whose,
    group_id: int,
    suspended: bool | None,
    if_match: int | None = None,
) -> Group:
    """Suspend or resume all of a group at one place of every stream, by one row (RDY-07). The same
    again changes nothing.
    """
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        found = rows.lock(connection, whose, group_id)
        behind = rows.streams_ever(connection, group_id)
        _require_all(actor, behind)
        require_unchanged(rows.resource_of(actor.zone_id, group_id), if_match)
        if suspended in (None, found.suspended):
            return found
        barrier = registration_rows.new_barrier(connection)
        change = rows.suspend if suspended else rows.resume
        change(connection, group_id, barrier)
        changed = found._replace(suspended=bool(suspended))
        _announce(actor, "registration_group.changed", changed, behind, barrier)
    return changed


def delete_group(*, actor: Actor, whose: Whose, group_id: int, if_match: int | None = None) -> None:
    """End a group that no registration names; else GroupInUse."""
    require_some_listen(actor=actor)
    connection = raw_connection()
    with transaction.atomic():
        found = rows.lock(connection, whose, group_id)
        require_unchanged(rows.resource_of(actor.zone_id, group_id), if_match)
        if found.registrations:
            raise GroupInUse(field="group")
        rows.delete(connection, group_id)
        _announce(actor, "registration_group.deleted", found, [], None)


def _announce(
    actor: Actor, type: str, group: Group, behind: list[Behind], barrier: int | None
) -> None:
    """Raise the barrier, if there is one, and tell; last in the transaction."""
    attributes = {
        "client": group.client,
        "group": group.id,
        "name": group.name,
        "suspended": group.suspended,
        "barrier": barrier,
        "streams": [stream.name for stream in behind if stream.current],
    }
    told = Announcement(type, attributes, rows.resource_of(actor.zone_id, group.id))
    prepared = prepare(zone=actor.zone, announcements=[told])
    if barrier is not None:
        streams = [stream.id for stream in behind]
        registration_rows.raise_barrier(raw_connection(), barrier, streams)
    append_announced(prepared)


def _require_all(actor: Actor, behind: list[Behind]) -> None:
    """Forbidden unless the actor may listen to every stream of the group's registrations."""
    for stream in behind:
        if stream.current:
            actor.require_listen(stream.name, field="group")
