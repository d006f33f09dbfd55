"""Searches deliveries by state, time, last attempt and event, in bounded time. Django module.

A page examines a bounded number of deliveries, the newest events first, so it may be short, or
empty, and still have a `next`. What is examined, and what only selects among it, is in
docs/recovery.md, "Search".
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.fields.tuple_lookups import TupleGreaterThanOrEqual, TupleLessThan

from delivery import selectors
from delivery.models import Delivery
from delivery.selectors import KEY_FIELDS, LISTED_FIELDS
from delivery.serializers import ENDED
from eventhub.access.principal import Actor, is_shown
from eventhub.api.announcements import raw_connection
from eventhub.api.pagination import Page, PreparedPage, text_of, values_of
from eventhub.base import limits
from eventhub.base.errors import LimitReached
from eventhub.event.cloudevents import id_text
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog import streams
from eventhub.eventlog.models import LogState, Segment
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of, scalars
from registrations.models import Endpoint
from registrations.scope import scope

SQL = queries.load("delivery/sql/recovery.sql")
_BY_AGE = ("partition_id", "segment_id", "sequence", "endpoint_id")
_IN_PARTITION = ("segment_id", "sequence")  # the age of the deliveries of one endpoint
# fields of rows that only select among the examined ones, by the filter's name
_SELECTING = {
    "state": "state",
    "since": "created_at__gte",
    "until": "created_at__lte",
    "outcome": "last_outcome",
    "status": "last_status",
}


class _SearchedEvent(NamedTuple):
    """The stored bytes of an event that is in the database."""

    segment_id: int
    sequence: int
    payload: bytes


class _Key(NamedTuple):
    """The position of a page: everything from here on, in the order of age, is on earlier pages."""

    endpoint_id: int
    partition_id: int
    segment_id: int
    sequence: int


class _RowsByAge(NamedTuple):
    """Deliveries from the page's position on, and the fields of an index that has them by age."""

    rows: QuerySet[Delivery]
    fields: tuple[str, ...]


def search(*, actor: Actor, filters: dict[str, Any], page: Page) -> PreparedPage:
    """Return a page of the deliveries of an endpoint, of those that ended in a state, or of a
    stream. Raises UnknownEndpoint, UnknownStream, Forbidden, and LimitReached for a stream that
    has too many endpoints.
    """
    with transaction.atomic():
        raw_connection().execute(SQL["search_settings"])
        return _search(actor, filters, page)


def _search(actor: Actor, filters: dict[str, Any], page: Page) -> PreparedPage:
    shown = selectors.of_streams(actor, filters["stream"])
    selecting = {
        field: filters[name] for name, field in _SELECTING.items() if filters[name] is not None
    }
    client_id = scope(actor=actor, name=filters["client"])
    if filters["endpoint"] is not None:
        selectors.require_endpoint(actor=actor, endpoint_id=filters["endpoint"])
    if filters["state"] in ENDED:
        rows = Delivery.objects.filter(zone_id=actor.zone_id, state=selecting.pop("state"))
        if filters["endpoint"] is not None:
            selecting["endpoint_id"] = filters["endpoint"]
        if page.after:
            rows = rows.filter(_than(TupleLessThan, _BY_AGE, _key(page.after)))
        parts: Iterable[_RowsByAge] = [_RowsByAge(rows, _BY_AGE)]
    elif filters["endpoint"] is not None:
        parts = _partitions(filters["endpoint"], page)
    else:
        return _search_stream(actor, filters, page, Q(**selecting))
    if client_id is not None:
        shown &= Q(endpoint__client_id=client_id)
    return _page(actor, parts, shown & Q(**selecting), filters, page)


def _partitions(endpoint_id: int, page: Page) -> Iterator[_RowsByAge]:
    """Yield the deliveries of an endpoint, one partition after the other, the newest first. The key
    begins with the partition: a comparison that includes it would read those of other endpoints.
    """
    after = _key(page.after) if page.after else None
    values = {"endpoint": endpoint_id, "newest": after and after.partition_id}
    found = scalars(raw_connection()).execute(SQL["partitions"], values).fetchall()
    for partition_id in found:
        rows = Delivery.objects.filter(partition_id=partition_id, endpoint_id=endpoint_id)
        if after is not None and partition_id == after.partition_id:
            rows = rows.filter(_than(TupleLessThan, _IN_PARTITION, after))
        yield _RowsByAge(rows, _IN_PARTITION)


def _page(
    actor: Actor, parts: Iterable[_RowsByAge], shown: Q, filters: dict[str, Any], page: Page
) -> PreparedPage:
    """Return a page of parts, the newest first, of which a bounded number of rows is examined."""
    by_event = _asks_for_event(filters)
    left = limits.DELIVERIES_DECODED_MAX if by_event else limits.DELIVERIES_SCANNED_MAX
    found: list[Any] = []
    last: list[Any] = []
    for rows, fields in parts:
        rows = rows.order_by(*(f"-{name}" for name in fields))
        last = [*rows.values_list(*_BY_AGE, named=True)[left - 1 : left]] if shown else []
        examined = rows.filter(_than(TupleGreaterThanOrEqual, fields, last[0])) if last else rows
        listed = selectors.as_shown(examined.filter(shown)).values_list(*LISTED_FIELDS, named=True)
        if by_event:
            found += _of_event(actor, [*listed], filters)
        else:
            found += listed[: page.limit + 1 - len(found)]
        if last or len(found) > page.limit:
            break
        if shown:
            left -= rows.count()
    if len(found) > page.limit:
        found = last = found[: page.limit]
    return PreparedPage(found, text_of(last[-1], KEY_FIELDS) if last else None)


def _search_stream(actor: Actor, filters: dict[str, Any], page: Page, selecting: Q) -> PreparedPage:
    """Return a page of deliveries of a stream's events to all endpoints: those of some events, the
    newest first, by the key of deliveries.
    """
    stream = streams.get_stream(raw_connection(), actor.zone_id, filters["stream"])
    endpoints = _endpoints(actor, filters["client"])
    head = stream.sequence or 0
    last = _key(page.after).sequence - 1 if page.after else head
    width = max(limits.DELIVERIES_SCANNED_MAX // max(len(endpoints), 1), 1)
    if _asks_for_event(filters):
        width = min(width, limits.DELIVERIES_DECODED_MAX // max(len(endpoints), 1) or 1)
    first = max(last - width + 1, 1)
    segments = Segment.objects.filter(
        Q(last__isnull=True) | Q(last__gte=first), stream_id=stream.id, first__lte=last
    )
    ids = dict(segments.values_list("pk", "partition_id"))
    partitions = {*ids.values(), *LogState.objects.values_list("current_partition", flat=True)}
    rows = Delivery.objects.filter(
        selecting,
        partition_id__in=partitions,
        endpoint_id__in=endpoints,
        segment_id__in=[*ids],
        sequence__range=(first, last),
    ).order_by("-segment_id", "-sequence", "endpoint_id")
    found = [*selectors.as_shown(rows).values_list(*LISTED_FIELDS, named=True)]
    if _asks_for_event(filters):
        found = _of_event(actor, found, filters)
    following = _Key(0, 0, 0, first) if first > 1 else None
    if len(found) > page.limit:  # whole events: those to several endpoints stay together
        cut = found[page.limit - 1].sequence
        found = [one for one in found if one.sequence >= cut]
        following = _Key(0, 0, 0, cut)
    return PreparedPage(found, None if following is None else ".".join(map(str, following)))


def _endpoints(actor: Actor, client: str | None) -> list[int]:
    """Return the endpoints that a search over a stream covers, also deleted ones."""
    client_id = scope(actor=actor, name=client)
    owned = {} if client_id is None else {"client_id": client_id}
    found = Endpoint.objects.filter(zone_id=actor.zone_id, **owned).values_list("pk", flat=True)
    ids = [*found[: limits.DELIVERY_SEARCH_ENDPOINTS_MAX + 1]]
    if len(ids) > limits.DELIVERY_SEARCH_ENDPOINTS_MAX:
        raise LimitReached(
            "The zone has too many endpoints for this search; give `client`, `endpoint`, or"
            " `sequence`.",
            limit=limits.DELIVERY_SEARCH_ENDPOINTS_MAX,
            field="stream",
        )
    return ids


def _asks_for_event(filters: dict[str, Any]) -> bool:
    return filters["type"] is not None or filters["event"] is not None


def _of_event(actor: Actor, rows: Sequence[Any], filters: dict[str, Any]) -> list[Any]:
    """Return the rows whose event is in the database, is visible to the actor, and has the type and
    the id of the filters.
    """
    keys = {(row.segment_id, row.sequence) for row in rows}
    matching = {
        (stored.segment_id, stored.sequence)
        for stored in _events(keys)
        if _is_asked_for(actor, stored.payload, filters)
    }
    return [row for row in rows if (row.segment_id, row.sequence) in matching]


def _is_asked_for(actor: Actor, payload: bytes, filters: dict[str, Any]) -> bool:
    event = decode(bytes(payload))
    if not is_shown(event, actor.principal):
        return False
    type, id = filters["type"], filters["event"]
    return (type is None or event.type == type) and (id is None or id_text(event.id) == id)


def _events(keys: Iterable[tuple[int, int]]) -> list[_SearchedEvent]:
    ordered = sorted(keys)
    values = {"segments": [key[0] for key in ordered], "sequences": [key[1] for key in ordered]}
    query = cursor_of(raw_connection(), _SearchedEvent)
    return query.execute(SQL["events"], values).fetchall()


def _key(cursor: str) -> _Key:
    return _Key(*values_of(cursor, KEY_FIELDS))


def _than(lookup: Any, fields: Sequence[str], key: Any) -> Any:
    """Return a comparison of the fields of deliveries with those of a key."""
    return lookup(tuple(map(F, fields)), tuple(getattr(key, name) for name in fields))
