"""What registrations ask for, with the ids of what they name: streams that the actor may listen to,
endpoints and groups of the client. Django module.

Errors name the field; whoever deals with several adds the index.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from eventhub.access.actor import Actor
from eventhub.api.announcements import raw_connection
from eventhub.base.errors import EventHubError, UnknownStream
from registrations import rows
from registrations.endpoints import rows as endpoint_rows
from registrations.errors import TransientStream, UnknownEndpoint, UnknownGroup
from registrations.filter_source import FilterSource, changed_filter, same_filter, stored_filter
from registrations.groups import rows as group_rows
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Registration, Stream, Wanted


class Names:
    """What names stand for, to one actor and for registrations of one client. Ask for many at
    once; then `first` and `next` ask nobody.
    """

    def __init__(self, actor: Actor, client_id: int) -> None:
        self._actor = actor
        self._client_id = client_id
        self._streams: dict[str, Stream] = {}
        self._refused: dict[str, EventHubError] = {}
        self._endpoints: dict[int, str] = {}
        self._urls: dict[str, int] = {}
        self._groups: dict[str, int] = {}

    def look_up(self, streams: Iterable[str]) -> None:
        """Know these streams; Forbidden before UnknownStream, so that names do not leak."""
        allowed = []
        for name in dict.fromkeys(streams):
            try:
                self._actor.require_listen(name, field="streams")
                allowed.append(name)
            except EventHubError as error:
                self._refused[name] = error
        found = rows.streams_by_name(raw_connection(), self._actor.zone_id, allowed)
        self._streams |= {stream.name: stream for stream in found}
        unknown = [name for name in allowed if name not in self._streams]
        self._refused |= {name: UnknownStream(stream=name) for name in unknown}

    def hold(
        self,
        items: Iterable[NewRegistration | RegistrationChange],
        found: Iterable[Registration] = (),
    ) -> None:
        """Keep the groups and endpoints that are named, and those of the registrations found, as
        they are to the end of the transaction.
        """
        items, found = list(items), list(found)
        groups = {one.group for one in (*items, *found) if one.group is not None}
        ids = {item.endpoint for item in items if item.endpoint is not None}
        ids |= {one.endpoint_id for one in found if one.endpoint_id is not None}
        urls = {url for item in items if (url := _callback_of(item)) is not None}
        connection = raw_connection()
        self._groups |= group_rows.hold(connection, self._client_id, groups)
        endpoints = endpoint_rows.hold(connection, self._client_id, ids, urls)
        self._endpoints |= endpoints
        self._urls |= {url: id for id, url in reversed(endpoints.items())}  # the oldest of several

    def missing(self, urls: Iterable[str | None]) -> list[str]:
        """Those of the URLs that no endpoint has, each once."""
        return [url for url in dict.fromkeys(urls) if url is not None and url not in self._urls]

    def add(self, url: str, endpoint_id: int) -> None:
        """A new endpoint of the client."""
        self._urls[url] = endpoint_id
        self._endpoints[endpoint_id] = url

    def by_id(self) -> dict[int, str]:
        """The names of all streams that were looked up and found."""
        return {stream.id: name for name, stream in self._streams.items()}

    def stream_ids(self, names: Sequence[str]) -> list[int]:
        """Look up streams alone. Raises Forbidden and UnknownStream at the name's place."""
        self.look_up(names)
        return [stream.id for stream in self._named(names, None)]

    def first(self, item: NewRegistration) -> Wanted:
        """What a new registration asks for."""
        endpoint = item.endpoint if item.callback is None else self._by_url(item.callback)
        streams = self._named(item.streams, endpoint)
        ids = tuple(stream.id for stream in streams)
        return Wanted(
            ids,
            *item.filter.stored(),
            endpoint_id=endpoint,
            suspended=item.suspended,
            group_id=self._group(item.group),
            group=item.group,
            report_json=_json(item.report),
            digest=item.filter.digest(self._client_id, ids),
            expensive=() if item.suspended else _expensive(item.filter, streams),
        )

    def next(
        self, found: Registration, streams: Sequence[str], change: RegistrationChange
    ) -> Wanted:
        """What a registration on `streams` asks for after a change."""
        given = change.given
        endpoint = change.endpoint if "endpoint" in given else found.endpoint_id
        named = self._named(change.streams or streams, endpoint)
        ids = tuple(stream.id for stream in named)
        filter = changed_filter(stored_filter(found.language, found.filter_json), change.filter)
        suspended = found.suspended if change.suspended is None else change.suspended
        group = change.group if "group" in given else found.group
        return Wanted(
            ids,
            *filter.stored(),
            endpoint_id=endpoint,
            suspended=suspended,
            group_id=self._group(group),
            group=group,
            report_json=_json(change.report) if "report" in given else found.report_json,
            digest=filter.digest(self._client_id, ids),
            expensive=() if suspended else _expensive(filter, named),
        )

    def _named(self, names: Sequence[str], endpoint: int | None) -> list[Stream]:
        for at, name in enumerate(names):
            refused = self._refused.get(name)
            if refused is not None:
                refused.field = f"streams.{at}"
                raise refused
        streams = [self._streams[name] for name in names]
        if endpoint is None:
            return streams
        if endpoint not in self._endpoints:
            raise UnknownEndpoint(field="endpoint")
        for at, stream in enumerate(streams):
            if stream.transient:
                raise TransientStream(field=f"streams.{at}", stream=stream.name)
        return streams

    def _by_url(self, url: str) -> int:
        found = self._urls.get(url)
        if found is None:
            raise UnknownEndpoint(
                "The client has no endpoint of this URL; make it first, to see its secret.",
                field="callback",
            )
        return found

    def _group(self, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self._groups:
            raise UnknownGroup(field="group", group=name)
        return self._groups[name]


def same(found: Registration, wanted: Wanted) -> bool:
    """True if a version would ask for nothing else."""
    return (
        set(found.streams) == set(wanted.streams)
        and (found.endpoint_id, found.suspended) == (wanted.endpoint_id, wanted.suspended)
        and (found.group_id, _report(found.report_json))
        == (wanted.group_id, _report(wanted.report_json))
        and same_filter(
            stored_filter(found.language, found.filter_json),
            stored_filter(wanted.language, wanted.filter_json),
        )
    )


def _expensive(filter: FilterSource, streams: Sequence[Stream]) -> tuple[int, ...]:
    return filter.budgets([stream.matching for stream in streams])


def _callback_of(item: NewRegistration | RegistrationChange) -> str | None:
    return item.callback if isinstance(item, NewRegistration) else None


def _json(report: Any) -> str | None:
    return None if report is None else orjson.dumps(report).decode()


def _report(text: str | None) -> object:
    """As text whatever the order of names: Python takes true for 1."""
    return None if text is None else orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
