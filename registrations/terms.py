"""What registrations ask for, with the ids of what they name: streams that the actor may listen to,
endpoints and groups of the client.

Errors name the field; whoever deals with several adds the index.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from eventhub.access.actor import Actor
from eventhub.access.system import raw_connection
from eventhub.errors import EventHubError, UnknownStream
from registrations import rows
from registrations.endpoints import rows as endpoint_rows
from registrations.errors import TransientStream, UnknownEndpoint, UnknownGroup
from registrations.filters import Filter, changed_filter, same_filter, stored_filter
from registrations.groups import rows as group_rows
from registrations.requests import NewRegistration, RegistrationChange
from registrations.rows import Registration, Wanted


class Names:
    """What names stand for, to one actor and for registrations of one client. Ask for many at
    once; then `first` and `next` ask nobody.
    """

    def __init__(self, actor: Actor, client_id: int) -> None:
        self._actor = actor
        self._client_id = client_id
        self._streams: dict[str, int] = {}
        self._refused: dict[str, EventHubError] = {}
        self._transient: set[int] = set()
        self._strategies: dict[int, str] = {}
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
        connection = raw_connection()
        found = rows.streams_by_name(connection, self._actor.zone_id, allowed)
        self._refused |= {name: UnknownStream(stream=name) for name in allowed if name not in found}
        self._streams |= found
        self._transient |= rows.transient_streams(connection, found.values())
        self._strategies |= rows.strategies(connection, found.values())

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
        return {id: name for name, id in self._streams.items()}

    def first(self, item: NewRegistration) -> Wanted:
        """What a new registration asks for."""
        endpoint = item.endpoint if item.callback is None else self._by_url(item.callback)
        ids = self._ids(item.streams, endpoint)
        return Wanted(
            ids,
            *item.filter.stored(),
            endpoint_id=endpoint,
            suspended=item.suspended,
            group_id=self._group(item.group),
            report_json=_json(item.report),
            digest=item.filter.digest(self._client_id, ids),
            expensive=() if item.suspended else self._expensive(item.filter, ids),
        )

    def next(
        self, found: Registration, streams: Sequence[str], change: RegistrationChange
    ) -> Wanted:
        """What a registration on `streams` asks for after a change."""
        given = change.given
        endpoint = change.endpoint if "endpoint" in given else found.endpoint_id
        ids = self._ids(change.streams or streams, endpoint)
        filter = changed_filter(stored_filter(found.language, found.filter_json), change.filter)
        suspended = found.suspended if change.suspended is None else change.suspended
        return Wanted(
            ids,
            *filter.stored(),
            endpoint_id=endpoint,
            suspended=suspended,
            group_id=self._group(change.group if "group" in given else found.group),
            report_json=_json(change.report) if "report" in given else found.report_json,
            digest=filter.digest(self._client_id, ids),
            expensive=() if suspended else self._expensive(filter, ids),
        )

    def _expensive(self, filter: Filter, ids: Iterable[int]) -> tuple[int, ...]:
        return filter.budgets([self._strategies[id] for id in ids])

    def _ids(self, names: Sequence[str], endpoint: int | None) -> tuple[int, ...]:
        for at, name in enumerate(names):
            refused = self._refused.get(name)
            if refused is not None:
                refused.field = f"streams.{at}"
                raise refused
        ids = tuple(self._streams[name] for name in names)
        if endpoint is None:
            return ids
        if endpoint not in self._endpoints:
            raise UnknownEndpoint(field="endpoint")
        for at, id in enumerate(ids):
            if id in self._transient:
                raise TransientStream(field=f"streams.{at}", stream=names[at])
        return ids

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


def _callback_of(item: NewRegistration | RegistrationChange) -> str | None:
    return item.callback if isinstance(item, NewRegistration) else None


def _json(report: Any) -> str | None:
    return None if report is None else orjson.dumps(report).decode()


def _report(text: str | None) -> object:
    """As text whatever the order of names: Python takes true for 1."""
    return None if text is None else orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
