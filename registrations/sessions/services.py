"""Creates, changes and deletes sessions and session groups. Each change is announced in its own
transaction; suspending, resuming and deleting have a barrier, like those of registrations.
Django module.

The row of `registration_owners` of the client is locked first, so that nothing else changes the
client's sessions and registrations meanwhile. A session group is locked before a session joins it,
because the two may belong to different clients.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.postgres.functions import TransactionNow
from django.db import IntegrityError, transaction

from eventhub.access.principal import Actor
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.base import limits
from eventhub.base.errors import InvalidField, LimitReached, MissingField
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from eventhub.sessions.models import Kind, Session, SessionGroup, Sharing
from registrations import statements
from registrations.catalog import SessionOwner
from registrations.errors import (
    SessionExists,
    SessionGroupExists,
    SessionGroupInUse,
    UnknownSessionGroup,
)
from registrations.groups.services import streams_ever, switch
from registrations.models import GroupStream, RegistrationGroup
from registrations.scope import Owner
from registrations.services import lock_owner
from registrations.sessions import sharing
from registrations.sessions import statements as session_statements
from registrations.sessions.selectors import SESSION_GROUPS, SESSIONS

DELIVERY = ("disconnected", "quality", "order", "order_options", "window", "attempts_max")
_FIELDS = (*DELIVERY, "suspended", "supplies")
_SHARED = ("sharing", "share_by")  # of a session group, immutable

Fields = Mapping[str, Any]  # of a request, validated


class SessionChange:
    """One change of a session or session group: its barrier, if it has one, and its announcement,
    which is last in the transaction.
    """

    def __init__(self, actor: Actor, row: Session | SessionGroup, client: str) -> None:
        self._actor, self._row, self._client = actor, row, client
        self._barrier: int | None = None
        self._root: int | None = None
        self._streams: set[int] = set()
        self._names: list[str] = []
        self._more: list[Announcement] = []

    @property
    def owner(self) -> SessionOwner:
        return _owner_of(self._row)

    def suspend(self, root: RegistrationGroup, streams: Sequence[GroupStream]) -> None:
        """Suspend or resume the registrations, by one row."""
        root.suspended = self._row.suspended
        self._barrier, self._root = switch(root), root.pk
        self._add(streams)

    def join(self, group: SessionGroup) -> int:
        """Raise a barrier of the streams of the group's registrations, at which the cursors of the
        session start; return it.
        """
        root = _root_of(SessionOwner(None, group.pk))
        if self._barrier is None:
            self._barrier = statements.new_barrier(raw_connection())
        self._add(one for one in streams_ever(root.pk) if one.registrations)
        return self._barrier

    def end_registrations(self) -> None:
        """End the registrations and the registration groups, at one barrier."""
        connection = raw_connection()
        ids = session_statements.live_of_session(connection, self.owner)
        self._barrier = statements.new_barrier(connection)
        self._streams.update(statements.end_versions(connection, ids, self._barrier))
        session_statements.delete_groups_of_session(connection, self.owner)
        if not ids:
            return
        statements.end(connection, ids)
        statements.count(connection, self._row.client_id, -len(ids))
        several = {"registration": None, "registrations": len(ids), "barrier": self._barrier}
        attributes = {"client": self._client, **several, **self.owner._asdict()}
        self._more.append(Announcement("registration.deleted", attributes))

    def announce(self, change: str, *, group: SessionGroup | None = None) -> None:
        """Fill the barrier, start the cursors of a session that joined a group, and append."""
        row, kind = self._row, _kind_of(self._row)
        attributes = {
            "client": self._client,
            kind: row.pk,
            "name": row.name,
            **_announced(row),
            "barrier": self._barrier,
            "registration_group": self._root,
            "streams": self._names,
        }
        resource = Resource(kind, self._actor.zone_id, str(row.pk))
        announcements = [*self._more, Announcement(f"{kind}.{change}", attributes, resource)]
        prepared = prepare(zone=self._actor.zone, announcements=announcements)
        connection = raw_connection()
        if self._barrier is not None:
            statements.fill_barrier(connection, self._barrier, self._streams)
        if group is not None and self._barrier is not None:
            session_statements.start_cursors_of_member(connection, row.pk, self._barrier)
        append_announced(prepared)

    def _add(self, streams: Iterable[GroupStream]) -> None:
        for each in streams:
            self._streams.add(each.stream_id)
            if each.registrations and each.stream.name not in self._names:
                self._names.append(each.stream.name)


def create_session(*, actor: Actor, owner: Owner, fields: Fields) -> Session:
    """Create a session of the client (RDY-01, RDY-02). Raises SessionExists, LimitReached,
    UnknownSessionGroup, NotFound, MissingField and InvalidField for fields that its kind needs or
    does not have.
    """
    kind, group_name = fields["kind"], fields.get("group")
    _check(kind, fields)
    with transaction.atomic():
        lock_owner(owner.id)
        existing = Session.objects.live().filter(client_id=owner.id).exclude(kind=Kind.GROUP)
        if existing.count() >= limits.SESSIONS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.SESSIONS_PER_CLIENT_MAX)
        if existing.filter(name=fields["name"]).exists():
            raise SessionExists(field="name")
        group = _lock_group(actor, owner.id, group_name)
        given = {name: fields[name] for name in _FIELDS if name in fields}
        row = Session(zone_id=actor.zone_id, client_id=owner.id, kind=kind, name=fields["name"])
        _assign(row, given)
        row.group_id = None if group is None else group.pk
        row.save(force_insert=True)
        row = Session.objects.get(pk=row.pk)
        change = SessionChange(actor, row, owner.name)
        if kind == Kind.CONSUMER:
            root = _new_root(row)
            if row.suspended:
                change.suspend(root, ())
        if group is not None and group.sharing == Sharing.ONE:
            group = None  # which has the position
        if group is not None:
            change.join(group)
        change.announce("created", group=group)
    return SESSIONS.get(pk=row.pk)


def change_session(*, actor: Actor, session: Session, fields: Fields) -> Session:
    """Change a session whose client is locked (RDY-05, RDY-06, RDY-08). Repeating it changes
    nothing. Raises UnknownSessionGroup, InvalidField, and for another `suspended` Forbidden unless
    the actor may listen to every stream of its registrations.
    """
    _check(session.kind, fields, new=False)
    group: Any = session.group
    if "group" in fields:
        group = _lock_group(actor, session.client_id, fields["group"], session)
    given = {name: fields[name] for name in _FIELDS if name in fields}
    changed = {name: value for name, value in given.items() if getattr(session, name) != value}
    group_id = None if group is None else group.pk
    moves = group_id != session.group_id
    joins = moves and group is not None
    if not changed and not moves:
        return session
    change = SessionChange(actor, session, session.client_name)
    _assign(session, changed)
    session.group_id = group_id
    session.save(update_fields=[*changed, *(["group"] if moves else [])])
    if session.kind == Kind.CONSUMER and "suspended" in changed:
        change.suspend(*_listened(actor, change.owner))
    if moves:
        session_statements.end_session_cursors(raw_connection(), session.pk)
    starts = joins and group is not None and group.sharing == Sharing.EVERY
    if starts and group is not None:
        change.join(group)
    change.announce("changed", group=group if starts else None)
    return SESSIONS.get(pk=session.pk)


def delete_session(*, actor: Actor, session: Session) -> None:
    """Delete a session whose client is locked, with its registrations, their groups and its cursors
    (RDY-02). Raises Forbidden unless the actor may listen to every stream of its registrations.
    """
    change = SessionChange(actor, session, session.client_name)
    if session.kind == Kind.CONSUMER:
        _listened(actor, change.owner)
        change.end_registrations()
    _end_session(session)
    change.announce("deleted")


def _end_session(session: Session) -> None:
    """Delete a session with its cursors and claims; events of its group that it has come again."""
    ended = {"deleted_at": TransactionNow(), "group": None, "attachment": None}
    Session.objects.filter(pk=session.pk).update(**ended)
    session_statements.delete_cursors(raw_connection(), session.pk)


def create_session_group(*, actor: Actor, owner: Owner, fields: Fields) -> SessionGroup:
    """Create a session group of the client. Raises SessionGroupExists, LimitReached, NotFound."""
    with transaction.atomic():
        lock_owner(owner.id)
        own = SessionGroup.objects.live().filter(client_id=owner.id)
        if own.count() >= limits.SESSION_GROUPS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.SESSION_GROUPS_PER_CLIENT_MAX)
        row = SessionGroup(zone_id=actor.zone_id, client_id=owner.id, name=fields["name"])
        _assign(row, {name: fields[name] for name in (*_FIELDS, *_SHARED) if name in fields})
        _insert_group(row)
        row = SessionGroup.objects.get(pk=row.pk)
        sharing.check(row)
        if row.sharing == Sharing.ONE:
            sharing.insert_queue(row)
        change = SessionChange(actor, row, owner.name)
        root = _new_root(row)
        if row.suspended:
            change.suspend(root, ())
        change.announce("created")
    return SESSION_GROUPS.get(pk=row.pk)


def change_session_group(*, actor: Actor, group: SessionGroup, fields: Fields) -> SessionGroup:
    """Change a session group whose client is locked; its settings of delivery apply to all members
    (RDY-08). Repeating it changes nothing. Raises Forbidden as `change_session` does.
    """
    changed = {name: value for name, value in fields.items() if getattr(group, name) != value}
    if not changed:
        return group
    change = SessionChange(actor, group, group.client_name)
    _assign(group, changed)
    sharing.check(group)
    group.save(update_fields=[*changed])
    if "suspended" in changed:
        change.suspend(*_listened(actor, change.owner))
    change.announce("changed")
    return SESSION_GROUPS.get(pk=group.pk)


def delete_session_group(*, actor: Actor, group: SessionGroup) -> None:
    """Delete a session group whose client is locked, with its registrations. Raises
    SessionGroupInUse while it has members, and Forbidden as `delete_session` does.
    """
    _lock_row(group.pk)
    members = Session.objects.live().filter(group=group.pk)
    if members.exclude(kind=Kind.GROUP).exists():
        raise SessionGroupInUse(field="session_group")
    change = SessionChange(actor, group, group.client_name)
    _listened(actor, change.owner)
    change.end_registrations()
    for queue in members:
        _end_session(queue)
    SessionGroup.objects.filter(pk=group.pk).update(deleted_at=TransactionNow())
    change.announce("deleted")


def _check(kind: str, fields: Fields, *, new: bool = True) -> None:
    """Raise MissingField or InvalidField for fields that a session of the kind needs or lacks."""
    if kind == Kind.SUPPLIER and new and "supplies" not in fields:
        message = "A supplier session declares the types that it emits."
        raise MissingField(message, field="supplies")
    if kind != Kind.SUPPLIER and "supplies" in fields:
        raise InvalidField("Only a supplier session declares types.", field="supplies")
    if kind == Kind.ADMIN and "suspended" in fields:
        raise InvalidField("An admin session cannot be suspended.", field="suspended")
    if kind != Kind.CONSUMER:
        for name in ("group", *DELIVERY):
            if name in fields:
                raise InvalidField("Only a consumer session has this.", field=name)


def _assign(row: Session | SessionGroup, values: Fields) -> None:
    for name, value in values.items():
        setattr(row, name, value)


def _insert_group(row: SessionGroup) -> None:
    """Insert a session group. Another client may create one of the name at the same time."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise SessionGroupExists(field="name") from error


def _lock_row(group_id: int) -> SessionGroup | None:
    """Lock a session group and return it as it is then, if it is live."""
    return SessionGroup.objects.live().select_for_update().filter(pk=group_id).first()


def _lock_group(
    actor: Actor, client_id: int, name: str | None, member: Session | None = None
) -> SessionGroup | None:
    """Return the session group that a client's session may join, locked. A key's session joins a
    group of its own client; a manager of the zone may name any.
    """
    if name is None:
        return None
    groups = SessionGroup.objects.live().filter(zone_id=actor.zone_id, name=name)
    if not actor.manages_zone:
        groups = groups.filter(client_id=client_id)
    id = groups.values_list("pk", flat=True).first()
    found = None if id is None else _lock_row(id)
    if found is None:
        raise UnknownSessionGroup(field="group", session_group=name)
    if found.sharing == Sharing.ONE and found.client_id != client_id:
        raise InvalidField(
            "The members of a group that shares are sessions of its own client.", field="group"
        )
    members = Session.objects.live().filter(group=found.pk).exclude(kind=Kind.GROUP)
    if member is not None:
        members = members.exclude(pk=member.pk)
    if members.count() >= limits.SESSION_GROUP_MEMBERS_MAX:
        raise LimitReached(limit=limits.SESSION_GROUP_MEMBERS_MAX)
    return found


def _owner_of(row: Session | SessionGroup) -> SessionOwner:
    return SessionOwner(row.pk) if isinstance(row, Session) else SessionOwner(None, row.pk)


def _kind_of(row: Session | SessionGroup) -> str:
    return "session" if isinstance(row, Session) else "session_group"


def _new_root(row: Session | SessionGroup) -> RegistrationGroup:
    """Insert the root group of a session or session group. No client's group has such a name."""
    owner = _owner_of(row)
    return RegistrationGroup.objects.create(
        zone_id=row.zone_id,
        client_id=row.client_id,
        name=f"{_kind_of(row)}/{row.name}",
        session_id=owner.session,
        session_group_id=owner.session_group,
        root=True,
    )


def _root_of(owner: SessionOwner) -> RegistrationGroup:
    """Return the root group of a session or session group, locked."""
    roots = RegistrationGroup.objects.live().filter(
        root=True, session_id=owner.session, session_group_id=owner.session_group
    )
    return roots.select_for_update().get()


def _listened(actor: Actor, owner: SessionOwner) -> tuple[RegistrationGroup, list[GroupStream]]:
    """Return the root of a session, locked, and the streams of its registrations. Raises Forbidden
    unless the actor may listen to each that has live ones.
    """
    root = _root_of(owner)
    streams = [*streams_ever(root.pk)]
    for each in streams:
        if each.registrations:
            actor.beside_session().require_listen(each.stream.name)
    return root, streams


def _announced(row: Session | SessionGroup) -> dict[str, Any]:
    """Return the settings of a session or session group for its announcement."""
    found = {name: getattr(row, name) for name in ("suspended", *DELIVERY)}
    if isinstance(row, SessionGroup):
        found |= {name: getattr(row, name) for name in _SHARED}
    if isinstance(row, Session):
        found |= {"kind": row.kind, "supplies": row.supplies, "session_group": row.group_id}
    return found
