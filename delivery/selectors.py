"""Reads of deliveries and their tries, as far as the actor may see the endpoint."""

from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from delivery.errors import UnknownDelivery
from delivery.models import Attempt, Delivery
from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.access.pagination import Cut
from eventhub.access.system import raw_connection
from eventhub.env import read_env
from eventhub.errors import EventHubError
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog import queries, streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.models import Segment
from eventhub.eventlog.rows import cursor_of, scalars
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint
from registrations.owners import heard, require_some_listen, scope

SQL = queries.load("deliveries.sql", Path(__file__).parent / "sql")


class DeliveryId(NamedTuple):
    """What names a delivery. The partition may change when the event outlives its own."""

    endpoint_id: int
    partition_id: int
    segment_id: int
    sequence: int
    run: int


class EndedRow(NamedTuple):
    """A delivery that ended, as it is listed for all endpoints; the others are, but for the end."""

    endpoint_id: int
    partition_id: int
    segment_id: int
    sequence: int
    run: int
    stream_name: str
    segment_uuid: str
    registrations: list[int]
    state: str
    attempts: int
    next_attempt_at: datetime
    created_at: datetime
    finished_at: datetime | None
    gap_first: int | None  # no event is owed, but word of a gap that ends at the sequence
    gap_reason: str | None
    shown: bool
    last: bool  # of those that were looked at


class Ended(NamedTuple):
    """Which of all endpoints' deliveries that ended without being delivered are listed."""

    client: str | None
    stream: str | None
    state: str
    after: DeliveryId | None
    rows_max: int


def name_of(delivery: Any) -> str:
    """A delivery's id, which is its place in a list."""
    return ".".join(str(getattr(delivery, name)) for name in DeliveryId._fields)


def of_endpoint(*, actor: Actor, endpoint_id: int, stream: str | None) -> QuerySet[Delivery]:
    """An endpoint's deliveries, also of one that was deleted, of the streams that the actor may
    listen to, or of one of them. Forbidden if there is none.
    """
    _require_heard(actor, stream)
    if not Endpoint.objects.filter(pk=endpoint_id, **_whose(actor)).exists():
        raise UnknownEndpoint(field="endpoint")
    found = _deliveries().filter(heard(actor=actor).streams(), endpoint_id=endpoint_id)
    if stream is not None:
        found = found.filter(stream_id=_stream_id(actor, stream))
    return found


def of_event(*, actor: Actor, stream: str, sequence: int) -> QuerySet[Delivery]:
    """The deliveries of one event. Forbidden if the actor may not listen to it."""
    actor.require_listen(stream, field="stream")
    segments = Segment.objects.filter(stream_id=_stream_id(actor, stream), first__lte=sequence)
    segment = segments.order_by("-first", "-id").values_list("pk", flat=True).first()
    return _of_actor(actor).filter(segment_id=segment or 0, sequence=sequence)


def list_ended(*, actor: Actor, asked: Ended) -> Cut:
    """Deliveries of all endpoints that ended in a state other than delivered, of the newest
    segments first, of the streams that the actor may listen to, or of one of them; those of the
    actor's own client, of the one that a manager names, or of all. A part may be short, or empty,
    with more behind it. Forbidden as in `of_endpoint`.
    """
    _require_heard(actor, asked.stream)
    after = asked.after._asdict() if asked.after else dict.fromkeys(DeliveryId._fields)
    values = {
        **after,
        **heard(actor=actor)._asdict(),
        "zone_id": actor.zone_id,
        "client_id": scope(actor=actor, name=asked.client),
        "stream": None if asked.stream is None else _stream_id(actor, asked.stream),
        "state": asked.state,
        "looks_max": limits.DELIVERIES_LOOKS_MAX,
        "count": asked.rows_max + 1,
    }
    found = cursor_of(raw_connection(), EndedRow).execute(SQL["of_zone"], values).fetchall()
    page = found[: asked.rows_max]
    more = len(found) > len(page) or (bool(page) and page[-1].last)
    return Cut([row for row in page if row.shown], name_of(page[-1]) if more else None)


def find_delivery(*, actor: Actor, delivery: DeliveryId) -> Delivery:
    """One delivery, also after it moved to another partition. UnknownDelivery if there is none, or
    it is another client's; Forbidden if the actor may not listen to its stream.
    """
    name = delivery._asdict()
    del name["partition_id"]
    found = _of_actor(actor).filter(**name).first()
    if found is None:
        raise UnknownDelivery(field="delivery")
    actor.require_listen(found.stream_name, field="delivery")
    return found


def find_event(*, actor: Actor, delivery: Delivery) -> bytes | None:
    """The event of a delivery that `find_delivery` gave, as JSON, wherever it is held; None if it
    is not any more, or not within reach, or for others than the actor.
    """
    values = {name: getattr(delivery, name) for name in DeliveryId._fields}
    payload = scalars(raw_connection()).execute(SQL["event"], values).fetchone()
    if payload is None and delivery.gap_first is None:
        payload = _from_the_log(actor, delivery)
    if payload is None:
        return None
    event = decode(bytes(payload))
    return event_json(event) if is_shown(event, actor.principal) else None


def _from_the_log(actor: Actor, delivery: Delivery) -> bytes | None:
    connection = raw_connection()
    try:
        stream = streams.get_stream(connection, actor.zone_id, delivery.stream_name)
        archive = archive_of(read_env().archive_url)
        stored = streams.read_event(connection, stream, delivery.sequence, archive)
    except EventHubError:
        return None
    return stored.payload if stored.segment == str(delivery.segment_uuid) else None


def tries_of(*, delivery: Delivery) -> QuerySet[Attempt]:
    """The attempts of a delivery that are kept, the newest first."""
    name = {name: getattr(delivery, name) for name in DeliveryId._fields}
    del name["partition_id"]
    found = Attempt.objects.filter(**name).order_by("-attempted_at", "-number")
    return found[: limits.PAGE_ITEMS_MAX]


def _deliveries() -> QuerySet[Delivery]:
    """As they are shown: with the name of the stream and the UUID of the segment."""
    names = {"stream_name": F("stream__name"), "segment_uuid": F("segment__uuid")}
    return Delivery.objects.annotate(**names).defer("payload")


def _of_actor(actor: Actor) -> QuerySet[Delivery]:
    whose = {f"endpoint__{name}": value for name, value in _whose(actor).items()}
    return _deliveries().filter(**whose)


def _whose(actor: Actor) -> dict[str, int]:
    """The endpoints that the actor deals with."""
    client_id = scope(actor=actor)
    client = {} if client_id is None else {"client_id": client_id}
    return {"zone_id": actor.zone_id, **client}


def _require_heard(actor: Actor, stream: str | None) -> None:
    if stream is not None:
        actor.require_listen(stream, field="stream")
    elif not heard(actor=actor).system:
        require_some_listen(actor=actor)


def _stream_id(actor: Actor, stream: str) -> int:
    return streams.get_stream(raw_connection(), actor.zone_id, stream).id
