"""Makes, changes and ends registrations. Every request has one barrier: events above it were
appended after the change could be seen, so a matcher that is behind gives the same as a prompt one.
Django module.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

from django.db import transaction

from eventhub.access.actor import Actor
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.api.conditions import require_unchanged
from eventhub.base import limits
from eventhub.base.errors import EventHubError, LimitReached, NotFound
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from registrations import models, rows
from registrations.endpoints import rows as endpoint_rows
from registrations.endpoints.services import EndpointTerms, add_endpoint, created
from registrations.errors import KeyTaken, UnknownRegistration
from registrations.expensive import EvaluationBudget
from registrations.groups import rows as group_rows
from registrations.owners import Owner, scope
from registrations.representation import shown
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Registration, Search, Session, Vector, Version, Wanted
from registrations.terms import Names, same


class Plan:
    """What one transaction makes, changes and ends of a client's registrations, at one barrier:
    gathered, then stored, then announced, which comes last.
    """

    def __init__(self, actor: Actor, owner: Owner, session: Session) -> None:
        self.actor, self.owner, self.session = actor, owner, session
        self.creates: list[tuple[str | None, Wanted]] = []  # with the clients' keys
        self.changes: list[tuple[Registration, Wanted]] = []
        self.ends: list[Registration] = []
        self.announcements: list[Announcement] = []
        self._barrier = 0
        self._streams: set[int] = set()

    def store(self, names: Mapping[int, str]) -> list[int]:
        """Write all that was gathered; the ids of the new ones. `names`: of its streams."""
        connection = raw_connection()
        self._barrier = rows.new_barrier(connection)
        keys = [key for key, _ in self.creates]
        ids = rows.insert(connection, self.actor.zone_id, self.session, keys)
        made = [Version(id, 1, *new) for id, new in zip(ids, self.creates, strict=True)]
        changed = [Version(old.id, old.number + 1, old.key, new) for old, new in self.changes]
        ended = [Version(old.id, old.number, old.key, old.wanted) for old in self.ends]
        for version in made:
            self._add("registration.created", version, version.wanted.streams, names)
        for version, (old, new) in zip(changed, self.changes, strict=True):
            streams = dict.fromkeys((*old.streams, *new.streams))
            self._add("registration.changed", version, streams, names)
        for version in ended:
            self._add("registration.deleted", version, version.wanted.streams, names)
        over = [version.registration for version in (*changed, *ended)]
        rows.end_versions(connection, over, self._barrier)
        rows.add_versions(connection, [*made, *changed], self._barrier)
        rows.end(connection, [old.id for old in self.ends])
        rows.count_session(connection, self.session, len(made) - len(ended))
        return ids

    def announce(self) -> tuple[Vector, int]:
        """Raise the barrier and announce all: its places, and the last sequence in `system`."""
        prepared = prepare(zone=self.actor.zone, announcements=self.announcements)
        vector = rows.raise_barrier(raw_connection(), self._barrier, self._streams)
        return vector, append_announced(prepared)[-1].sequence

    def _add(
        self, type: str, version: Version, streams: Iterable[int], names: Mapping[int, str]
    ) -> None:
        attributes = {
            "client": self.owner.name,
            "registration": version.registration,
            "version": version.number,
            "barrier": self._barrier,
            "streams": [names[id] for id in streams],
            "suspended": version.wanted.suspended,
            "group": version.wanted.group,
            "key": version.key,
        }
        resource = _resource(self.actor, version.registration)
        self.announcements.append(Announcement(type, attributes, resource))
        self._streams.update(streams)


def create_registrations(
    *, actor: Actor, owner: Owner, items: Sequence[NewRegistration]
) -> list[SimpleNamespace]:
    """All of the registrations, or none: an error's `index` says which was refused. One whose
    endpoint was made for it has the `secret` of that.
    """
    connection = raw_connection()
    terms = Names(actor, owner.id)
    terms.look_up(name for item in items for name in item.streams)
    with transaction.atomic():
        plan = Plan(actor, owner, session_with_room(owner.id, len(items)))
        _refuse_taken(owner.id, items)
        terms.hold(items)
        secrets = _new_endpoints(plan, terms, items)
        budget = EvaluationBudget(connection, owner.id)
        for index, item in enumerate(items):
            try:
                wanted = terms.first(item)
                budget.take(wanted.streams, wanted.expensive)
            except EventHubError as error:
                error.index = index
                raise
            plan.creates.append((item.key, wanted))
        names = terms.by_id()
        made = rows.search(connection, Search(ids=plan.store(names)))
        vector, _ = plan.announce()
    return [
        shown(row, names, vector, item.filter, secrets.get(row.endpoint_id or 0))
        for row, item in zip(made, items, strict=True)
    ]


def change_registration(
    *, actor: Actor, id: int, change: RegistrationChange, if_match: int | None = None
) -> SimpleNamespace:
    """A new version of the registration, which takes over from the old one at one place of every
    stream (OIF-05, RDY-05). The same again changes nothing.
    """
    connection = raw_connection()
    with transaction.atomic():
        plan, found, names = _locked(actor, id, if_match)
        terms = Names(actor, plan.owner.id)
        streams = [names[id] for id in found.streams]
        terms.look_up((*streams, *(change.streams or ())))
        terms.hold([change], [found])  # its endpoint and group too if they stay
        wanted = terms.next(found, streams, change)
        if same(found, wanted):
            vector = rows.vectors(connection, [found])[found.barrier]
            return shown(found, names, vector)
        EvaluationBudget(connection, plan.owner.id, [id]).take(wanted.streams, wanted.expensive, id)
        plan.changes.append((found, wanted))
        names |= terms.by_id()
        plan.store(names)
        [changed] = rows.search(connection, Search(ids=[id]))
        vector, _ = plan.announce()
    return shown(changed, names, vector)


def delete_registration(*, actor: Actor, id: int, if_match: int | None = None) -> None:
    """End the registration: events above the barrier are no longer matched."""
    with transaction.atomic():
        plan, found, names = _locked(actor, id, if_match)
        plan.ends.append(found)
        plan.store(names)
        plan.announce()


def end_client(*, client_id: int, client: str) -> list[Announcement]:
    """End everything of a client whose row is locked, at one barrier, which stays locked: only the
    announcements come after it.
    """
    connection = raw_connection()
    session = rows.lock_session(connection, client_id)
    if session is None:
        return []
    announcements: list[Announcement] = []
    barrier = rows.new_barrier(connection)
    live = models.Registration.objects.live().filter(client_id=client_id)
    ids = [*live.values_list("pk", flat=True)]
    streams = rows.end_versions(connection, ids, barrier)
    if ids:
        rows.end(connection, ids)
        rows.count_session(connection, session, -len(ids))
        several = {"registration": None, "registrations": len(ids), "barrier": barrier}
        announcements.append(Announcement("registration.deleted", {"client": client, **several}))
    group_rows.delete_of_client(connection, client_id)
    endpoints = endpoint_rows.delete_of_client(connection, client_id)
    if endpoints:
        attributes = {"client": client, "endpoint": None, "endpoints": endpoints}
        announcements.append(Announcement("endpoint.deleted", attributes))
    rows.raise_barrier(connection, barrier, streams)
    return announcements


def session_with_room(client_id: int, count: int) -> rows.Session:
    """The client's session, locked, with room for so many more. Raises NotFound, LimitReached."""
    session = rows.lock_session(raw_connection(), client_id)
    if session is None:
        raise NotFound("This zone has no such client.", field="client")
    if session.registrations + count > limits.REGISTRATIONS_PER_CLIENT_MAX:
        raise LimitReached(limit=limits.REGISTRATIONS_PER_CLIENT_MAX)
    return session


def require_all(actor: Actor, found: Registration, names: dict[int, str]) -> None:
    """Forbidden unless the actor may listen to all streams of the registration."""
    for id in found.streams:
        actor.require_listen(names[id], field="streams")


def _resource(actor: Actor, id: int) -> Resource:
    return Resource("registration", actor.zone_id, str(id))


def _locked(
    actor: Actor, id: int, if_match: int | None
) -> tuple[Plan, Registration, dict[int, str]]:
    """A live registration that the actor may change, with the names of its streams; it and its
    client's session are locked. Raises UnknownRegistration, Forbidden, Changed.
    """
    connection = raw_connection()
    owner_id = rows.owner_of(connection, actor.zone_id, scope(actor=actor), id)
    session = rows.lock_session(connection, owner_id) if owner_id else None
    found = rows.lock_registrations(connection, [id] if session else [])
    if session is None or not found:
        raise UnknownRegistration(field="registration")
    names = rows.stream_names(connection, found[0].streams)
    require_all(actor, found[0], names)
    require_unchanged(_resource(actor, id), if_match, version=found[0].number)
    return Plan(actor, Owner(session.client_id, found[0].client), session), found[0], names


def _refuse_taken(client_id: int, items: Sequence[NewRegistration]) -> None:
    """KeyTaken for the first of the items whose key names another registration."""
    keys = [item.key for item in items if item.key is not None]
    if not keys:
        return
    known = rows.by_key(raw_connection(), client_id, keys)
    taken = {key for key, named in known.items() if named.live}
    for index, item in enumerate(items):
        if item.key in taken:
            raise KeyTaken(index=index, field="key")
        if item.key is not None:
            taken.add(item.key)


def _new_endpoints(plan: Plan, terms: Names, items: Sequence[NewRegistration]) -> dict[int, str]:
    """Endpoints for the URLs that have none yet: their secrets, by id."""
    secrets: dict[int, str] = {}
    for url in terms.missing(item.callback for item in items):
        made = add_endpoint(actor=plan.actor, owner=plan.owner, terms=EndpointTerms(url))
        terms.add(url, made.pk)
        secrets[made.pk] = made.secret_text
        plan.announcements.append(created(plan.actor.zone_id, plan.owner.name, made.pk))
    return secrets
