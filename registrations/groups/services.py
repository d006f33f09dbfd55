"""Creates, suspends, resumes and deletes groups of registrations. Each change is announced in its
own transaction; suspending and resuming have a barrier. Django module.
"""

from collections.abc import Iterable
from typing import NamedTuple

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from eventhub.access.principal import Actor
from eventhub.access.sessions import UnknownSession
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.base import limits
from eventhub.base.errors import LimitReached
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from registrations.endpoints.services import lock_client
from registrations.errors import GroupExists, GroupInUse, UnknownSessionGroup
from registrations.models import CURRENT, GroupStream, RegistrationGroup, Suspension
from registrations.scope import Owner
from registrations.sessions.statements import (
    lock_session_groups,
    require_consumer,
    sessions_by_name,
)
from registrations.statements import fill_barrier, new_barrier

# With the fields of the API, without the roots of sessions; `suspended`: there is a suspension
# without an end.
GROUPS = RegistrationGroup.objects.filter(root=False).annotate(
    client_name=F("client__name"),
    session_name=F("session__name"),
    session_group_name=F("session_group__name"),
    suspended=Exists(Suspension.objects.filter(CURRENT, group=OuterRef("pk"))),
)


class NewGroup(NamedTuple):
    """A group to be created. It belongs to a consumer session or session group, by name, or to the
    client alone.
    """

    name: str
    suspended: bool = False
    session: str | None = None
    session_group: str | None = None


def create_group(*, actor: Actor, owner: Owner, new: NewGroup) -> RegistrationGroup:
    """Create an empty group of the client. Raises GroupExists, LimitReached, NotFound,
    UnknownSession, UnknownSessionGroup.
    """
    name, suspended = new.name, new.suspended
    with transaction.atomic():
        lock_client(owner)
        existing = RegistrationGroup.objects.live().filter(client_id=owner.id, root=False)
        if existing.count() >= limits.GROUPS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.GROUPS_PER_CLIENT_MAX)
        if existing.filter(name=name).exists():
            raise GroupExists(field="name")
        group = existing.model(zone_id=actor.zone_id, client_id=owner.id, name=name)
        group.session_name, group.session_group_name = _assign_session(actor, group, new)
        group.save(force_insert=True)
        group.client_name, group.suspended = owner.name, suspended
        _announce(actor, "created", group, switch(group) if suspended else None)
    return group


def _assign_session(
    actor: Actor, group: RegistrationGroup, new: NewGroup
) -> tuple[str | None, str | None]:
    """Set the session that a new group belongs to, and return the name of the session and of the
    session group; by default the session that the request acts through.
    """
    session = new.session
    if new.session_group is not None:
        found = lock_session_groups(raw_connection(), group.client_id, [new.session_group])
        if new.session_group not in found:
            raise UnknownSessionGroup(field="session_group", session_group=new.session_group)
        of_group = found[new.session_group]
        group.session_group_id, group.parent_id = of_group.id, of_group.root_id
        return None, of_group.name
    if session is None and actor.session is not None:
        session = actor.session.name
    if session is None:
        return None, None
    known = sessions_by_name(raw_connection(), group.client_id, [session])
    if session not in known:
        raise UnknownSession(field="session", session=session)
    of_session = require_consumer(known[session])
    group.session_id, group.parent_id = of_session.id, of_session.root_id
    return session, None


def change_group(
    *, actor: Actor, group: RegistrationGroup, suspended: bool | None = None
) -> RegistrationGroup:
    """Suspend or resume a group, whose row is locked, at one position of every stream, by one row
    (RDY-07). Repeating it changes nothing. Raises Forbidden unless the actor may listen to every
    stream of the group's registrations.
    """
    streams = [*streams_ever(group.pk)]
    for each in streams:
        if each.registrations:
            actor.require_listen(each.stream.name, field="group")
    if suspended not in (None, group.suspended):
        group.suspended = suspended
        _announce(actor, "changed", group, switch(group), streams)
    return group


def delete_group(*, actor: Actor, group: RegistrationGroup) -> None:
    """Delete a group, whose row is locked. Raises GroupInUse if a registration names it."""
    if group.registrations:
        raise GroupInUse(field="group")
    RegistrationGroup.objects.filter(pk=group.pk).update(deleted_at=TransactionNow())
    _announce(actor, "deleted", group)


def streams_ever(group_id: int) -> QuerySet[GroupStream]:
    """Return the streams that a barrier of the group, whose row is locked, must hold: a stream that
    is absent had none of the registrations of the group, or of its children, before.
    """
    own_or_child = Q(group_id=group_id) | Q(group__parent_id=group_id)
    found = GroupStream.objects.filter(own_or_child).select_related("stream")
    return found.order_by("stream_id")


def switch(group: RegistrationGroup) -> int:
    """Suspend or resume the group as its field `suspended` says, at a new barrier, which the caller
    raises.
    """
    barrier = new_barrier(raw_connection())
    if group.suspended:
        Suspension.objects.create(group=group, from_barrier_id=barrier)
    else:
        Suspension.objects.filter(CURRENT, group=group).update(until_barrier=barrier)
    return barrier


def _announce(
    actor: Actor,
    change: str,
    group: RegistrationGroup,
    barrier: int | None = None,
    streams: Iterable[GroupStream] = (),
) -> None:
    """Raise the barrier, if there is one, and announce the change; last in the transaction."""
    attributes = {
        "client": group.client_name,
        "group": group.pk,
        "name": group.name,
        "suspended": group.suspended,
        "session": group.session_id,
        "session_group": group.session_group_id,
        "barrier": barrier,
        "streams": [each.stream.name for each in streams if each.registrations],
    }
    resource = Resource("registration_group", actor.zone_id, str(group.pk))
    announcement = Announcement(f"registration_group.{change}", attributes, resource)
    prepared = prepare(zone=actor.zone, announcements=[announcement])
    if barrier is not None:
        fill_barrier(raw_connection(), barrier, [each.stream_id for each in streams])
    append_announced(prepared)
