"""What to write for matched events: pieces of bounded size, each with the place it leads to.
Plain module.

An event's endpoints are written in ascending order. Up to `FANOUT_ENDPOINTS_MIN` of them are rows
of their own, if need be in several pieces with a place inside the event; beyond it the event is one
piece, a fan-out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delivery.forward.leases import Place
from eventhub.base import limits
from eventhub.eventlog.stored import Cursor


class Where(NamedTuple):
    """What deliveries call a segment."""

    segment_id: int
    partition_id: int


class Due(NamedTuple):
    """An event and the endpoints it is owed to; `owed` is never empty."""

    cursor: Cursor  # of the event
    where: Where
    owed: dict[int, list[int]]  # endpoint -> registrations that matched, ascending
    shapes: Mapping[int, list[int]] = {}  # endpoint -> versions whose reports shape the event


class Row(NamedTuple):
    """One delivery."""

    where: Where
    sequence: int
    endpoint_id: int
    registrations: list[int]
    shape: list[int] | None = None  # versions whose reports say what is told; None: the event


class Piece(NamedTuple):
    """What one statement writes. No rows: the checkpoint alone."""

    to: Place
    rows: list[Row]
    fanout: bool = False  # the rows are one event's, to be written as a fan-out

    @property
    def registrations(self) -> int:
        """How many names of registrations the rows carry."""
        return sum(len(row.registrations) for row in self.rows)


def pieces(start: Place, due: Sequence[Due], last: Cursor) -> Iterator[Piece]:
    """The pieces that bring a stream from a place to the last event of a batch, in order.

    `due` holds the batch's events that matched something, in order.
    """
    rows: list[Row] = []
    registrations = 0  # that the rows name
    reached = written = start  # `reached`: what `rows` would bring the stream to
    for event in due:
        own = _rows(event, start)
        fanout = len(own) > limits.FANOUT_ENDPOINTS_MIN
        for row in [] if fanout else own:
            if rows and _full(len(rows), registrations + len(row.registrations)):
                written = reached
                yield Piece(written, rows)
                rows, registrations = [], 0
            rows.append(row)
            registrations += len(row.registrations)
            reached = Place(*_before(event.cursor), row.endpoint_id)
        if fanout and rows:
            yield Piece(reached, rows)
            rows, registrations = [], 0
        reached = Place(*event.cursor)
        if fanout:
            written = reached
            yield Piece(written, own, fanout=True)
    if rows or written != Place(*last):
        yield Piece(Place(*last), rows)


def _full(rows: int, registrations: int) -> bool:
    """True if no other row goes into a statement; one row alone may name any number."""
    return (
        rows >= limits.DELIVERIES_PER_STATEMENT_MAX
        or registrations > limits.REGISTRATIONS_PER_STATEMENT_MAX
    )


def _rows(event: Due, start: Place) -> list[Row]:
    """The event's deliveries, without those that were written before the stream stopped inside."""
    inside = event.cursor.sequence == start.sequence + 1
    done = start.endpoint_id if inside else 0
    return [
        Row(
            event.where,
            event.cursor.sequence,
            endpoint_id,
            event.owed[endpoint_id],
            event.shapes.get(endpoint_id),
        )
        for endpoint_id in sorted(event.owed)
        if endpoint_id > done
    ]


def _before(cursor: Cursor) -> Cursor:
    """The place before an event; at the beginning of a segment nothing of it is seen."""
    return Cursor(cursor.segment, cursor.sequence - 1)
