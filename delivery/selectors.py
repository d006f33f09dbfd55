"""Reads deliveries, attempts and listeners that the actor may see, and the overview of a zone.
Django module.
"""

from collections.abc import Sequence
from typing import Any, LiteralString

import orjson
import psycopg
from django.db import transaction
from django.db.models import Case, F, Field, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Greatest
from psycopg.rows import dict_row

from delivery.errors import UnknownDelivery
from delivery.health import watch
from delivery.models import PENDING, Attempt, Delivery, Listener
from eventhub.access.grants import EXAMPLES
from eventhub.access.principal import Actor, is_shown
from eventhub.api.announcements import raw_connection
from eventhub.base import limits
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.base.errors import EventHubError, Gone
from eventhub.base.version import VERSION
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog import streams
from eventhub.eventlog.archive.reader import archive_of
from eventhub.eventlog.models import EventRow, Segment, Stream
from eventhub.eventlog.system import SYSTEM_STREAM_ID
from eventhub.postgresql import queries
from registrations.errors import UnknownEndpoint
from registrations.models import Endpoint
from registrations.scope import (
    ListenableStreams,
    listenable_streams,
    owner,
    require_some_listen,
    scope,
)

SQL = queries.load("delivery/sql/overview.sql")

# The key of a delivery, and its position in a list. The partition may change: a pending delivery
# moves when its partition is retired.
KEY_FIELDS: tuple[Field, ...] = tuple(
    map(Delivery._meta.get_field, ("endpoint", "partition_id", "segment", "sequence"))
)
LISTED_FIELDS = (
    *(field.attname for field in KEY_FIELDS),
    *("stream_name", "segment_uuid", "registrations", "state", "attempts", "due_at", "created_at"),
    *("finished_at", "gap_first", "gap_reason", "last_outcome", "last_status", "resent_at"),
)


def require_endpoint(*, actor: Actor, endpoint_id: int) -> None:
    """Raise UnknownEndpoint unless the endpoint is, or was, the actor's to see."""
    if not Endpoint.objects.filter(pk=endpoint_id, **_whose(actor)).exists():
        raise UnknownEndpoint(field="endpoint")


def of_event(*, actor: Actor, stream: str, sequence: int) -> QuerySet[Delivery]:
    """Return the deliveries of one event. Raise Forbidden if its stream is not the actor's to
    listen to.
    """
    segments = Segment.objects.filter(of_streams(actor, stream), first__lte=sequence)
    segment = segments.order_by("-first", "-id").values_list("pk", flat=True).first()
    return _of_actor(actor).filter(segment_id=segment or 0, sequence=sequence)


def find_delivery(*, actor: Actor, key: Sequence[int]) -> Delivery:
    """Return one delivery with its event and its newest attempts. Raises as `find_delivery_row`."""
    found = find_delivery_row(actor=actor, key=key)
    found.event = _event(actor, found)
    attempts = _attempts(key).order_by("-attempted_at", "-number")
    found.attempt_log = attempts[: limits.PAGE_ITEMS_MAX]
    return found


def _attempts(key: Sequence[int]) -> QuerySet[Attempt]:
    """Return the attempts of a delivery: its own, and those of batches that it was delivered in,
    which are stored under the first sequence of the batch in a range of BATCH_ATTEMPT_SPAN.
    """
    endpoint_id, _, segment_id, sequence = key
    return Attempt.objects.filter(
        Q(sequence=sequence) | Q(sequences__contains=[sequence]),
        endpoint_id=endpoint_id,
        segment_id=segment_id,
        sequence__gte=sequence - sequence % limits.BATCH_ATTEMPT_SPAN,
        sequence__lte=sequence,
    )


def find_delivery_row(*, actor: Actor, key: Sequence[int]) -> Delivery:
    """Return one delivery, also after it moved to another partition, with its event's bytes if they
    are in the database (`stored`). Raises UnknownDelivery if there is none or it is another
    client's, and Forbidden if the actor may not listen to its stream.
    """
    event = EventRow.objects.filter(
        partition_id=OuterRef("segment__partition_id"),
        segment_id=OuterRef("segment_id"),
        sequence=OuterRef("sequence"),
    )
    stored = Coalesce(Subquery(event.values("payload")), "payload")
    rows = _of_actor(actor).select_related("endpoint__client").annotate(stored=stored)
    found = rows.filter(**_name_of(key)).first()
    if found is None:
        raise UnknownDelivery(field="delivery")
    if found.stream_name != EXAMPLES:  # the owner of the endpoint may see an example
        actor.require_listen(found.stream_name, field="delivery")
    return found


def event_bytes(actor: Actor, delivery: Delivery) -> bytes:
    """Return the stored bytes of a delivery's event, from the delivery, the log or the archive.

    Raises Gone if the event is no longer stored, ArchiveDamaged, ArchiveUnavailable.
    """
    if delivery.stored is not None:
        return bytes(delivery.stored)
    connection = raw_connection()
    stream = streams.get_stream(connection, actor.zone_id, delivery.stream_name)
    archive = archive_of(read_env().archive_url)
    stored = streams.read_event(connection, stream, delivery.sequence, archive)
    if stored.segment != str(delivery.segment_uuid):
        raise Gone("The event is no longer stored.", stream=delivery.stream_name)
    return stored.payload


def listeners_of(*, actor: Actor, client: str, stream: str | None) -> QuerySet[Listener]:
    """Return a client's listeners to the streams that the actor may listen to, or to one stream.

    Raises Forbidden for another client unless the actor manages the zone, and for a stream that the
    actor may not listen to.
    """
    whose = owner(actor=actor, name=client)
    shown = of_streams(actor, stream)
    found = Listener.objects.filter(shown, zone_id=actor.zone_id, client_id=whose.id)
    return found.annotate(stream_name=F("stream__name"))


def _name_of(key: Sequence[int]) -> dict[str, int]:
    """Return the part of a delivery's key that never changes."""
    endpoint_id, _, segment_id, sequence = key
    return {"endpoint_id": endpoint_id, "segment_id": segment_id, "sequence": sequence}


def _event(actor: Actor, delivery: Delivery) -> Any:
    """Return the event of a delivery as JSON; None for a gap notice, and if the event is no longer
    stored, cannot be read, or is not visible to the actor.
    """
    if delivery.gap_first is not None and delivery.stored is None:
        return None
    try:
        event = decode(event_bytes(actor, delivery))
    except EventHubError:
        return None
    if not is_shown(event, actor.principal):
        return None
    return orjson.loads(event_json(event))


def as_shown(found: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Return deliveries with stream name, segment UUID and `due_at`, the next attempt if any. One
    that was requested again is due before all others, but not before it was written.
    """
    due_at = Case(When(PENDING, then=Greatest("next_attempt_at", "created_at")))
    names = {"stream_name": F("stream__name"), "segment_uuid": F("segment__uuid")}
    return found.annotate(**names, due_at=due_at)


def _of_actor(actor: Actor) -> QuerySet[Delivery]:
    return as_shown(Delivery.objects.filter(**_whose(actor, "endpoint__")))


def _whose(actor: Actor, of: str = "") -> dict[str, int]:
    """Return the condition for the endpoints that the actor may see, or for their deliveries."""
    client_id = scope(actor=actor)
    client = {} if client_id is None else {f"{of}client_id": client_id}
    return {f"{of}zone_id": actor.zone_id, **client}


def of_streams(actor: Actor, stream: str | None) -> Q:
    """Return the condition for the streams that the actor may listen to, or for the one named.
    Raise Forbidden if the actor may not listen to that one, or to any.
    """
    if stream is not None:
        actor.require_listen(stream, field="stream")
        return Q(stream_id=streams.get_stream(raw_connection(), actor.zone_id, stream).id)
    shown = listenable_streams(actor=actor)
    if not shown.system:
        require_some_listen(actor=actor)
    return shown.streams()


def listened_ids(
    *, actor: Actor, names: Sequence[str] | None, field: str = "streams"
) -> tuple[int, ...] | None:
    """Return the ids of streams by name, or of those that the actor may listen to; None: all. Raise
    Forbidden, UnknownStream.
    """
    if names is not None:
        for name in names:
            actor.require_listen(name, field=field)
        found = (streams.get_stream(raw_connection(), actor.zone_id, name) for name in names)
        return tuple(stream.id for stream in found)
    shown = listenable_streams(actor=actor)
    if shown == ListenableStreams(None, system=True):
        return None
    of_zone = Q(zone_id=actor.zone_id) | Q(pk=SYSTEM_STREAM_ID)
    rows = Stream.objects.filter(of_zone, shown.streams("name"))
    return tuple(rows.values_list("pk", flat=True))


def overview(*, zone_id: int) -> dict[str, Any]:
    """Return a zone's overview, at a cost that does not grow with it: counts end at
    OVERVIEW_COUNT_MAX, that of pending deliveries continues with what was last counted of backlogs,
    and a count that takes too long is left out.
    """
    at_us, health = SystemClock().now_us(), watch.last_report()
    values = {
        "zone": zone_id,
        "streams_max": limits.OVERVIEW_STREAMS_MAX,
        "count_max": limits.OVERVIEW_COUNT_MAX,
        "pending_max": limits.OVERVIEW_PENDING_MAX,
        "silent_s": limits.HEALTH_SILENT_S_MAX,
    }
    [totals] = _read(SQL["totals"], values)
    [endpoints] = _read(SQL["endpoints"], values)
    [processes] = _read(SQL["processes"], values)
    pending = _pending(values)
    dead_lettered = read_in_time(SQL["dead_lettered"], values) or {"dead_lettered": None}
    return {
        **totals,
        "at": at_us,
        "version": VERSION,
        "streams": _read(SQL["streams"], values),
        "backlog": {**pending, **dead_lettered},
        "endpoints": endpoints,
        "processes": processes,
        "health": health and health.json(),
    }


def _pending(values: dict[str, Any]) -> dict[str, Any]:
    """Return the pending deliveries of a zone and how many are due. A large backlog is as it was
    last counted: while it drains, a count passes the index entries of those that ended.
    """
    [last] = _read(SQL["last_counted"], values)
    if last["pending"] >= values["pending_max"]:
        return {**last, "due": None}
    return read_in_time(SQL["pending"], values) or {"pending": None, "due": None}


def _read(statement: LiteralString, values: dict[str, Any]) -> list[dict[str, Any]]:
    return raw_connection().cursor(row_factory=dict_row).execute(statement, values).fetchall()


def read_in_time(statement: LiteralString, values: dict[str, Any]) -> dict[str, Any] | None:
    """Return the only row of a statement, or None if it takes too long."""
    timeout = (f"{limits.OVERVIEW_COUNT_MS_MAX}ms",)
    try:
        with transaction.atomic():
            raw_connection().execute("SELECT set_config('statement_timeout', %s, true)", timeout)
            [found] = _read(statement, values)
            raw_connection().execute("SET LOCAL statement_timeout = 0")  # not for the commit
            return found
    except psycopg.errors.QueryCanceled:
        return None
