"""Reads of deliveries and their tries, as far as the actor may see the endpoint."""

from pathlib import Path
from typing import Any, NamedTuple

from delivery.errors import UnknownDelivery
from eventhub import limits
from eventhub.access.actor import Actor
from eventhub.access.audience import is_shown
from eventhub.access.system import raw_connection
from eventhub.env import read_env
from eventhub.errors import EventHubError
from eventhub.event.json_codec import event_json
from eventhub.event.protobuf_codec import decode
from eventhub.eventlog import queries, streams
from eventhub.eventlog.archive.reader import archive_of
from registrations.errors import UnknownEndpoint
from registrations.owners import heard, require_some_listen, scope

SQL = queries.load("deliveries.sql", Path(__file__).parent / "sql")


class DeliveryId(NamedTuple):
    """What names a delivery. The group may change when the event outlives its own."""

    endpoint: int
    group: int
    segment: int
    sequence: int
    run: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


class DeliveryRow(NamedTuple):
    """A delivery as it stands; times in microseconds."""

    id: DeliveryId
    stream: str
    segment: str  # UUID
    registrations: list[int]
    state: str
    attempts: int
    next_attempt_at_us: int | None  # None when it is finished
    created_at_us: int
    finished_at_us: int | None
    gap_first: int | None  # no event is owed, but word of a gap that ends at the sequence
    gap_why: str | None


class TryRow(NamedTuple):
    """One attempt."""

    number: int
    at_us: int
    outcome: str
    status: int | None
    duration_ms: int
    url: str
    request: str
    response: str


class Wanted(NamedTuple):
    """What part of a list is asked for."""

    state: str | None
    after: DeliveryId | None
    rows_max: int


class Ended(NamedTuple):
    """A part of the deliveries of all endpoints. `after`: behind which the next part begins."""

    rows: list[DeliveryRow]
    after: DeliveryId | None


def list_of_endpoint(
    *, actor: Actor, endpoint_id: int, stream: str | None, wanted: Wanted
) -> list[DeliveryRow]:
    """An endpoint's deliveries, of the newest segments first, of the streams that the actor may
    listen to, or of one of them. Forbidden if there is none.
    """
    shown = heard(actor=actor)
    if stream is not None:
        actor.require_listen(stream, field="stream")
    elif not shown.system:
        require_some_listen(actor=actor)
    connection = raw_connection()
    whose = {"endpoint": endpoint_id, **_whose(actor)}
    if not _first(SQL["has_endpoint"], whose)[0]:
        raise UnknownEndpoint(field="endpoint")
    stream_id = stream and streams.get_stream(connection, actor.zone_id, stream).id
    after = wanted.after or DeliveryId(*[None] * 5)  # type: ignore[arg-type]
    values = {
        **after._asdict(),
        **shown._asdict(),
        "endpoint": endpoint_id,
        "stream": stream_id,
        "state": wanted.state,
        "count": wanted.rows_max,
    }
    return _rows(SQL["of_endpoint"], values)


def list_ended(*, actor: Actor, client: str | None, stream: str | None, wanted: Wanted) -> Ended:
    """Deliveries of all endpoints that ended in a state other than delivered, of the newest
    segments first, of the streams that the actor may listen to, or of one of them; those of the
    actor's own client, of the one that a manager names, or of all. A part may be short, or empty,
    with more behind it. Forbidden as in `list_of_endpoint`.
    """
    shown = heard(actor=actor)
    if stream is not None:
        actor.require_listen(stream, field="stream")
    elif not shown.system:
        require_some_listen(actor=actor)
    after = wanted.after or DeliveryId(*[None] * 5)  # type: ignore[arg-type]
    values = {
        **after._asdict(),
        **shown._asdict(),
        "zone_id": actor.zone_id,
        "client_id": scope(actor=actor, name=client),
        "stream": stream and streams.get_stream(raw_connection(), actor.zone_id, stream).id,
        "state": wanted.state,
        "looks_max": limits.DELIVERIES_LOOKS_MAX,
        "count": wanted.rows_max + 1,
    }
    found = raw_connection().execute(SQL["of_zone"], values).fetchall()
    page = found[: wanted.rows_max]
    rows = [_row(row[:-2]) for row in page]
    more = len(found) > len(page) or (bool(page) and page[-1][-1])
    shown_rows = [row for row, looked in zip(rows, page, strict=True) if looked[-2]]
    return Ended(shown_rows, rows[-1].id if more else None)


def list_of_event(*, actor: Actor, stream: str, sequence: int, wanted: Wanted) -> list[DeliveryRow]:
    """The deliveries of one event by endpoint. Forbidden if the actor may not listen to it."""
    actor.require_listen(stream, field="stream")
    connection = raw_connection()
    found = streams.get_stream(connection, actor.zone_id, stream)
    segments = connection.execute(SQL["segment"], {"stream": found.id, "sequence": sequence})
    row = segments.fetchone()
    after = wanted.after
    values = {
        **_whose(actor),
        "segment": row[0] if row else 0,
        "sequence": sequence,
        "state": wanted.state,
        "endpoint": after.endpoint if after else 0,
        "run": after.run if after else 0,
        "count": wanted.rows_max,
    }
    return _rows(SQL["of_event"], values)


def find_delivery(*, actor: Actor, delivery: DeliveryId) -> DeliveryRow:
    """One delivery. UnknownDelivery if there is none, or it is another client's; Forbidden if the
    actor may not listen to its stream.
    """
    found = _rows(SQL["one"], {**delivery._asdict(), **_whose(actor)})
    if not found:
        raise UnknownDelivery(field="delivery")
    actor.require_listen(found[0].stream, field="delivery")
    return found[0]


def find_event(*, actor: Actor, delivery: DeliveryRow) -> bytes | None:
    """The event of a delivery that `find_delivery` gave, as JSON, wherever it is held; None if it
    is not any more, or not within reach, or for others than the actor.
    """
    payload, _ = _first(SQL["event"], delivery.id._asdict())
    if payload is None and delivery.gap_first is None:
        payload = _from_the_log(actor, delivery)
    if payload is None:
        return None
    event = decode(bytes(payload))
    return event_json(event) if is_shown(event, actor.principal) else None


def _from_the_log(actor: Actor, delivery: DeliveryRow) -> bytes | None:
    connection = raw_connection()
    try:
        stream = streams.get_stream(connection, actor.zone_id, delivery.stream)
        archive = archive_of(read_env().archive_url)
        stored = streams.read_event(connection, stream, delivery.id.sequence, archive)
    except EventHubError:
        return None
    return stored.payload if stored.segment == delivery.segment else None


def list_tries(*, delivery: DeliveryId) -> list[TryRow]:
    """The attempts of a delivery that are kept, the newest first."""
    values = {**delivery._asdict(), "count": limits.PAGE_ITEMS_MAX}
    return [TryRow(*row) for row in raw_connection().execute(SQL["tries"], values).fetchall()]


def _whose(actor: Actor) -> dict[str, int | None]:
    return {"zone_id": actor.zone_id, "client_id": scope(actor=actor)}


def _first(query: Any, values: dict[str, Any]) -> tuple[Any, ...]:
    return raw_connection().execute(query, values).fetchone() or (None, None)


def _rows(query: Any, values: dict[str, Any]) -> list[DeliveryRow]:
    return [_row(row) for row in raw_connection().execute(query, values).fetchall()]


def _row(row: tuple[Any, ...]) -> DeliveryRow:
    name = DeliveryId(*row[:5])
    found = DeliveryRow(name, *row[5:])
    return found if found.state == "pending" else found._replace(next_attempt_at_us=None)
