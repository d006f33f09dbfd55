"""Creates, changes and ends registrations. Every request has one barrier: events above it were
appended after the change became visible, so a lagging matcher gives the same result as a prompt
one. Django module.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from django.db import transaction

from eventhub.access.principal import Actor
from eventhub.api.announcements import append_announced, prepare, raw_connection
from eventhub.api.if_match import require_unchanged
from eventhub.base.errors import EventHubError, NotFound
from eventhub.eventlog.resource_changes import Resource
from eventhub.eventlog.system import Announcement
from registrations import statements
from registrations.announcements import RegistrationChanged
from registrations.catalog import SessionOwner
from registrations.endpoints.services import NewEndpoint, add_endpoint, created_announcement
from registrations.endpoints.statements import end_subscriptions
from registrations.errors import KeyTaken, UnknownRegistration
from registrations.filter_budget import EvaluationBudget
from registrations.probable_mistakes import with_warnings
from registrations.quotas import require_room
from registrations.representation import represent
from registrations.requests import NewRegistration, RegistrationChange
from registrations.resolver import Resolver, is_same_definition
from registrations.scope import Owner, scope
from registrations.sessions import statements as session_statements
from registrations.statements import (
    OF_CLIENT,
    RegistrationDefinition,
    RegistrationQuery,
    RegistrationRow,
    Vector,
    VersionRow,
)


class PlannedRegistration(NamedTuple):
    """A registration to be created: the client's key for it, its definition, and its session."""

    key: str | None
    definition: RegistrationDefinition
    owner: SessionOwner = OF_CLIENT


class ChangePlan:
    """The changes of one transaction to a client's registrations, at one barrier: collected, then
    stored, and announced last.
    """

    def __init__(self, actor: Actor, owner: Owner, live: int) -> None:
        self.actor, self.owner = actor, owner
        self.live = live  # registrations that the client has
        self.creates: list[PlannedRegistration] = []
        self.changes: list[tuple[RegistrationRow, RegistrationDefinition]] = []
        self.ends: list[RegistrationRow] = []
        self.announcements: list[Announcement] = []
        self._barrier = 0
        self._streams: set[int] = set()
        self._starts_cursors = False  # a registration of a session begins

    def store(self, names: Mapping[int, str]) -> list[int]:
        """Write the collected changes and return the ids of the new registrations. `names` are
        those of the streams, by id.
        """
        connection = raw_connection()
        self._barrier = statements.new_barrier(connection)
        keys, owners = [one.key for one in self.creates], [one.owner for one in self.creates]
        ids = statements.insert(connection, self.actor.zone_id, self.owner.id, keys, owners)
        created = [VersionRow(id, 1, *new) for id, new in zip(ids, self.creates, strict=True)]
        changed = [
            VersionRow(old.id, old.number + 1, old.key, new, old.owner) for old, new in self.changes
        ]
        ended = [
            VersionRow(old.id, old.number, old.key, old.definition, old.owner) for old in self.ends
        ]
        self._starts_cursors = any(one.owner != OF_CLIENT for one in (*created, *changed))
        for version in created:
            self._add("registration.created", version, version.definition.streams, names)
        for version, (old, new) in zip(changed, self.changes, strict=True):
            streams = dict.fromkeys((*old.streams, *new.streams))
            self._add("registration.changed", version, streams, names)
        for version in ended:
            self._add("registration.deleted", version, version.definition.streams, names)
        over = {version.registration: version.key for version in (*changed, *ended)}
        statements.end_versions(connection, [*over], self._barrier)
        statements.add_versions(connection, [*created, *changed], self._barrier)
        statements.end(connection, [old.id for old in self.ends])
        self.announcements += end_subscriptions(connection, over, self._barrier)
        statements.count(connection, self.owner.id, len(created) - len(ended))
        return ids

    def announce(self) -> tuple[Vector, int]:
        """Fill the barrier and announce every change. Return the barrier's positions and the last
        sequence in `system`.
        """
        prepared = prepare(zone=self.actor.zone, announcements=self.announcements)
        vector = statements.fill_barrier(raw_connection(), self._barrier, self._streams)
        if self._starts_cursors:
            session_statements.start_cursors(raw_connection(), self._barrier)
        return vector, append_announced(prepared)[-1].sequence

    def _add(
        self, type: str, version: VersionRow, streams: Iterable[int], names: Mapping[int, str]
    ) -> None:
        change = RegistrationChanged(self.actor.zone_id, self.owner.name, version, self._barrier)
        self.announcements.append(change.announcement(type, [names[id] for id in streams]))
        self._streams.update(streams)


def create_registrations(
    *, actor: Actor, owner: Owner, items: Sequence[NewRegistration]
) -> list[SimpleNamespace]:
    """Create all of the registrations or none: an error's `index` is that of the refused one. A
    registration whose endpoint was created with it has that endpoint's `secret`.
    """
    connection = raw_connection()
    resolver = Resolver(actor, owner.id)
    resolver.look_up(name for item in items for name in item.streams)
    with transaction.atomic():
        plan = ChangePlan(actor, owner, lock_owner(owner.id))
        require_room("registrations", actor.zone_id, owner.id, used=plan.live, more=len(items))
        _refuse_taken(owner.id, items)
        resolver.lock(items)
        secrets = _new_endpoints(plan, resolver, items)
        budget = EvaluationBudget(connection, owner.id)
        for index, item in enumerate(items):
            try:
                definition = resolver.new_definition(item)
                budget.take(definition.streams, definition.expensive)
            except EventHubError as error:
                error.index = index
                raise
            plan.creates.append(PlannedRegistration(item.key, definition, resolver.owner(item)))
        names = resolver.stream_names()
        created = statements.search(connection, RegistrationQuery(ids=plan.store(names)))
        vector, _ = plan.announce()
    answers = [
        represent(row, names, vector, item.filter, secrets.get(row.endpoint_id or 0))
        for row, item in zip(created, items, strict=True)
    ]
    return with_warnings(actor.zone_id, answers)


def change_registration(
    *, actor: Actor, id: int, change: RegistrationChange, if_match: int | None = None
) -> SimpleNamespace:
    """Add a version of the registration, which replaces the current one at one position of every
    stream (OIF-05, RDY-05). An identical definition changes nothing.
    """
    connection = raw_connection()
    with transaction.atomic():
        plan, found, names = _locked(actor, id, if_match)
        resolver = Resolver(actor, plan.owner.id)
        streams = [names[id] for id in found.streams]
        resolver.look_up((*streams, *(change.streams or ())))
        resolver.lock([change], [found])  # also the endpoint and group that it keeps
        definition = resolver.changed_definition(found, streams, change)
        if is_same_definition(found, definition):
            vector = statements.vectors(connection, [found])[found.barrier]
            return with_warnings(actor.zone_id, [represent(found, names, vector)])[0]
        EvaluationBudget(connection, plan.owner.id, [id]).take(
            definition.streams, definition.expensive, id
        )
        plan.changes.append((found, definition))
        names |= resolver.stream_names()
        plan.store(names)
        [changed] = statements.search(connection, RegistrationQuery(ids=[id]))
        vector, _ = plan.announce()
    return with_warnings(actor.zone_id, [represent(changed, names, vector)])[0]


def delete_registration(*, actor: Actor, id: int, if_match: int | None = None) -> None:
    """End the registration: events above the barrier are no longer matched."""
    with transaction.atomic():
        plan, found, names = _locked(actor, id, if_match)
        plan.ends.append(found)
        plan.store(names)
        plan.announce()


def lock_owner(client_id: int) -> int:
    """Lock the client; return how many registrations it has. Raises NotFound."""
    live = statements.lock_owner(raw_connection(), client_id)
    if live is None:
        raise NotFound("This zone has no such client.", field="client")
    return live


def require_listen_to_all(actor: Actor, found: RegistrationRow, names: dict[int, str]) -> None:
    """Raise Forbidden unless the actor may listen to every stream of the registration."""
    for id in found.streams:
        actor.require_listen(names[id], field="streams")


def _resource(actor: Actor, id: int) -> Resource:
    return Resource("registration", actor.zone_id, str(id))


def _locked(
    actor: Actor, id: int, if_match: int | None
) -> tuple[ChangePlan, RegistrationRow, dict[int, str]]:
    """Lock a live registration that the actor may change, and its client; return it with the names
    of its streams. Raises UnknownRegistration, Forbidden, Changed.
    """
    connection = raw_connection()
    owner_id = statements.owner_of(connection, actor.zone_id, scope(actor=actor), id)
    live = statements.lock_owner(connection, owner_id) if owner_id else None
    found = [] if live is None else statements.lock_registrations(connection, [id])
    if owner_id is None or live is None or not found:
        raise UnknownRegistration(field="registration")
    names = statements.stream_names(connection, found[0].streams)
    require_listen_to_all(actor, found[0], names)
    require_unchanged(_resource(actor, id), if_match, version=found[0].number)
    return ChangePlan(actor, Owner(owner_id, found[0].client), live), found[0], names


def _refuse_taken(client_id: int, items: Sequence[NewRegistration]) -> None:
    """Raise KeyTaken for the first item whose key names another live registration."""
    keys = [item.key for item in items if item.key is not None]
    if not keys:
        return
    known = statements.by_key(raw_connection(), client_id, keys)
    taken = {key for key, named in known.items() if named.live}
    for index, item in enumerate(items):
        if item.key in taken:
            raise KeyTaken(index=index, field="key")
        if item.key is not None:
            taken.add(item.key)


def _new_endpoints(
    plan: ChangePlan, resolver: Resolver, items: Sequence[NewRegistration]
) -> dict[int, str]:
    """Add endpoints for the callback URLs that have none; return their secrets by endpoint id."""
    secrets: dict[int, str] = {}
    for url in resolver.missing_urls(item.callback for item in items):
        created = add_endpoint(actor=plan.actor, owner=plan.owner, fields=NewEndpoint(url))
        resolver.add_endpoint(url, created.pk)
        secrets[created.pk] = created.secret_text
        plan.announcements.append(
            created_announcement(plan.actor.zone_id, plan.owner.name, created.pk)
        )
    return secrets
