"""The events of one segment within a back-test's time range, read on executors. Plain module."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from eventhub.event.audience import is_visible_in_zone
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import decode
from sparkjobs.segment_files import ALTERED, SegmentFile, UnreadableSegmentFile


class ReadScope(NamedTuple):
    """Where the segments are, and the append times that are read."""

    inputs: str
    archive_url: str
    since_us: int | None  # inclusive
    until_us: int | None  # exclusive


class ReadEvent(NamedTuple):
    """An event of a segment. `payload`: its stored bytes."""

    sequence: int
    appended_at_us: int
    payload: bytes
    event: Event


def read_events(
    segment: dict[str, Any], scope: ReadScope, system_zone: str | None
) -> Iterator[ReadEvent]:
    """Yield the events of a segment (the columns of `SegmentFile` and its `fault`) in order.
    `system_zone`: on the stream `system`, the zone whose events are read. Raises
    UnreadableSegmentFile, also after some events.
    """
    if segment["fault"] is not None:
        raise UnreadableSegmentFile(segment["fault"], "The manifest is missing or wrong.")
    file = SegmentFile(segment, scope.inputs, scope.archive_url)
    if file.altered:
        raise UnreadableSegmentFile(ALTERED, "The file's SHA-256 differs from the manifest's.")
    for batch in file.batches():
        yield from _decoded(_within(batch, scope), system_zone)


def _within(batch: pa.RecordBatch, scope: ReadScope) -> pa.RecordBatch:
    times = batch.column("appended_at_us")
    if scope.since_us is not None:
        batch = batch.filter(pc.greater_equal(times, scope.since_us))
        times = batch.column("appended_at_us")
    if scope.until_us is not None:
        batch = batch.filter(pc.less(times, scope.until_us))
    return batch


def _decoded(rows: pa.RecordBatch, system_zone: str | None) -> Iterator[ReadEvent]:
    """Yield the visible events of a batch. This is the hot loop."""
    sequences, times, _, payloads = (column.to_pylist() for column in rows.columns)
    for sequence, time_us, payload in zip(sequences, times, payloads, strict=True):
        try:
            event = decode(payload)
        except (DecodeError, LookupError, ValueError, TypeError) as error:
            raise UnreadableSegmentFile(
                "unreadable", f"Event {sequence} cannot be decoded: {error}"
            ) from error
        if system_zone is None or is_visible_in_zone(event, system_zone):
            yield ReadEvent(sequence, time_us, payload, event)
