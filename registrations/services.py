"""Makes, changes and ends registrations. Every request has one barrier: events above it were
appended after the change could be seen, so a matcher that is behind gives the same as a prompt one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from django.db import transaction

from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.conditions import require_unchanged
from eventhub.access.system import append_announced, prepare, raw_connection
from eventhub.errors import EventHubError, LimitReached, NotFound, UnknownStream
from eventhub.eventlog.changes import Resource
from eventhub.eventlog.system import Announcement
from registrations import rows
from registrations.endpoints import rows as endpoint_rows
from registrations.endpoints.services import EndpointTerms, add_endpoint, created
from registrations.errors import TransientStream, UnknownEndpoint
from registrations.filters import changed_filter, same_filter, stored_filter
from registrations.owners import Owner
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Registration, Vector, Wanted

T = TypeVar("T")


class Shown(NamedTuple):
    """A registration with the names of its streams and the places from which it holds on them."""

    row: Registration
    names: dict[int, str]
    since: Vector
    secret: str | None = None  # of the endpoint that was made for it


class _Callbacks(NamedTuple):
    """The endpoint of each new registration, and those that were made for them."""

    ids: list[int | None]
    secrets: dict[int, str]  # of the new ones, by id


def create_registrations(
    *, actor: Actor, owner: Owner, items: Sequence[NewRegistration]
) -> list[Shown]:
    """All of the registrations, or none: an error's `index` says which was refused."""
    connection = raw_connection()
    ids = _stream_ids(actor, [item.streams for item in items])
    names = {id: name for name, id in ids.items()}
    _refuse_transient([item.streams if item.calls_back else () for item in items], ids)
    with transaction.atomic():
        session = rows.lock_session(connection, owner.id)
        if session is None:
            raise NotFound("This zone has no such client.", field="client")
        if session.registrations + len(items) > limits.REGISTRATIONS_PER_CLIENT_MAX:
            raise LimitReached(limit=limits.REGISTRATIONS_PER_CLIENT_MAX)
        callbacks = _callbacks(actor, owner, items)
        barrier = rows.new_barrier(connection)
        wanted = [
            Wanted(tuple(ids[name] for name in item.streams), *item.filter.stored(), endpoint)
            for item, endpoint in zip(items, callbacks.ids, strict=True)
        ]
        whose = rows.Belonging(actor.zone_id, owner.id, session.id)
        made = rows.show(connection, rows.insert(connection, whose, barrier, wanted))
        rows.count_session(connection, session.id, len(made))
        told = [created(actor.zone_id, owner.name, id) for id in callbacks.secrets]
        told += [
            _announcement(actor, "registration.created", one, _named(one.streams, names))
            for one in made
        ]
        prepared = prepare(zone=actor.zone, announcements=told)
        vector = rows.raise_barrier(connection, barrier, names)
        append_announced(prepared)
    return [Shown(one, names, vector, _secret(callbacks, one)) for one in made]


def change_registration(
    *,
    actor: Actor,
    client_id: int | None,
    id: int,
    change: RegistrationChange,
    if_match: int | None = None,
) -> Shown:
    """A new version of the registration, which takes over from the old one at one place of every
    stream (OIF-05). The same again changes nothing.
    """
    connection = raw_connection()
    with transaction.atomic():
        owner_id = rows.owner_of(connection, actor.zone_id, client_id, id)
        found = rows.lock_registration(connection, id)
        names = rows.stream_names(connection, found.streams)
        _require_all(actor, found, names)
        require_unchanged(registration_resource(actor, id), if_match)
        wanted = _changed(actor, found, names, change)
        if _same(found, wanted):
            vector = rows.vectors(connection, [found])[found.barrier]
            return Shown(found, names, vector)
        if wanted.endpoint_id is not None:  # held too if it stays: its URL is not changed meanwhile
            _held_endpoint(owner_id, wanted.endpoint_id)
        barrier = rows.new_barrier(connection)
        rows.end_version(connection, id, barrier)
        rows.add_version(connection, id, rows.NewVersion(found.number + 1, wanted, barrier))
        [changed] = rows.show(connection, [id])
        streams = list(dict.fromkeys((*found.streams, *wanted.streams)))
        names = rows.stream_names(connection, streams)
        told = [_announcement(actor, "registration.changed", changed, _named(streams, names))]
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
        _require_all(actor, found, names)
        require_unchanged(registration_resource(actor, id), if_match)
        barrier = rows.new_barrier(connection)
        rows.end_version(connection, id, barrier)
        rows.end(connection, id)
        rows.count_session(connection, session.id, -1)
        ended = found._replace(barrier=barrier)
        told = [_announcement(actor, "registration.deleted", ended, _named(found.streams, names))]
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
    endpoints = endpoint_rows.delete_of_client(connection, client_id)
    if endpoints:
        attributes = {"client": client, "endpoint": None, "endpoints": endpoints}
        told.append(Announcement("endpoint.deleted", attributes))
    rows.raise_barrier(connection, barrier, streams)
    return told


def _stream_ids(actor: Actor, asked: Sequence[Sequence[str]]) -> dict[str, int]:
    """The ids of streams by name; Forbidden before UnknownStream, so that names do not leak."""
    names = dict.fromkeys(name for names in asked for name in names)
    refused = _refusals(names, lambda name: actor.require_listen(name, field="streams"))
    found = rows.streams_by_name(raw_connection(), actor.zone_id, names)
    refused |= {name: UnknownStream(stream=name) for name in names if name not in found | refused}
    for index, streams in enumerate(asked):
        for at, name in enumerate(streams):
            if name in refused:
                error = refused[name]
                error.index = index
                error.field = f"streams.{at}"
                raise error
    return found


def _refuse_transient(asked: Sequence[Sequence[str]], ids: dict[str, int]) -> None:
    """TransientStream for the first of these streams, by item, that cannot be called back from."""
    names = {name for names in asked for name in names}
    if not names:
        return
    transient = rows.transient_streams(raw_connection(), [ids[name] for name in names])
    for index, streams in enumerate(asked):
        for at, name in enumerate(streams):
            if ids[name] in transient:
                raise TransientStream(index=index, field=f"streams.{at}", stream=name)


def _refusals(items: Iterable[T], check: Callable[[T], None]) -> dict[T, EventHubError]:
    refused: dict[T, EventHubError] = {}
    for item in items:
        try:
            check(item)
        except EventHubError as error:
            refused[item] = error
    return refused


def _callbacks(actor: Actor, owner: Owner, items: Sequence[NewRegistration]) -> _Callbacks:
    """Hold the endpoints that are named, and make those for new URLs."""
    asked = {item.endpoint for item in items if item.endpoint is not None}
    urls = dict.fromkeys(item.callback for item in items if item.callback is not None)
    if not asked and not urls:
        return _Callbacks([None] * len(items), {})
    held = endpoint_rows.hold(raw_connection(), owner.id, asked, urls)
    for index, item in enumerate(items):
        if item.endpoint is not None and item.endpoint not in held:
            raise UnknownEndpoint(index=index, field="endpoint")
    by_url = {url: id for id, url in reversed(held.items())}  # the oldest of several
    secrets: dict[int, str] = {}
    for url in urls:
        if url not in by_url:
            made = add_endpoint(actor=actor, owner=owner, terms=EndpointTerms(url))
            by_url[url] = made.id
            secrets[made.id] = made.secret
    ids = [by_url[item.callback] if item.callback else item.endpoint for item in items]
    return _Callbacks(ids, secrets)


def _require_all(actor: Actor, found: Registration, names: dict[int, str]) -> None:
    """Forbidden unless the actor may listen to all streams of the registration."""
    for id in found.streams:
        actor.require_listen(names[id], field="streams")


def _held_endpoint(client_id: int, endpoint_id: int) -> None:
    if not endpoint_rows.hold(raw_connection(), client_id, [endpoint_id], []):
        raise UnknownEndpoint(field="endpoint")


def _changed(
    actor: Actor, found: Registration, names: dict[int, str], change: RegistrationChange
) -> Wanted:
    """What the registration asks for after the change, which the actor must be allowed to ask."""
    streams = change.streams or tuple(names[id] for id in found.streams)
    ids = _stream_ids(actor, [streams])
    endpoint_id = change.endpoint if change.changes_endpoint else found.endpoint_id
    if endpoint_id is not None:
        _refuse_transient([streams], ids)
    filter = changed_filter(stored_filter(found.language, found.filter_json), change.filter)
    return Wanted(tuple(ids[name] for name in streams), *filter.stored(), endpoint_id)


def _same(found: Registration, wanted: Wanted) -> bool:
    return (
        set(found.streams) == set(wanted.streams)
        and found.endpoint_id == wanted.endpoint_id
        and same_filter(
            stored_filter(found.language, found.filter_json),
            stored_filter(wanted.language, wanted.filter_json),
        )
    )


def _secret(callbacks: _Callbacks, registration: Registration) -> str | None:
    endpoint = registration.endpoint_id
    return None if endpoint is None else callbacks.secrets.get(endpoint)


def registration_resource(actor: Actor, id: int) -> Resource:
    return Resource("registration", actor.zone_id, str(id))


def _announcement(
    actor: Actor, type: str, registration: Registration, streams: list[str]
) -> Announcement:
    attributes = {
        "client": registration.client,
        "registration": registration.id,
        "version": registration.number,
        "barrier": registration.barrier,
        "streams": streams,
    }
    return Announcement(type, attributes, registration_resource(actor, registration.id))


def _named(streams: Iterable[int], names: dict[int, str]) -> list[str]:
    return [names[id] for id in streams]
