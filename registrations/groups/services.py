"""Makes, suspends, resumes and deletes groups of registrations; each change is announced in its own
transaction, and has a barrier if it says what is matched.
"""

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.system import append_announced, prepare, raw_connection
from eventhub.errors import LimitReached, NotFound
from eventhub.eventlog.system import Announcement
from registrations import rows as registration_rows
from registrations.errors import GroupExists, GroupInUse, UnknownGroup
from registrations.groups import rows
from registrations.groups.rows import Behind
from registrations.groups.selectors import groups_of
from registrations.models import RegistrationGroup
from registrations.owners import Owner


def create_group(
    *, actor: Actor, owner: Owner, name: str, suspended: bool = False
) -> RegistrationGroup:
    """A new group of the client, in which is nothing yet."""
    connection = raw_connection()
    with transaction.atomic():
        if registration_rows.lock_session(connection, owner.id) is None:
            raise NotFound("This zone has no such client.", field="client")
        there = RegistrationGroup.objects.live().filter(client_id=owner.id)
        if there.count() >= limits.GROUPS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.GROUPS_PER_CLIENT_MAX)
        if there.filter(name=name).exists():
            raise GroupExists(field="name")
        made = there.create(zone_id=actor.zone_id, client_id=owner.id, name=name)
        barrier = registration_rows.new_barrier(connection) if suspended else None
        if barrier is not None:
            rows.suspend(connection, made.pk, barrier)
        made = groups_of(actor=actor).get(pk=made.pk)
        _announce(actor, "registration_group.created", made, [], barrier)
    return made


def change_group(
    *, actor: Actor, group_id: int, suspended: bool | None, if_match: int | None = None
) -> RegistrationGroup:
    """Suspend or resume all of a group at one place of every stream, by one row (RDY-07). The same
    again changes nothing.
    """
    connection = raw_connection()
    with transaction.atomic():
        found = _lock(actor, group_id)
        behind = rows.streams_ever(connection, group_id)
        _require_all(actor, behind)
        require_unchanged(rows.resource_of(actor.zone_id, group_id), if_match)
        if suspended in (None, found.suspended):
            return found
        barrier = registration_rows.new_barrier(connection)
        change = rows.suspend if suspended else rows.resume
        change(connection, group_id, barrier)
        found.suspended = bool(suspended)
        _announce(actor, "registration_group.changed", found, behind, barrier)
    return found


def delete_group(*, actor: Actor, group_id: int, if_match: int | None = None) -> None:
    """End a group that no registration names; else GroupInUse."""
    with transaction.atomic():
        found = _lock(actor, group_id)
        require_unchanged(rows.resource_of(actor.zone_id, group_id), if_match)
        if found.registrations:
            raise GroupInUse(field="group")
        RegistrationGroup.objects.filter(pk=group_id).update(deleted_at=TransactionNow())
        _announce(actor, "registration_group.deleted", found, [], None)


def _lock(actor: Actor, group_id: int) -> RegistrationGroup:
    """The group, so that nobody else changes it or joins it; UnknownGroup if there is none. It is
    read by a statement of its own, after the lock.
    """
    found = groups_of(actor=actor).filter(pk=group_id)
    if not found.select_for_update(of=("self",)).values_list("pk"):
        raise UnknownGroup(field="group")
    return found.get()


def _announce(
    actor: Actor, type: str, group: RegistrationGroup, behind: list[Behind], barrier: int | None
) -> None:
    """Raise the barrier, if there is one, and tell; last in the transaction."""
    attributes = {
        "client": group.client_name,
        "group": group.pk,
        "name": group.name,
        "suspended": group.suspended,
        "barrier": barrier,
        "streams": [stream.name for stream in behind if stream.current],
    }
    told = Announcement(type, attributes, rows.resource_of(actor.zone_id, group.pk))
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
