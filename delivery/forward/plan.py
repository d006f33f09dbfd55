"""Plans the writes for matched events: batches of bounded size, each with the position that it
leads to. Plain module.

An event's endpoints are written in ascending order. Up to `FANOUT_ENDPOINTS_MIN` of them become
rows of their own, if necessary in several batches with a position inside the event. An event with
more endpoints is one batch, a fan-out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delivery.forward.leases import StreamPosition
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor


class SegmentRef(NamedTuple):
    """The keys by which deliveries refer to a segment."""

    segment_id: int
    partition_id: int


class MatchedEvent(NamedTuple):
    """An event and the endpoints that it is delivered to; `registrations` is never empty."""

    cursor: Cursor  # of the event
    segment: SegmentRef
    registrations: dict[int, list[int]]  # endpoint -> registrations that matched, ascending
    version_ids: Mapping[
        int, list[int]
    ] = {}  # endpoint -> versions whose reports and variables count
    lanes: Mapping[int, int] = {}  # endpoint ordered by key -> lane


class DeliveryRow(NamedTuple):
    """A delivery to be written."""

    segment: SegmentRef
    sequence: int
    endpoint_id: int
    registrations: list[int]
    version_ids: list[int] | None = None  # versions whose reports and variables count; None: none
    lane: int | None = None  # of an endpoint that is ordered by key


class DeliveryBatch(NamedTuple):
    """The rows that one statement writes. No rows: only the checkpoint."""

    position: StreamPosition
    rows: list[DeliveryRow]
    fanout: bool = False  # the rows are one event's, to be written as a fan-out

    @property
    def registrations(self) -> int:
        """The number of registration ids in the rows."""
        return sum(len(row.registrations) for row in self.rows)


def batches(
    start: StreamPosition, matched: Sequence[MatchedEvent], last: Cursor
) -> Iterator[DeliveryBatch]:
    """Yield the batches that move a stream from a position to the last event of a batch read, in
    order.

    `matched` holds those of the batch's events that matched something, in order.
    """
    rows: list[DeliveryRow] = []
    registrations = 0  # named by the rows
    position_reached = written = start  # `position_reached`: where `rows` would lead
    for event in matched:
        event_rows = _rows(event, start)
        fanout = len(event_rows) > limits.FANOUT_ENDPOINTS_MIN
        for row in [] if fanout else event_rows:
            if rows and _is_full(len(rows), registrations + len(row.registrations)):
                written = position_reached
                yield DeliveryBatch(written, rows)
                rows, registrations = [], 0
            rows.append(row)
            registrations += len(row.registrations)
            position_reached = StreamPosition(*_before(event.cursor), row.endpoint_id)
        if fanout and rows:
            yield DeliveryBatch(position_reached, rows)
            rows, registrations = [], 0
        position_reached = StreamPosition(*event.cursor)
        if fanout:
            written = position_reached
            yield DeliveryBatch(written, event_rows, fanout=True)
    if rows or written != StreamPosition(*last):
        yield DeliveryBatch(StreamPosition(*last), rows)


def _is_full(rows: int, registrations: int) -> bool:
    """Return True if a statement has no room for another row; one row may name any number."""
    return (
        rows >= limits.DELIVERIES_PER_STATEMENT_MAX
        or registrations > limits.REGISTRATIONS_PER_STATEMENT_MAX
    )


def _rows(event: MatchedEvent, start: StreamPosition) -> list[DeliveryRow]:
    """Return the event's deliveries, without those written before the stream stopped inside it."""
    is_inside = event.cursor.sequence == start.sequence + 1
    written_through = start.endpoint_id if is_inside else 0
    return [
        DeliveryRow(
            event.segment,
            event.cursor.sequence,
            endpoint_id,
            event.registrations[endpoint_id],
            event.version_ids.get(endpoint_id),
            event.lanes.get(endpoint_id),
        )
        for endpoint_id in sorted(event.registrations)
        if endpoint_id > written_through
    ]


def _before(cursor: Cursor) -> Cursor:
    """Return the cursor before an event; before a segment's first event it names none."""
    return Cursor(cursor.segment, cursor.sequence - 1)
