"""Resolves the names in registrations to ids: streams that the actor may listen to, endpoints,
groups and sessions of the client. Django module.

Errors name the field; a caller that resolves several registrations adds the index.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from eventhub.access.grants import EXAMPLES
from eventhub.access.principal import Actor
from eventhub.access.sessions import UnknownSession
from eventhub.api.announcements import raw_connection
from eventhub.base.errors import EventHubError, InvalidField, UnknownStream
from eventhub.eventlog.errors import StreamDeleting
from registrations import statements
from registrations.catalog import SessionOwner
from registrations.errors import (
    OtherOwner,
    TransientStream,
    UnknownEndpoint,
    UnknownGroup,
    UnknownSessionGroup,
)
from registrations.filter_source import FilterSource, changed_filter, same_filter, stored_filter
from registrations.requests import NewRegistration, RegistrationChange
from registrations.sessions.statements import (
    NamedSession,
    lock_session_groups,
    require_consumer,
    sessions_by_name,
)
from registrations.statements import (
    OF_CLIENT,
    LockedGroup,
    RegistrationDefinition,
    RegistrationRow,
    RegistrationStream,
)


class Resolver:
    """The ids of names, for one actor and the registrations of one client. `look_up` and `lock`
    query the database for many names at once; `new_definition` and `changed_definition` query
    nothing.
    """

    def __init__(self, actor: Actor, client_id: int) -> None:
        self._actor = actor
        self._client_id = client_id
        self._streams: dict[str, RegistrationStream] = {}
        self._refused: dict[str, EventHubError] = {}
        self._endpoints: dict[int, str] = {}
        self._urls: dict[str, int] = {}
        self._groups: dict[str, LockedGroup] = {}
        self._sessions: dict[str, NamedSession] = {}
        self._session_groups: dict[str, NamedSession] = {}

    def look_up(self, streams: Iterable[str]) -> None:
        """Look up streams by name. Forbidden comes before UnknownStream, so that no name leaks.
        Raises WrongSessionKind for a request through a session that may not listen.
        """
        if self._actor.session is not None:
            self._actor.session.require("listen")
        allowed = []
        for name in dict.fromkeys(streams):
            try:
                self._actor.require_listen(name, field="streams")
                allowed.append(name)
            except EventHubError as error:
                self._refused[name] = error
        found = statements.streams_by_name(raw_connection(), self._actor.zone_id, allowed)
        self._streams |= {stream.name: stream for stream in found}
        unknown = [name for name in allowed if name not in self._streams]
        self._refused |= {name: UnknownStream(stream=name) for name in unknown}

    def lock(
        self,
        items: Iterable[NewRegistration | RegistrationChange],
        found: Iterable[RegistrationRow] = (),
    ) -> None:
        """Look up the sessions that the items belong to, and lock the groups and endpoints that the
        items and the found registrations name, FOR SHARE, to the end of the transaction.
        """
        items, found = list(items), list(found)
        roots = self._look_up_sessions(items)
        groups = {one.group for one in (*items, *found) if one.group is not None}
        ids = {item.endpoint for item in items if item.endpoint is not None}
        ids |= {one.endpoint_id for one in found if one.endpoint_id is not None}
        urls = {url for item in items if (url := _callback_of(item)) is not None}
        connection = raw_connection()
        roots |= {one.root_id for one in found if one.root_id is not None}
        self._groups |= statements.lock_groups(connection, self._client_id, groups, roots)
        endpoints = statements.lock_endpoints(connection, self._client_id, ids, urls)
        self._endpoints |= endpoints
        self._urls |= {url: id for id, url in reversed(endpoints.items())}  # the oldest of several

    def _look_up_sessions(self, items: Iterable[NewRegistration | RegistrationChange]) -> set[int]:
        """Look up the sessions of new registrations; return their root groups."""
        new = [item for item in items if isinstance(item, NewRegistration)]
        sessions = {name for item in new if (name := item.session) is not None}
        if self._actor.session is not None:
            sessions.add(self._actor.session.name)
        session_groups = {name for item in new if (name := item.session_group) is not None}
        connection, client_id = raw_connection(), self._client_id
        if sessions:
            self._sessions |= sessions_by_name(connection, client_id, sessions)
        if session_groups:
            locked = lock_session_groups(connection, client_id, session_groups)
            self._session_groups |= locked
        found = (*self._sessions.values(), *self._session_groups.values())
        return {one.root_id for one in found if one.root_id is not None}

    def owner(self, item: NewRegistration) -> SessionOwner:
        """Return the session or session group that a new registration belongs to: the one that it
        names, else the session that the request acts through. Raises UnknownSession,
        UnknownSessionGroup, InvalidField for a session that is no consumer.
        """
        found = self._owner_of(item)
        if found is None:
            return OF_CLIENT
        if item.session_group is not None:
            return SessionOwner(None, found.id)
        return SessionOwner(found.id)

    def _owner_of(self, item: NewRegistration) -> NamedSession | None:
        if item.session_group is not None:
            if item.session_group not in self._session_groups:
                raise UnknownSessionGroup(field="session_group", session_group=item.session_group)
            return self._session_groups[item.session_group]
        acting = self._actor.session
        name = item.session if item.session is not None or acting is None else acting.name
        if name is None:
            return None
        if name not in self._sessions:
            raise UnknownSession(field="session", session=name)
        return require_consumer(self._sessions[name])

    def missing_urls(self, urls: Iterable[str | None]) -> list[str]:
        """Return the URLs that no endpoint has, each once."""
        return [url for url in dict.fromkeys(urls) if url is not None and url not in self._urls]

    def add_endpoint(self, url: str, endpoint_id: int) -> None:
        """Add a new endpoint of the client."""
        self._urls[url] = endpoint_id
        self._endpoints[endpoint_id] = url

    def stream_names(self) -> dict[int, str]:
        """Return the names of all streams that were looked up and found, by id."""
        return {stream.id: name for name, stream in self._streams.items()}

    def stream_ids(self, names: Sequence[str]) -> list[int]:
        """Return the ids of streams. Raises Forbidden and UnknownStream at the name's position."""
        self.look_up(names)
        return [stream.id for stream in self._named(names, None, known=names)]

    def new_definition(self, item: NewRegistration) -> RegistrationDefinition:
        """Return the definition of a new registration."""
        item.filter.require_signature(item.signature)
        endpoint = item.endpoint if item.callback is None else self._by_url(item.callback)
        owner = self._owner_of(item)
        streams = self._named(item.streams, endpoint, stored=owner is not None)
        ids = tuple(stream.id for stream in streams)
        root_id = None if owner is None else owner.root_id
        return RegistrationDefinition(
            ids,
            *item.filter.stored(),
            endpoint_id=endpoint,
            suspended=item.suspended,
            group_id=self._group(item.group, self.owner(item), root_id),
            group=item.group,
            report_json=_json(item.report),
            variable=item.filter.variable(),
            digest=item.filter.digest(self._client_id, ids),
            expensive=() if item.suspended else _expensive(item.filter, streams),
        )

    def changed_definition(
        self, found: RegistrationRow, streams: Sequence[str], change: RegistrationChange
    ) -> RegistrationDefinition:
        """Return the definition of a registration on `streams` after a change."""
        given = change.given
        endpoint = change.endpoint if "endpoint" in given else found.endpoint_id
        stored = found.owner != OF_CLIENT
        named = self._named(change.streams or streams, endpoint, known=streams, stored=stored)
        ids = tuple(stream.id for stream in named)
        filter = changed_filter(stored_filter(found.language, found.filter_json), change.filter)
        filter.require_signature(change.signature)
        suspended = found.suspended if change.suspended is None else change.suspended
        group = change.group if "group" in given else found.group
        root_id = found.root_id if stored else None
        return RegistrationDefinition(
            ids,
            *filter.stored(),
            endpoint_id=endpoint,
            suspended=suspended,
            group_id=self._group(group, found.owner, root_id),
            group=group,
            report_json=_json(change.report) if "report" in given else found.report_json,
            variable=filter.variable(),
            digest=filter.digest(self._client_id, ids),
            expensive=() if suspended else _expensive(filter, named),
        )

    def _named(
        self,
        names: Sequence[str],
        endpoint: int | None,
        known: Sequence[str] = (),
        *,
        stored: bool = False,
    ) -> list[RegistrationStream]:
        """Return the streams. One that is to be deleted is refused unless the registration names it
        already (`known`); a transient one if there is an endpoint, or if the events are delivered
        from the log (`stored`), as to a session.
        """
        for at, name in enumerate(names):
            refused = self._refused.get(name)
            if refused is not None:
                refused.field = f"streams.{at}"
                raise refused
        streams = [self._streams[name] for name in names]
        for at, stream in enumerate(streams):
            if stream.deletes_at_us is not None and stream.name not in known:
                raise StreamDeleting.of(stream.name, stream.deletes_at_us, field=f"streams.{at}")
        if endpoint is not None and endpoint not in self._endpoints:
            raise UnknownEndpoint(field="endpoint")
        for at, stream in enumerate(streams):
            if stream.transient and (stored or endpoint is not None):
                raise TransientStream(field=f"streams.{at}", stream=stream.name)
            if stream.name == EXAMPLES and endpoint is not None:
                raise InvalidField(
                    f"Events of `{EXAMPLES}` are sent to an endpoint on request only; name other"
                    " streams, or register without an endpoint.",
                    field=f"streams.{at}",
                )
        return streams

    def _by_url(self, url: str) -> int:
        found = self._urls.get(url)
        if found is None:
            raise UnknownEndpoint(
                "The client has no endpoint with this URL; create it first, to see its secret.",
                field="callback",
            )
        return found

    def _group(self, name: str | None, owner: SessionOwner, root_id: int | None) -> int | None:
        """Return the id of a group of the owner; without a name, that of the owner's root."""
        if name is None:
            return root_id
        if name not in self._groups:
            raise UnknownGroup(field="group", group=name)
        if self._groups[name].owner != owner:
            raise OtherOwner(field="group", group=name)
        return self._groups[name].id


def is_same_definition(found: RegistrationRow, definition: RegistrationDefinition) -> bool:
    """Return whether a new version with this definition would change nothing."""
    return (
        set(found.streams) == set(definition.streams)
        and (found.endpoint_id, found.suspended) == (definition.endpoint_id, definition.suspended)
        and (found.group_id, _report(found.report_json))
        == (definition.group_id, _report(definition.report_json))
        and same_filter(
            stored_filter(found.language, found.filter_json),
            stored_filter(definition.language, definition.filter_json),
        )
    )


def _expensive(filter: FilterSource, streams: Sequence[RegistrationStream]) -> tuple[int, ...]:
    return filter.budgets([stream.matching for stream in streams])


def _callback_of(item: NewRegistration | RegistrationChange) -> str | None:
    return item.callback if isinstance(item, NewRegistration) else None


def _json(report: Any) -> str | None:
    return None if report is None else orjson.dumps(report).decode()


def _report(text: str | None) -> object:
    """Return a report as canonical JSON: compared as Python objects, true would equal 1."""
    return None if text is None else orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
