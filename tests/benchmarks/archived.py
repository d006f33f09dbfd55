"""The command `python -m tests.benchmarks.archived`: creates streams with archived segments, reads
them, or archives; prints figures as JSON. It runs in a process of its own, like a web process or an
archiver.
"""

import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import uvloop

from eventhub.base import logs
from eventhub.base.clock import SystemClock
from eventhub.base.env import read_env
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.append import append_in
from eventhub.eventlog.archive.archiver import open_archiver
from eventhub.eventlog.archive.catalog import DueSegment, SegmentFilter
from eventhub.eventlog.archive.database_segment import DatabaseSegmentReader
from eventhub.eventlog.archive.folder import ArchiveFolder
from eventhub.eventlog.archive.reader import Archive
from eventhub.eventlog.archive.write import write_segment
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.log import Log
from eventhub.eventlog.read import ReadLimits
from eventhub.eventlog.stored import Cursor
from eventhub.eventlog.streams import StreamPolicy
from tests.benchmarks.load.http import cpu_time_s

PAGE = ReadLimits(512, 4 * 1024 * 1024)
# the zone of the benchmark's key; the first zone where nothing was asked for a key
ZONE = "SELECT COALESCE((SELECT id FROM zones WHERE name = 'bench'), 1)"
BATCH = 1_000
MASK = 1 << 63
KIB = 1024


def event(number: int) -> bytes:
    """Return about 300 bytes with ten attributes, four of which change."""
    attributes: dict[str, Any] = {f"field_{at}": f"value {at}" for at in range(6)}
    attributes |= {"n": number, "load": number / 7, "site": f"site {number % 50}", "up": True}
    return encode(Event("telecom", "link.alarm", attributes, body=b"x" * 80, content_type="x/y"))


def prepare(place: str, rows: int, names: str = "archive") -> dict[str, float]:
    """Create two streams of so many events in sealed segments; the segments of one are archived and
    dropped.
    """
    found: dict[str, float] = {}
    for name, kept in (("archived", False), ("hot", True)):
        with psycopg.connect(read_env().database_url) as connection:
            policy = StreamPolicy(segment_events_max=max(rows // 4, 1), archive=not kept)
            [zone_id] = connection.execute(ZONE).fetchone() or ()
            made = streams.create_stream(connection, zone_id, f"{names}.{name}", policy)
            assert made is not None
            found[name] = made.id
            for begin in range(0, rows, BATCH):
                numbers = range(begin, min(begin + BATCH, rows))
                append_in(connection, [Draft(made.id, MASK, event(n)) for n in numbers])
    with open_archiver(place, read_env().database_url, SystemClock()) as archiver:
        assert all(not done.reason for done in archiver.run(SegmentFilter()))
    with psycopg.connect(read_env().database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE segments SET tier = 'archived' WHERE stream_id = %s AND archive_path IS NOT"
            " NULL",
            (found["archived"],),
        )
        connection.execute(
            "DELETE FROM events USING segments s WHERE s.id = segment_id AND s.tier = 'archived'"
        )
        connection.execute("VACUUM ANALYZE events")
    return found


async def read(place: str, stream_id: int, seconds: float) -> dict[str, float]:
    """Read page after page like a follower that catches up, and start again at the end."""
    url = read_env().database_url
    with psycopg.connect(url) as connection:
        [first] = connection.execute(
            "SELECT uuid::text FROM segments WHERE stream_id = %s ORDER BY first LIMIT 1",
            (stream_id,),
        ).fetchall()
    async with Log.open(database_url=url, archive=Archive(place)) as log:
        read_page = log.reader(stream_id)
        cursor = begin = Cursor(first[0], 0)
        count, began_s, cpu_s = 0, time.perf_counter(), cpu_time_s()
        while time.perf_counter() - began_s < seconds:
            page = await read_page(cursor, PAGE)
            count += len(page)
            cursor = page[-1].cursor if page else begin
        took_s = time.perf_counter() - began_s
    used_s = cpu_time_s() - cpu_s
    return {"per_s": count / took_s, "cpu_us": used_s / max(count, 1) * 1e6}


def write(stream_id: int, seconds: float) -> dict[str, float]:
    """Archive one segment after the other."""
    with (
        tempfile.TemporaryDirectory() as folder,
        DatabaseSegmentReader(read_env().database_url) as rows,
    ):
        place = ArchiveFolder(folder)

        def one(segment: DueSegment) -> int:
            return write_segment(place, segment, lambda: rows.pages(segment)).file_bytes

        return _again(one, stream_id, seconds)


def plain(stream_id: int, seconds: float) -> dict[str, float]:
    """Write the four stored columns unchanged."""
    with (
        tempfile.TemporaryDirectory() as folder,
        DatabaseSegmentReader(read_env().database_url) as rows,
    ):

        def one(segment: DueSegment) -> int:
            file = Path(folder) / "plain.parquet"
            writer = None
            for page in rows.pages(segment):
                writer = writer or pq.ParquetWriter(file, page.schema, compression="zstd")
                writer.write_table(page)
            if writer:
                writer.close()
            return file.stat().st_size

        return _again(one, stream_id, seconds)


def _again(work: Callable[[DueSegment], int], stream_id: int, seconds: float) -> dict[str, float]:
    segments = _sealed(stream_id)
    events = size = turns = 0
    began_s, cpu_s = time.perf_counter(), cpu_time_s()
    while turns == 0 or time.perf_counter() - began_s < seconds:
        segment = segments[turns % len(segments)]
        size += work(segment)
        events += segment.last - segment.first + 1
        turns += 1
    took_s, used_s = time.perf_counter() - began_s, cpu_time_s() - cpu_s
    return {
        "per_s": events / took_s,
        "cpu_us": used_s / events * 1e6,
        "file_bytes": size / events,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB,
    }


def _sealed(stream_id: int) -> list[DueSegment]:
    with psycopg.connect(read_env().database_url) as connection:
        rows = connection.execute(
            "SELECT id, uuid::text, first, last, bytes FROM segments"
            " WHERE stream_id = %s AND last IS NOT NULL ORDER BY first",
            (stream_id,),
        ).fetchall()
    return [DueSegment._make((*row, stream_id, 1, "hot")) for row in rows]


def main() -> None:
    logs.configure("text", "warning")
    place, what, *more = json.loads(sys.argv[1])
    if what == "read":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures = runner.run(read(place, *more))
    else:
        figures = prepare(place, *more) if what == "prepare" else _WRITERS[what](*more)
    print(json.dumps(figures))


_WRITERS = {"write": write, "plain": plain}

if __name__ == "__main__":
    main()
