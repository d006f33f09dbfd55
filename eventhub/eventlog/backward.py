"""Reads the events of a stream backward, the newest first, as far as they are in the database. SQL
module.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import psycopg

from eventhub.base import limits
from eventhub.postgresql import queries
from eventhub.postgresql.rows import cursor_of

SQL = queries.load("eventhub/eventlog/sql/backward.sql")


class Period(NamedTuple):
    """A period of time, both ends included; None: without an end."""

    since: datetime | None = None
    until: datetime | None = None


class PastEvent(NamedTuple):
    """A stored event."""

    sequence: int
    at_us: int
    payload: bytes


class _PastSegment(NamedTuple):
    id: int
    partition_id: int
    first: int


def events_before(
    connection: psycopg.Connection[Any], stream_id: int, before: int, period: Period
) -> Iterator[PastEvent]:
    """Yield the events before a sequence, the newest first, without the segments that have none of
    the period; single events may be outside of it. The caller bounds how many it takes.
    """
    values = {"stream_id": stream_id, **period._asdict(), "segments_max": limits.PAGE_ITEMS_MAX}
    while True:
        query = cursor_of(connection, _PastSegment)
        segments = query.execute(SQL["segments_before"], {**values, "before": before}).fetchall()
        for segment in segments:
            yield from _of_segment(connection, segment, before)
            before = segment.first
        if len(segments) < limits.PAGE_ITEMS_MAX:
            return


def _of_segment(
    connection: psycopg.Connection[Any], segment: _PastSegment, before: int
) -> Iterator[PastEvent]:
    values = {"partition_id": segment.partition_id, "segment_id": segment.id}
    most = limits.BACKWARD_READ_EVENTS
    while True:
        query = cursor_of(connection, PastEvent)
        asked = {**values, "before": before, "events_max": most}
        found = query.execute(SQL["events_before"], asked).fetchall()
        yield from found
        if len(found) < most:
            return
        before = found[-1].sequence
