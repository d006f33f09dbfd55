"""The search of segments for matches of a filter, on executors, with the forwarders' matcher. Plain
module.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from eventhub.base import limits
from eventhub.event.envelope import Event
from registrations.filter_source import stored_filter
from registrations.matching.alternatives import FilterMatcher
from registrations.matching.strategies import StreamStrategy
from sparkjobs.backtest.reading import ReadScope, read_events
from sparkjobs.segment_files import UnreadableSegmentFile
from sparkjobs.tables import INT, TEXT
from sparkjobs.type_hierarchy import DeclaredType, ExportedHierarchy

# One row per match (`sequence` is set), and one per segment (`searched` is set).
SEARCH_ROW = pa.schema(
    [
        pa.field("segment_id", INT),
        pa.field("segment", TEXT),  # its UUID
        pa.field("sequence", INT),
        pa.field("appended_at_us", INT),
        pa.field("sample", TEXT),  # the event as JSON, for a segment's first matches
        pa.field("searched", INT),  # events within the time range
        pa.field("matched", INT),
        pa.field("first_us", INT),  # append times of the first and last searched event
        pa.field("last_us", INT),
        pa.field("fault", TEXT),  # why the segment could not be read
    ]
)


class BacktestQuery(NamedTuple):
    """A back-test's filter, scope and limits; hashable, to compile the filter once per worker."""

    language: str
    filter: str  # as JSON
    types: tuple[DeclaredType, ...]  # of the stream's zone
    system_zone: str | None  # on the stream `system`: the zone whose events are searched
    since_us: int | None  # inclusive
    until_us: int | None  # exclusive
    sample_max: int
    inputs: str
    archive_url: str

    @property
    def scope(self) -> ReadScope:
        return ReadScope(self.inputs, self.archive_url, self.since_us, self.until_us)


class FilterMatch(NamedTuple):
    """One matching event."""

    sequence: int
    appended_at_us: int
    sample: str | None


def search(segments: Iterator[pa.RecordBatch], query: BacktestQuery) -> Iterator[pa.RecordBatch]:
    """Search segments (id, uuid and the columns of `SegmentFile`) and yield SEARCH_ROW, for
    mapInArrow.
    """
    matcher = _matcher(query.language, query.filter, query.types)
    for batch in segments:
        for segment in batch.to_pylist():
            yield _search_segment(segment, matcher, query)


@functools.lru_cache(maxsize=4)
def _matcher(language: str, filter: str, types: tuple[DeclaredType, ...]) -> FilterMatcher:
    found = StreamStrategy(hierarchy=ExportedHierarchy(types)).new()
    found.add(0, stored_filter(language, filter).specs())
    return found


def _search_segment(
    segment: dict[str, Any], matcher: FilterMatcher, query: BacktestQuery
) -> pa.RecordBatch:
    found: list[FilterMatch] = []
    searched, first_us, last_us = 0, None, None
    try:
        for sequence, time_us, _, event in read_events(segment, query.scope, query.system_zone):
            searched += 1
            first_us = time_us if first_us is None else min(first_us, time_us)
            last_us = time_us if last_us is None else max(last_us, time_us)
            if matcher.match(event):
                sample = _sample(event) if len(found) < query.sample_max else None
                found.append(FilterMatch(sequence, time_us, sample))
    except UnreadableSegmentFile as error:
        return _batch(segment, [], {"searched": 0, "matched": 0, "fault": error.fault})
    about = {"searched": searched, "matched": len(found), "first_us": first_us, "last_us": last_us}
    return _batch(segment, found, about)


def _sample(event: Event) -> str:
    """Return an event's type and attributes as JSON; attributes that are too long become null."""
    attributes = orjson.dumps(event.attributes)
    if len(attributes) > limits.BACKTEST_SAMPLE_CHARS_MAX:
        attributes = b"null"
    kind = orjson.dumps(event.type)
    return f'{{"type":{kind.decode()},"attributes":{attributes.decode()}}}'


def _batch(
    segment: dict[str, Any], found: list[FilterMatch], about: dict[str, Any]
) -> pa.RecordBatch:
    """Build the rows of a segment's matches and the segment's own row."""
    own = [None]
    columns = {
        "segment_id": [segment["id"]] * (len(found) + 1),
        "segment": [segment["uuid"]] * (len(found) + 1),
        "sequence": [each.sequence for each in found] + own,
        "appended_at_us": [each.appended_at_us for each in found] + own,
        "sample": [each.sample for each in found] + own,
    }
    for name in ("searched", "matched", "first_us", "last_us", "fault"):
        columns[name] = [None] * len(found) + [about.get(name)]
    return pa.RecordBatch.from_pydict(columns, schema=SEARCH_ROW)
