"""Makes, changes and ends registrations. Every request has one barrier: events above it were
appended after the change could be seen, so a matcher that is behind gives the same as a prompt one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.system import append_announced, prepare, raw_connection
from eventhub.errors import EventHubError, LimitReached, NotFound
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.system import Announcement
from registrations import rows
from registrations.endpoints import rows as endpoint_rows
from registrations.endpoints.services import EndpointTerms, add_endpoint, created
from registrations.errors import KeyTaken
from registrations.expensive import Budget
from registrations.groups import rows as group_rows
from registrations.owners import Owner
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Registration, Wanted
from registrations.shown import Shown
from registrations.terms import Names, same


class Made(NamedTuple):
    """A registration that was just made, as far as it is told."""

    id: int
    client: str
    streams: tuple[int, ...]
    barrier: int
    key: str | None
    suspended: bool
    group: str | None
    number: int = 1


def create_registrations(
    *, actor: Actor, owner: Owner, items: Sequence[NewRegistration]
) -> list[Shown]:
    """All of the registrations, or none: an error's `index` says which was refused."""
    connection = raw_connection()
    terms = Names(actor, owner.id)
    terms.look_up(name for item in items for name in item.streams)
    with transaction.atomic():
        session = session_with_room(owner.id, len(items))
        _refuse_taken(owner.id, items)
        terms.hold(items)
        secrets = _new_endpoints(actor, owner, terms, items)
        budget = Budget(connection, owner.id)
        wanted = _first_versions(terms, items, budget)
        names = terms.by_id()
        barrier = rows.new_barrier(connection)
        whose = rows.Belonging(actor.zone_id, owner.id, session.id)
        ids = rows.insert(connection, whose, barrier, wanted, [item.key for item in items])
        made = rows.show(connection, ids)
        rows.count_session(connection, session.id, len(made))
        told = [created(actor.zone_id, owner.name, id) for id in secrets]
        told += [announcement(actor, "registration.created", one, names) for one in made]
        prepared = prepare(zone=actor.zone, announcements=told)
        vector = rows.raise_barrier(connection, barrier, names)
        append_announced(prepared)
    read = {id: item.filter for id, item in zip(ids, items, strict=True)}
    return [
        Shown(one, names, vector, secrets.get(one.endpoint_id or 0), read[one.id]) for one in made
    ]


def change_registration(
    *,
    actor: Actor,
    client_id: int | None,
    id: int,
    change: RegistrationChange,
    if_match: int | None = None,
) -> Shown:
    """A new version of the registration, which takes over from the old one at one place of every
    stream (OIF-05, RDY-05). The same again changes nothing.
    """
    connection = raw_connection()
    with transaction.atomic():
        owner_id = rows.owner_of(connection, actor.zone_id, client_id, id)
        rows.lock_session(connection, owner_id)  # of the budget
        found = rows.lock_registration(connection, id)
        names = rows.stream_names(connection, found.streams)
        require_all(actor, found, names)
        require_unchanged(registration_resource(actor, id), if_match, version=found.number)
        wanted = _next_version(Names(actor, owner_id), found, names, change)
        if same(found, wanted):
            vector = rows.vectors(connection, [found])[found.barrier]
            return Shown(found, names, vector)
        Budget(connection, owner_id, [id]).take(wanted.streams, wanted.expensive, id)
        barrier = rows.new_barrier(connection)
        rows.end_versions(connection, [id], barrier)
        version = rows.NewVersion(id, found.number + 1, wanted)
        rows.add_versions(connection, [version], barrier)
        [changed] = rows.show(connection, [id])
        streams = list(dict.fromkeys((*found.streams, *wanted.streams)))
        names = rows.stream_names(connection, streams)
        told = [announcement(actor, "registration.changed", changed, names, streams)]
        prepared = prepare(zone=actor.zone, announcements=told)
        vector = rows.raise_barrier(connection, barrier, streams)
        append_announced(prepared)
    return Shown(changed, names, vector)


def delete_registration(
    *, actor: Actor, client_id: int | None, id: int, if_match: int | None = None
) -> None:
    """End the registration: events above the barrier are no longer matched."""
    connection = raw_connection()
    with transaction.atomic():
        owner_id = rows.owner_of(connection, actor.zone_id, client_id, id)
        session = rows.lock_session(connection, owner_id)
        found = rows.lock_registration(connection, id)
        if session is None:
            raise NotFound("The client has ended.", field="registration")
        names = rows.stream_names(connection, found.streams)
        require_all(actor, found, names)
        require_unchanged(registration_resource(actor, id), if_match, version=found.number)
        barrier = rows.new_barrier(connection)
        rows.end_versions(connection, [id], barrier)
        rows.end(connection, [id])
        rows.count_session(connection, session.id, -1)
        ended = found._replace(barrier=barrier)
        told = [announcement(actor, "registration.deleted", ended, names)]
        prepared = prepare(zone=actor.zone, announcements=told)
        rows.raise_barrier(connection, barrier, found.streams)
        append_announced(prepared)


def end_client(*, client_id: int, client: str) -> list[Announcement]:
    """End everything of a client whose row is locked, at one barrier, which stays locked: only the
    announcements come after it.
    """
    connection = raw_connection()
    session = rows.lock_session(connection, client_id)
    if session is None:
        return []
    told: list[Announcement] = []
    barrier = rows.new_barrier(connection)
    ended, streams = rows.end_of_client(connection, client_id, barrier)
    if ended:
        rows.count_session(connection, session.id, -session.registrations)
        several = {"registration": None, "registrations": ended, "barrier": barrier}
        told.append(Announcement("registration.deleted", {"client": client, **several}))
    group_rows.delete_of_client(connection, client_id)
    endpoints = endpoint_rows.delete_of_client(connection, client_id)
    if endpoints:
        attributes = {"client": client, "endpoint": None, "endpoints": endpoints}
        told.append(Announcement("endpoint.deleted", attributes))
    rows.raise_barrier(connection, barrier, streams)
    return told


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


def registration_resource(actor: Actor, id: int) -> Resource:
    return Resource("registration", actor.zone_id, str(id))


def announcement(
    actor: Actor,
    type: str,
    registration: Registration | Made,
    names: dict[int, str],
    streams: Sequence[int] = (),
) -> Announcement:
    """What is told of a change; of the streams of before too, if they are others."""
    attributes = {
        "client": registration.client,
        "registration": registration.id,
        "version": registration.number,
        "barrier": registration.barrier,
        "streams": [names[id] for id in streams or registration.streams],
        "suspended": registration.suspended,
        "group": registration.group,
        "key": registration.key,
    }
    return Announcement(type, attributes, registration_resource(actor, registration.id))


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


def _new_endpoints(
    actor: Actor, owner: Owner, terms: Names, items: Sequence[NewRegistration]
) -> dict[int, str]:
    """Endpoints for the URLs that have none yet: their secrets, by id."""
    secrets: dict[int, str] = {}
    for url in terms.missing(item.callback for item in items):
        made = add_endpoint(actor=actor, owner=owner, terms=EndpointTerms(url))
        terms.add(url, made.pk)
        secrets[made.pk] = made.secret_text
    return secrets


def _first_versions(terms: Names, items: Sequence[NewRegistration], budget: Budget) -> list[Wanted]:
    found: list[Wanted] = []
    for index, item in enumerate(items):
        try:
            found.append(terms.first(item))
            budget.take(found[-1].streams, found[-1].expensive)
        except EventHubError as error:
            error.index = index
            raise
    return found


def _next_version(
    terms: Names, found: Registration, names: dict[int, str], change: RegistrationChange
) -> Wanted:
    """What the registration asks for after the change, which the actor must be allowed to ask. Its
    endpoint and group are held too if they stay: they are not changed meanwhile.
    """
    streams = [names[id] for id in found.streams]
    terms.look_up((*streams, *(change.streams or ())))
    terms.hold([change], [found])
    return terms.next(found, streams, change)
