"""The scan of all events: executors read each segment once and return facts about it in narrow
columns. Payloads never leave the executor. Spark module.

A row of facts has exactly one of its structures; the others are null.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from eventhub.event import event_pb2, protobuf_codec
from sparkjobs.audit.producer_numbers import NumberRange, ProducerNumbers
from sparkjobs.audit.sequences import SequenceCheck, SequenceRange
from sparkjobs.expected_deliveries import (
    DeliveryMatcher,
    ExecutorPaths,
    ExpectedDelivery,
    StreamInZone,
    matcher_of,
)
from sparkjobs.segment_files import ALTERED, NONE, SegmentFile, UnreadableSegmentFile

UNDECODABLE, UNREADABLE = "undecodable", "unreadable"
HOUR_US = 3_600_000_000
_ROWS = 8_192  # of facts in one batch
_INT, _TEXT = pa.int64(), pa.string()


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


# A delivery that must exist: an event, already forwarded, that matches an endpoint's registrations.
EXPECTED = _struct(
    stream_id=_INT,
    segment_id=_INT,
    sequence=_INT,
    endpoint_id=_INT,
    registrations=pa.list_(_INT),
    appended_at_us=_INT,
    doubt=_TEXT,  # expected_deliveries.Doubt; null: none
)
# A fault in a segment's rows.
FAULT = _struct(stream_id=_INT, segment_id=_INT, kind=_TEXT, first=_INT, last=_INT, evidence=_TEXT)
# Sequences that could not be checked.
UNCHECKED = _struct(segment_id=_INT, first=_INT, last=_INT)
# Events by the hour in which they were appended.
HOUR = _struct(stream_id=_INT, hour_us=_INT, events=_INT)
# producer_numbers.NumberRange
NUMBER_RANGE = _struct(
    stream_id=_INT,
    client=_TEXT,
    incarnation=_INT,
    window=_INT,
    timed=pa.bool_(),
    low=_INT,
    high=_INT,
    first=_INT,
    last=_INT,
    from_us=_INT,
    to_us=_INT,
)
# A segment that was read, perhaps only in part.
READ = _struct(stream_id=_INT, segment_id=_INT, events=_INT)

FACTS = pa.schema(
    [
        pa.field("expected", EXPECTED),
        pa.field("fault", FAULT),
        pa.field("unchecked", UNCHECKED),
        pa.field("hour", HOUR),
        pa.field("number_range", NUMBER_RANGE),
        pa.field("read", READ),
    ]
)


class SegmentToScan(NamedTuple):
    """A segment to read, and up to where its stream has been forwarded."""

    id: int
    stream_id: int
    zone_id: int
    first: int
    last: int
    bytes: int | None
    forwarded: int | None  # None: never
    fault: str | None  # of the manifest


def segments_to_scan(segments: DataFrame, streams: DataFrame) -> DataFrame:
    """Return a row for each segment that contains events and can be read."""
    of_stream = streams.select(sf.col("id").alias("stream_id"), "zone_id", "forwarded")
    return (
        segments.where((sf.col("source") != NONE) & (sf.col("last") >= sf.col("first")))
        .join(sf.broadcast(of_stream), "stream_id")
        .select(
            *("id", "stream_id", "zone_id", "first", "last", "bytes", "forwarded", "source"),
            *("file", "file_bytes", "file_sha256", "fault"),
        )
    )


def scan(segments: DataFrame, paths: ExecutorPaths, archive_url: str) -> DataFrame:
    """Return the FACTS of `segments_to_scan`."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from facts_of(row, paths, archive_url)

    return segments.mapInArrow(read, from_arrow_schema(FACTS))


def facts_of(
    row: dict[str, Any], paths: ExecutorPaths, archive_url: str
) -> Iterator[pa.RecordBatch]:
    """Scan one segment and yield its FACTS."""
    segment = SegmentToScan(**{name: row[name] for name in SegmentToScan._fields})
    matcher = matcher_of(paths, StreamInZone(segment.stream_id, segment.zone_id))
    if matcher is not None:
        matcher.load(segment.first, segment.last)
    scanned = _SegmentScan(segment, matcher)
    try:
        file = SegmentFile(row, paths.inputs, archive_url)
        for batch in file.batches():
            yield from scanned.take(batch)
    except UnreadableSegmentFile as error:
        yield from scanned.fail(error)
    else:
        yield from scanned.finish(altered=file.altered)


class _SegmentScan:
    """The state of one segment's scan."""

    def __init__(self, segment: SegmentToScan, matcher: DeliveryMatcher | None) -> None:
        self._segment = segment
        self._matcher = matcher
        self._sequences = SequenceCheck(segment.first, segment.last)
        self._numbers = ProducerNumbers()
        self._hours: dict[int, int] = {}
        self._bytes = 0
        self._undecodable: list[tuple[int, str]] = []
        self._expected = _ExpectedRows(segment)

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Check a batch of `tables.EVENTS`. Raises UnreadableSegmentFile."""
        if any(column.null_count for column in batch.columns):
            raise UnreadableSegmentFile(UNREADABLE, "A row lacks a value.")
        sequences, times, _, payloads = batch.columns
        fresh = self._sequences.take(sequences.to_numpy())
        self._bytes += int(_lengths(payloads)[fresh].sum())
        self._note_hours(times.to_numpy()[fresh])
        rows = zip(sequences.to_pylist(), times.to_pylist(), payloads.to_pylist(), strict=True)
        for (sequence, time_us, payload), is_fresh in zip(rows, fresh.tolist(), strict=True):
            if is_fresh:
                self._check(sequence, time_us, payload)
            if len(self._expected) >= _ROWS:
                yield self._expected.drain()

    def _check(self, sequence: int, time_us: int, payload: bytes) -> None:
        matcher = self._matcher if sequence <= (self._segment.forwarded or 0) else None
        try:
            message = event_pb2.Event.FromString(payload)
            event = None if matcher is None else protobuf_codec.decode(payload)
        except (DecodeError, LookupError, ValueError, TypeError) as error:
            self._undecodable.append((sequence, str(error)))
            return
        if message.HasField("producer_id"):
            self._numbers.add(message.producer_id, sequence, time_us)
        if matcher is not None and event is not None:
            for delivery in matcher.expected(event, sequence, time_us):
                self._expected.add(sequence, time_us, delivery)

    def _note_hours(self, times: np.ndarray[Any, Any]) -> None:
        for hour, count in zip(*np.unique(times // HOUR_US, return_counts=True), strict=True):
            self._hours[int(hour)] = self._hours.get(int(hour), 0) + int(count)

    def fail(self, error: UnreadableSegmentFile) -> Iterator[pa.RecordBatch]:
        """Report that the segment could not be read to its end; this hides its other faults."""
        whole = SequenceRange(self._segment.first, self._segment.last)
        yield from self._close([(self._segment.fault or error.fault, whole, error.detail)])

    def finish(self, *, altered: bool) -> Iterator[pa.RecordBatch]:
        """Report wrong rows, or, if all rows are right, that the bytes around them changed."""
        whole = SequenceRange(self._segment.first, self._segment.last)
        sealed = f"Sequences {whole.first:,} to {whole.last:,} were stored, each once."
        faults = [(kind, each, sealed) for kind, each in self._sequences.faults()]
        for sequence, why in self._undecodable:
            faults.append((UNDECODABLE, SequenceRange(sequence, sequence), why))
        of_manifest = self._segment.fault
        if not faults and of_manifest:
            faults.append((of_manifest, whole, "All rows are present."))
        elif not faults and altered:
            faults.append((ALTERED, whole, "All rows are present; the file's SHA-256 differs."))
        elif not faults and self._segment.bytes not in (None, self._bytes):
            sizes = f"The events have {self._bytes:,} bytes; {self._segment.bytes:,} were sealed."
            faults.append((ALTERED, whole, sizes))
        yield from self._close(faults)

    def _close(self, faults: list[tuple[str, SequenceRange, str]]) -> Iterator[pa.RecordBatch]:
        stream, segment = self._segment.stream_id, self._segment.id
        unchecked = self._sequences.missing()
        unchecked += [SequenceRange(sequence, sequence) for sequence, _ in self._undecodable]
        if len(self._expected):
            yield self._expected.drain()
        rows = [(stream, segment, kind, *each, evidence) for kind, each, evidence in faults]
        yield from _facts("fault", FAULT, rows)
        yield from _facts("unchecked", UNCHECKED, [(segment, *each) for each in unchecked])
        hours = [(stream, hour * HOUR_US, count) for hour, count in sorted(self._hours.items())]
        yield from _facts("hour", HOUR, hours)
        ranges: Iterable[NumberRange] = self._numbers.ranges()
        yield from _facts("number_range", NUMBER_RANGE, ((stream, *each) for each in ranges))
        yield from _facts("read", READ, [(stream, segment, self._sequences.events)])


class _ExpectedRows:
    """Buffered rows of EXPECTED, by column. `registrations` are those of all rows, concatenated."""

    def __init__(self, segment: SegmentToScan) -> None:
        self._segment = segment
        self._clear()

    def _clear(self) -> None:
        self._sequences: list[int] = []
        self._times: list[int] = []
        self._endpoints: list[int] = []
        self._ends: list[int] = [0]
        self._registrations: list[int] = []
        self._doubts: list[str | None] = []

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, sequence: int, time_us: int, delivery: ExpectedDelivery) -> None:
        self._sequences.append(sequence)
        self._times.append(time_us)
        self._endpoints.append(delivery.endpoint_id)
        self._registrations += delivery.registrations
        self._ends.append(len(self._registrations))
        self._doubts.append(delivery.doubt)

    def drain(self) -> pa.RecordBatch:
        """Return the buffered rows, and empty the buffer."""
        count = len(self)
        flat = pa.array(self._registrations, _INT)
        columns = [
            pa.array(np.full(count, self._segment.stream_id)),
            pa.array(np.full(count, self._segment.id)),
            pa.array(self._sequences, _INT),
            pa.array(self._endpoints, _INT),
            pa.ListArray.from_arrays(pa.array(self._ends, pa.int32()), flat),
            pa.array(self._times, _INT),
            pa.array(self._doubts, _TEXT),
        ]
        self._clear()
        return _only("expected", pa.StructArray.from_arrays(columns, fields=list(EXPECTED)))


def _facts(
    name: str, kind: pa.StructType, rows: Iterable[tuple[Any, ...]]
) -> Iterator[pa.RecordBatch]:
    batch: list[dict[str, Any]] = []
    names = [field.name for field in kind]
    for row in rows:
        batch.append(dict(zip(names, row, strict=True)))
        if len(batch) >= _ROWS:
            yield _only(name, pa.array(batch, kind))
            batch = []
    if batch:
        yield _only(name, pa.array(batch, kind))


def _only(name: str, facts: pa.Array) -> pa.RecordBatch:
    """Build rows of FACTS that have the one structure `name`."""
    columns = [facts if field.name == name else pa.nulls(len(facts), field.type) for field in FACTS]
    return pa.RecordBatch.from_arrays(columns, schema=FACTS)


def _lengths(payloads: pa.Array) -> np.ndarray[Any, Any]:
    lengths: np.ndarray[Any, Any] = pc.binary_length(payloads).to_numpy()
    return lengths
