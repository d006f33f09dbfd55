"""The events that a pattern takes, found in segments on executors: the first half of its back-test.
Plain module.
"""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pyarrow as pa

from eventhub.event.envelope import Event
from registrations.filters.ast import Path
from registrations.filters.values import MISSING
from registrations.pattern_groups.engine import HubEngine
from registrations.patterns.ast import Pattern
from registrations.patterns.subscribers import key_value
from sparkjobs.backtest.pattern_query import PATTERN, PatternQuery
from sparkjobs.backtest.reading import ReadEvent, read_events
from sparkjobs.segment_files import UnreadableSegmentFile
from sparkjobs.tables import INT, TEXT

# One row per event (`payload` is set), and one per segment (`searched` is set).
PATTERN_EVENT = pa.schema(
    [
        pa.field("stream_id", INT),
        pa.field("segment_id", INT),
        pa.field("segment", TEXT),  # its UUID
        pa.field("sequence", INT),
        pa.field("appended_at_us", INT),
        pa.field("clock_us", INT),  # the latest of these of the segment up to this event
        pa.field("shard", INT),  # equal for equal keys of the pattern; 0 without a key
        pa.field("payload", pa.binary()),
        pa.field("searched", INT),  # visible events within the time range
        pa.field("taken", INT),  # of them, those that the pattern takes
        pa.field("first_us", INT),  # append times of the first and last searched event
        pa.field("last_us", INT),
        pa.field("fault", TEXT),  # why the segment could not be read
    ]
)
_ROWS = 4_000  # of a batch: some MB


def pattern_events(
    segments: Iterator[pa.RecordBatch], query: PatternQuery
) -> Iterator[pa.RecordBatch]:
    """Read segments (id, uuid, stream_id and the columns of `SegmentFile`) and yield PATTERN_EVENT,
    for mapInArrow. A segment with a `fault` may have events, of those before it.
    """
    engine = query.engine()
    for batch in segments:
        for segment in batch.to_pylist():
            yield from _of_segment(segment, engine, query)


def _of_segment(
    segment: dict[str, Any], engine: HubEngine, query: PatternQuery
) -> Iterator[pa.RecordBatch]:
    same = {
        "stream_id": segment["stream_id"],
        "segment_id": segment["id"],
        "segment": segment["uuid"],
    }
    searched, found = 0, _Found(engine, query)
    zone = query.zone if segment["stream_id"] == query.system else None
    try:
        for read in read_events(segment, query.scope, zone):
            if 0 < read.event.expires_at_us <= read.appended_at_us:
                continue
            searched += 1
            found.take(read)
            if len(found.rows) >= _ROWS:
                yield _batch(same, found.drain())
    except UnreadableSegmentFile as error:
        yield _batch(same, [{"searched": 0, "taken": 0, "fault": error.fault}])
        return
    yield _batch(same, found.drain())
    times = {"first_us": found.first_us, "last_us": found.clock_us}
    yield _batch(same, [{"searched": searched, "taken": found.taken, **times}])


class _Found:
    """The events of one segment that the pattern takes, and the times of all of them. `rows`: the
    events since the last `drain`.
    """

    def __init__(self, engine: HubEngine, query: PatternQuery) -> None:
        self.rows: list[dict[str, Any]] = []
        self.taken = 0
        self.first_us: int | None = None
        self.clock_us: int | None = None
        self._leaves = engine.leaves if query.selects else None
        compiled = engine.patterns[PATTERN].compiled
        self._per = compiled.per if query.spreads and isinstance(compiled, Pattern) else None

    def take(self, read: ReadEvent) -> None:
        """Add the next event if the pattern takes it."""
        time_us = read.appended_at_us
        self.first_us = time_us if self.first_us is None else min(self.first_us, time_us)
        self.clock_us = time_us if self.clock_us is None else max(self.clock_us, time_us)
        if self._leaves is not None and not self._leaves.match(read.event):
            return
        shard = 0 if self._per is None else _shard(self._per, read.event)
        if shard is not None:
            self.taken += 1
            self.rows.append(
                {
                    "sequence": read.sequence,
                    "appended_at_us": time_us,
                    "clock_us": self.clock_us,
                    "shard": shard,
                    "payload": read.payload,
                }
            )

    def drain(self) -> list[dict[str, Any]]:
        """Return the rows, and begin with none."""
        rows, self.rows = self.rows, []
        return rows


def _shard(per: Path, event: Event) -> int | None:
    """Return a number that is the same in all processes for equal keys; None without a key."""
    key = key_value(per, event)
    if key is MISSING:
        return None
    return crc32(key.encode(errors="surrogatepass")) if isinstance(key, str) else hash(key)


def _batch(same: dict[str, Any], rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Build rows of one segment; what they omit is null."""
    columns = {name: [row.get(name) for row in rows] for name in PATTERN_EVENT.names}
    columns |= {name: [value] * len(rows) for name, value in same.items()}
    return pa.RecordBatch.from_pydict(columns, schema=PATTERN_EVENT)
