"""Reads deliveries with their attempts, and listeners, that the actor may see: both the endpoint
or the client, and the stream. Django module.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from django.db.models import Case, F, Field, Lookup, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.fields.tuple_lookups import TupleGreaterThanOrEqual, TupleLessThan
from django.db.models.functions import Coalesce

from delivery.errors import UnknownDelivery
from delivery.models import PENDING, Attempt, Delivery, Listener
from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.api.announcements import raw_connection
from eventhub.api.pagination import Cut, Page, text_of, values_of
from eventhub.base import limits
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog import streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.models import EventRow, Segment
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint
from registrations.owners import listenable_streams, owner, require_some_listen, scope

# What names a delivery, and its place in a list. The partition may change when the event outlives
# its own.
PLACE: tuple[Field, ...] = tuple(
    map(Delivery._meta.get_field, ("endpoint", "partition_id", "segment", "sequence", "run"))
)
LISTED = (
    *(field.attname for field in PLACE),
    *("stream_name", "segment_uuid", "registrations", "state", "attempts", "due_at", "created_at"),
    *("finished_at", "gap_first", "gap_reason"),
)
_BY_AGE = ("partition_id", "segment_id", "sequence", "endpoint_id", "run")


def of_endpoint(*, actor: Actor, endpoint_id: int, stream: str | None) -> QuerySet[Delivery]:
    """An endpoint's deliveries, also of one that was deleted, of the streams that the actor may
    listen to, or of one of them. Forbidden if there is none.
    """
    shown = _of_streams(actor, stream)
    if not Endpoint.objects.filter(pk=endpoint_id, **_whose(actor)).exists():
        raise UnknownEndpoint(field="endpoint")
    return _as_shown(Delivery.objects.filter(shown, endpoint_id=endpoint_id))


def of_event(*, actor: Actor, stream: str, sequence: int) -> QuerySet[Delivery]:
    """The deliveries of one event. Forbidden if the actor may not listen to it."""
    segments = Segment.objects.filter(_of_streams(actor, stream), first__lte=sequence)
    segment = segments.order_by("-first", "-id").values_list("pk", flat=True).first()
    return _of_actor(actor).filter(segment_id=segment or 0, sequence=sequence)


def list_ended(*, actor: Actor, asked: dict[str, Any], page: Page) -> Cut:
    """Deliveries of all endpoints that ended in a state other than delivered, of the newest
    segments first, of the streams that the actor may listen to, or of one of them; those of the
    actor's own client, of the one that a manager names, or of all. Forbidden as in `of_endpoint`.

    Where some are left out it looks at so many at most, so that those cost nobody: a page may be
    short, or empty, with more behind it.
    """
    shown = _of_streams(actor, asked["stream"])
    client_id = scope(actor=actor, name=asked["client"])
    if client_id is not None:
        shown &= Q(endpoint__client_id=client_id)
    ended = Delivery.objects.filter(zone_id=actor.zone_id, state=asked["state"])
    ended = ended.order_by(*(f"-{name}" for name in _BY_AGE))
    if page.after:
        ended = ended.filter(_than(TupleLessThan, page.after))
    places = ended.values_list(*_BY_AGE, named=True)
    last = (
        [*places[limits.DELIVERIES_SCANNED_MAX - 1 : limits.DELIVERIES_SCANNED_MAX]]
        if shown
        else []
    )
    if last:
        ended = ended.filter(_than(TupleGreaterThanOrEqual, text_of(last[0], PLACE)))
    rows = _as_shown(ended.filter(shown)).values_list(*LISTED, named=True)
    found = [*rows[: page.limit + 1]]
    if len(found) > page.limit:
        found = last = found[: page.limit]
    return Cut(found, text_of(last[-1], PLACE) if last else None)


def find_delivery(*, actor: Actor, place: Sequence[int]) -> Delivery:
    """One delivery, also after it moved to another partition, with its event and its newest tries.
    UnknownDelivery if there is none, or it is another client's; Forbidden if the actor may not
    listen to its stream.
    """
    endpoint_id, _, segment_id, sequence, run = place
    name = {"endpoint_id": endpoint_id, "segment_id": segment_id, "sequence": sequence, "run": run}
    event = EventRow.objects.filter(
        partition_id=OuterRef("segment__partition_id"),
        segment_id=OuterRef("segment_id"),
        sequence=OuterRef("sequence"),
    )
    stored = Coalesce(Subquery(event.values("payload")), "payload")
    found = _of_actor(actor).annotate(stored=stored).filter(**name).first()
    if found is None:
        raise UnknownDelivery(field="delivery")
    actor.require_listen(found.stream_name, field="delivery")
    found.event = _event(actor, found)
    attempts = Attempt.objects.filter(**name).order_by("-attempted_at", "-number")
    found.attempt_log = attempts[: limits.PAGE_ITEMS_MAX]
    return found


def listeners_of(*, actor: Actor, client: str, stream: str | None) -> QuerySet[Listener]:
    """Return a client's listeners to the streams that the actor may listen to, or to one stream.

    Raises Forbidden for another client unless the actor manages the zone, and for a stream that the
    actor may not listen to.
    """
    whose = owner(actor=actor, name=client)
    shown = _of_streams(actor, stream)
    found = Listener.objects.filter(shown, zone_id=actor.zone_id, client_id=whose.id)
    return found.annotate(stream_name=F("stream__name"))


def _event(actor: Actor, delivery: Delivery) -> Any:
    """The event of a delivery as JSON, wherever it is held; None if it is not any more, or not
    within reach, or for others than the actor.
    """
    payload = delivery.stored
    if payload is None and delivery.gap_first is None:
        payload = _from_the_log(actor, delivery)
    event = None if payload is None else decode(bytes(payload))
    if event is None or not is_shown(event, actor.principal):
        return None
    return orjson.loads(event_json(event))


def _from_the_log(actor: Actor, delivery: Delivery) -> bytes | None:
    connection = raw_connection()
    try:
        stream = streams.get_stream(connection, actor.zone_id, delivery.stream_name)
        archive = archive_of(read_env().archive_url)
        stored = streams.read_event(connection, stream, delivery.sequence, archive)
    except EventHubError:
        return None
    return stored.payload if stored.segment == str(delivery.segment_uuid) else None


def _as_shown(found: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Deliveries with the name of the stream and the UUID of the segment; `due_at`: the
    next attempt, while there will be one.
    """
    due_at = Case(When(PENDING, then=F("next_attempt_at")))
    names = {"stream_name": F("stream__name"), "segment_uuid": F("segment__uuid")}
    return found.annotate(**names, due_at=due_at)


def _of_actor(actor: Actor) -> QuerySet[Delivery]:
    return _as_shown(Delivery.objects.filter(**_whose(actor, "endpoint__")))


def _whose(actor: Actor, of: str = "") -> dict[str, int]:
    """The endpoints that the actor deals with, or what is of them."""
    client_id = scope(actor=actor)
    client = {} if client_id is None else {f"{of}client_id": client_id}
    return {f"{of}zone_id": actor.zone_id, **client}


def _of_streams(actor: Actor, stream: str | None) -> Q:
    """What is of the streams that the actor may listen to, or of the one that is named. Forbidden
    if it may not listen to that, or to any.
    """
    if stream is not None:
        actor.require_listen(stream, field="stream")
        return Q(stream_id=streams.get_stream(raw_connection(), actor.zone_id, stream).id)
    shown = listenable_streams(actor=actor)
    if not shown.system:
        require_some_listen(actor=actor)
    return shown.streams()


def _than(lookup: type[Lookup], cursor: str) -> Lookup:
    """A comparison of deliveries by age with the one of a cursor."""
    endpoint, *place, run = values_of(cursor, PLACE)
    return lookup(tuple(map(F, _BY_AGE)), (*place, endpoint, run))
