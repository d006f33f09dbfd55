"""Streams with archived segments, for the tests of the archive."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from eventhub.base.clock import SystemClock
from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog import streams
from eventhub.eventlog.archive.archiver import ArchiveResult, open_archiver
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.drafts import Draft
from eventhub.eventlog.stored import ArchivedSegment
from eventhub.eventlog.streams import StreamPolicy
from eventhub.supervisor.hub import HOME
from tests.integration.eventlog_world import append_now

EVERYTHING = SegmentFilter()
TIME_US = 1_700_000_000_000_000


def archived_stream(url: str, name: str, *, zone_id: int = 1, events_max: int = 100) -> int:
    """Create a stream with the policy `archive`; return its id."""
    with psycopg.connect(url) as connection:
        policy = StreamPolicy(segment_events_max=events_max, archive=True)
        made = streams.create_stream(connection, zone_id, name, policy)
        assert made is not None
        return made.id


def event(number: int, *, size: int = 20) -> Event:
    """Build an event with a value in every column."""
    attributes: dict[str, Any] = {
        "n": number,
        "price": number / 2,
        "city": f"city {number % 5}",
        "paid": number % 2 == 0,
        "lines": [{"sku": number}],
        "mixed": number if number % 2 else str(number),
    }
    return Event(
        "shop",
        f"order.{number % 3}",
        attributes,
        id=EventId("till", TIME_US, number, 7 + number % 2),
        source="shop",
        name=f"Order {number}",
        version="2",
        body=b"x" * size,
        content_type="x/y",
        node="node-1",
        priority=number % 10 - 5,
        time_us=TIME_US + number,
        expires_at_us=TIME_US * 2,
        key=f"key-{number % 10}",
        correlation="correlation",
        cause="cause",
    )


def fill(url: str, stream_id: int, count: int, *, begin: int = 1, size: int = 20) -> list[bytes]:
    """Append events numbered from `begin` on; return their stored bytes."""
    made = [encode(event(number, size=size)) for number in range(begin, begin + count)]
    put(url, stream_id, made)
    return made


def put(url: str, stream_id: int, payloads: list[bytes]) -> None:
    """Append stored bytes, each on a channel of its own and the default one."""
    drafts = [Draft(stream_id, (1 << 63) | at, payload) for at, payload in enumerate(payloads)]
    for at in range(0, len(drafts), 1_000):
        append_now(url, *drafts[at : at + 1_000])


def archive(
    url: str, place: str | Path, choice: SegmentFilter = EVERYTHING, *, retry_failed: bool = False
) -> list[ArchiveResult]:
    """Run the archiver once."""
    with open_archiver(str(place), url, SystemClock()) as archiver:
        return list(archiver.run(choice, retry_failed=retry_failed))


def archived(url: str, stream_id: int) -> list[ArchivedSegment]:
    """Return the stream's archived segments, in order."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT uuid::text, archive_path, first, last FROM segments"
            " WHERE stream_id = %s AND archive_path IS NOT NULL ORDER BY first, id",
            (stream_id,),
        ).fetchall()
    return [ArchivedSegment(*row) for row in rows]


def free_lease(url: str) -> None:
    """Expire the lease of the holder."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE archiver SET until = now() - interval '1 second'")


def files(place: Path) -> list[str]:
    """Return the paths of all files of a local archive, except unfinished ones."""
    found = (path for path in place.rglob("*") if path.is_file())
    return sorted(path.name for path in found if path.parent.name != "_unfinished")


@contextmanager
def crashing(module: str, url: str) -> Iterator[Callable[[Path, str], list[str]]]:
    """Start a server of crashing processes (archive_crash.py). Yield a function from (folder,
    moment) to the lines of the answer, of which the last is the exit status.
    """
    with subprocess.Popen(
        [sys.executable, "-m", f"tests.integration.{module}", url],
        cwd=HOME,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        commands, answers = process.stdin, process.stdout
        assert commands is not None and answers is not None

        def ask(place: Path, moment: str) -> list[str]:
            print(place / moment, file=commands, flush=True)
            lines = []
            for line in answers:
                lines += re.findall(r"^(?:-?\d+|\d+ \w+)$", line)  # the rest is of the log
                if re.match(r"-?\d+$", line):
                    break
            return lines

        yield ask
        commands.close()
