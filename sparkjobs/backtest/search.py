"""What a back-test looks for, and the search of segments on the executors, one after another, with
the matcher that forwarders use. Plain module.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from eventhub.base import limits
from eventhub.event.audience import is_visible_in_zone
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import decode
from registrations.filter_source import stored_filter
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.stream_matcher import Matching
from sparkjobs.segment_reader import ALTERED, SegmentFile, SegmentUnreadable
from sparkjobs.tables import INT, TEXT
from sparkjobs.type_hierarchy import DeclaredType, ZoneTypes

# A row for each match (`sequence` is set), and one for each segment (`searched` is).
SEARCH_ROW = pa.schema(
    [
        pa.field("segment_id", INT),
        pa.field("segment", TEXT),  # its UUID
        pa.field("sequence", INT),
        pa.field("appended_at_us", INT),
        pa.field("shown", TEXT),  # of a segment's first matches: the event as JSON
        pa.field("searched", INT),  # events within the range of time
        pa.field("matched", INT),
        pa.field("first_us", INT),  # when the first and the last of them were appended
        pa.field("last_us", INT),
        pa.field("fault", TEXT),  # why it could not be read
    ]
)


class BacktestQuery(NamedTuple):
    """It can be hashed: a worker compiles the filter of a search once."""

    language: str
    filter: str  # as JSON
    types: tuple[DeclaredType, ...]  # of the stream's zone
    system_of: str | None  # of the hub's own stream: the zone whose events are meant
    since_us: int | None  # inclusive
    until_us: int | None  # exclusive
    shown_max: int
    inputs: str
    archive_url: str


class FilterMatch(NamedTuple):
    """A match, fit for the table of matches."""

    sequence: int
    appended_at_us: int
    shown: str | None


def search(segments: Iterator[pa.RecordBatch], wanted: BacktestQuery) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: `segments` with id, uuid and what `SegmentFile` asks for; gives FOUND."""
    matcher = _matcher(wanted.language, wanted.filter, wanted.types)
    for batch in segments:
        for segment in batch.to_pylist():
            yield _searched(segment, matcher, wanted)


@functools.lru_cache(maxsize=4)
def _matcher(language: str, filter: str, types: tuple[DeclaredType, ...]) -> FilterMatcher:
    found = Matching(hierarchy=ZoneTypes(types)).new()
    found.add(0, stored_filter(language, filter).specs())
    return found


def _searched(
    segment: dict[str, Any], matcher: FilterMatcher, wanted: BacktestQuery
) -> pa.RecordBatch:
    try:
        if segment["fault"] is not None:
            raise SegmentUnreadable(segment["fault"], "The manifest says no such file.")
        file = SegmentFile(segment, wanted.inputs, wanted.archive_url)
        if file.altered:
            raise SegmentUnreadable(ALTERED, "Its bytes are not those that were archived.")
        return _looked_through(segment, file, matcher, wanted)
    except SegmentUnreadable as error:
        return _batch(segment, [], {"searched": 0, "matched": 0, "fault": error.fault})


def _looked_through(
    segment: dict[str, Any], file: SegmentFile, matcher: FilterMatcher, wanted: BacktestQuery
) -> pa.RecordBatch:
    found: list[FilterMatch] = []
    searched, first_us, last_us = 0, None, None
    for batch in file.batches():
        rows = _within(batch, wanted)
        if not rows.num_rows:
            continue
        times = pc.min_max(rows.column("appended_at_us")).as_py()
        first_us = times["min"] if first_us is None else min(first_us, times["min"])
        last_us = times["max"] if last_us is None else max(last_us, times["max"])
        searched += _match(rows, matcher, wanted, found)
    about = {"searched": searched, "matched": len(found), "first_us": first_us, "last_us": last_us}
    return _batch(segment, found, about)


def _match(
    rows: pa.RecordBatch, matcher: FilterMatcher, wanted: BacktestQuery, found: list[FilterMatch]
) -> int:
    """The hot loop: adds to `found`; how many events were looked at. Raises Unreadable for what is
    no event.
    """
    sequences, times, _, payloads = (column.to_pylist() for column in rows.columns)
    hidden = 0
    for at, payload in enumerate(payloads):
        try:
            event = decode(payload)
        except (DecodeError, LookupError, ValueError, TypeError) as error:
            raise SegmentUnreadable(
                "unreadable", f"{sequences[at]} is no event: {error}"
            ) from error
        if wanted.system_of is not None and not is_visible_in_zone(event, wanted.system_of):
            hidden += 1
        elif matcher.match(event):
            shown = _shown(event) if len(found) < wanted.shown_max else None
            found.append(FilterMatch(sequences[at], times[at], shown))
    return len(payloads) - hidden


def _within(batch: pa.RecordBatch, wanted: BacktestQuery) -> pa.RecordBatch:
    times = batch.column("appended_at_us")
    if wanted.since_us is not None:
        batch = batch.filter(pc.greater_equal(times, wanted.since_us))
        times = batch.column("appended_at_us")
    if wanted.until_us is not None:
        batch = batch.filter(pc.less(times, wanted.until_us))
    return batch


def _shown(event: Event) -> str:
    """Attributes that are too long for a list are null."""
    attributes = orjson.dumps(event.attributes)
    if len(attributes) > limits.BACKTEST_SHOWN_CHARS_MAX:
        attributes = b"null"
    kind = orjson.dumps(event.type)
    return f'{{"type":{kind.decode()},"attributes":{attributes.decode()}}}'


def _batch(
    segment: dict[str, Any], found: list[FilterMatch], about: dict[str, Any]
) -> pa.RecordBatch:
    """The matches of a segment, and the row that tells of it."""
    one = [None]
    columns = {
        "segment_id": [segment["id"]] * (len(found) + 1),
        "segment": [segment["uuid"]] * (len(found) + 1),
        "sequence": [each.sequence for each in found] + one,
        "appended_at_us": [each.appended_at_us for each in found] + one,
        "shown": [each.shown for each in found] + one,
    }
    for name in ("searched", "matched", "first_us", "last_us", "fault"):
        columns[name] = [None] * len(found) + [about.get(name)]
    return pa.RecordBatch.from_pydict(columns, schema=SEARCH_ROW)
