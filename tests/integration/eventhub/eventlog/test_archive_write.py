"""Archiving sealed segments: the files, the due segments, and failures."""

import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from eventhub.base.clock import SystemClock
from eventhub.event.envelope import Event
from eventhub.event.protobuf_codec import encode
from eventhub.eventlog.archive import catalog, manifest
from eventhub.eventlog.archive.archiver import ArchiveLeaseLost, open_archiver
from eventhub.eventlog.archive.catalog import SegmentFilter
from eventhub.eventlog.streams import StreamPolicy, create_stream
from tests.integration.archive_world import (
    TIME_US,
    archive,
    archived,
    archived_stream,
    event,
    files,
    fill,
    free_lease,
    put,
)
from tests.integration.eventlog_world import execute, log_database

database = pytest.fixture(log_database)
_numbers = itertools.count(1)


def only_file(place: Path) -> Path:
    [found] = place.rglob("zone=*/**/*.parquet")
    return found


def only_manifest(place: Path) -> manifest.SegmentManifest:
    [found] = place.rglob("zone=*/**/*.json")
    return manifest.load(found.read_bytes(), found.name)


def test_a_sealed_segment_is_archived_with_every_byte_and_column(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=100)
    payloads = fill(database, stream, 130)
    [done] = archive(database, tmp_path)
    assert (done.events, done.reason) == (100, "")
    [segment] = archived(database, stream)
    assert segment.path == f"zone=1/stream=orders/{1:020d}-{segment.uuid}.json"
    table = pq.read_table(only_file(tmp_path), partitioning=None)
    assert table.column("sequence").to_pylist() == list(range(1, 101))
    assert table.column("payload").to_pylist() == payloads[:100]
    row = table.slice(2, 1).to_pylist()[0]
    sent = event(3)
    assert {name: row[name] for name in ("domain", "type", "name", "version", "key", "node")} == {
        name: getattr(sent, name) for name in ("domain", "type", "name", "version", "key", "node")
    }
    assert row["mask"] == (1 << 63) | 2
    assert (row["priority"], row["source"], row["text_id"]) == (sent.priority, "shop", None)
    assert (row["correlation"], row["cause"]) == ("correlation", "cause")
    assert [row[f"producer_{part}"] for part in ("client", "incarnation", "number")] == [
        *("till", 8, 3)
    ]
    assert row["time"].timestamp() * 1_000_000 == TIME_US + 3
    assert json.loads(row["attributes"]) == sent.attributes
    assert row["attributes_int"] == {"n": 3, "mixed": 3}
    assert row["attributes_float"] == {"price": 1.5}
    assert row["attributes_text"] == {"city": "city 3", "mixed": None}
    assert row["attributes_bool"] == {"paid": False}


def test_the_manifest_describes_the_file(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", zone_id=7, events_max=100)
    payloads = fill(database, stream, 100)
    archive(database, tmp_path)
    made, file = only_manifest(tmp_path), only_file(tmp_path)
    content = file.read_bytes()
    assert (made.zone, made.stream, made.stream_id) == (7, "orders", stream)
    assert (made.first, made.last, made.events) == (1, 100, 100)
    assert (made.file, made.file_bytes) == (file.name, len(content))
    assert made.file_sha256 == hashlib.sha256(content).hexdigest()
    together = b"".join(len(data).to_bytes(4, "big") + data for data in payloads)
    assert made.payload_sha256 == hashlib.sha256(together).hexdigest()
    assert made.payload_bytes == sum(map(len, payloads))
    assert made.producers == [("till", 7, 100), ("till", 8, 99)]
    times = (
        pq.read_table(file, partitioning=None).column("appended_at").cast(pa.int64()).to_pylist()
    )
    assert (made.appended_min_us, made.appended_max_us) == (min(times), max(times))
    described = pq.ParquetFile(file).metadata.metadata
    assert described[b"eventhub.segment"].decode() == made.segment
    assert described[b"eventhub.stream"] == b"orders"


def test_files_with_different_attributes_have_a_common_schema(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "mixed", events_max=2)
    given: list[dict[str, Any]] = [
        {"a": 1},
        {"b": "x"},
        {"a": "text"},
        {"a": 2.5, "c": True},
        {},
        {"d": [1]},
    ]
    put(database, stream, [encode(Event("d", "t", attributes)) for attributes in given])
    assert len(archive(database, tmp_path)) == 3
    found = sorted(tmp_path.rglob("zone=*/**/*.parquet"))
    schemas = [pq.read_schema(file) for file in found]
    together = pa.unify_schemas(schemas, promote_options="permissive")
    whole = ds.dataset([str(file) for file in found], schema=together, format="parquet")
    rows = whole.to_table(columns=["attributes_int", "attributes_text"]).to_pylist()
    assert [(row["attributes_int"] or {}).get("a") for row in rows] == [1, *[None] * 5]
    assert [(row["attributes_text"] or {}).get("a") for row in rows[2:3]] == ["text"]


def test_a_column_holds_all_values_of_an_attribute_or_does_not_exist(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "odd", events_max=4)
    given = [
        {"big": 1, "Case": 1},
        {"big": (1 << 64) - 1},
        {"case": 2, "": 3},
        {"Case": 4, "a\n": 1},
    ]
    put(database, stream, [encode(Event("d", "t", attributes)) for attributes in given])
    archive(database, tmp_path)
    assert only_manifest(tmp_path).attributes == {"int": ["Case"]}
    table = pq.read_table(only_file(tmp_path), partitioning=None)
    assert [json.loads(text) for text in table.column("attributes").to_pylist()] == given


def test_a_filter_on_an_attribute_reads_few_row_groups(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=12_000)
    fill(database, stream, 12_000)
    archive(database, tmp_path)
    file = only_file(tmp_path)
    assert pq.ParquetFile(file).num_row_groups == 3
    [fragment] = ds.dataset(file, format="parquet").get_fragments()
    condition = ds.field("attributes_int", "n") == 9_000
    kept = fragment.subset(condition)
    assert [group.id for group in kept.row_groups] == [2]
    assert kept.to_table(filter=condition, columns=["sequence"]).column(0).to_pylist() == [9_000]


def test_any_stream_name_is_a_folder(database: str, tmp_path: Path) -> None:
    names = ["..", "a/b", "ä ö", "x" * 200, "語" * 200, "語" * 199 + "x", "a%2Fb", "A/B"]
    streams = [archived_stream(database, name, events_max=1) for name in names]
    for stream in streams:
        fill(database, stream, 1)
    assert [done.reason for done in archive(database, tmp_path)] == [""] * len(names)
    folders = [folder.name for folder in (tmp_path / "zone=1").iterdir()]
    assert len(folders) == len(names)
    for stream, name in zip(streams, names, strict=True):
        [segment] = archived(database, stream)
        assert manifest.load((tmp_path / segment.path).read_bytes(), "").stream == name


def test_only_sealed_segments_of_streams_with_the_policy_are_archived_and_once(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    with psycopg.connect(database) as connection:
        other = create_stream(connection, 1, "kept", StreamPolicy(segment_events_max=10))
        assert other is not None
    fill(database, stream, 25)
    fill(database, other.id, 25)
    assert [done.segment.first for done in archive(database, tmp_path)] == [1, 11]
    before = files(tmp_path)
    assert archive(database, tmp_path) == []
    assert files(tmp_path) == before
    assert archived(database, other.id) == []


def test_a_run_for_one_stream_or_segment_archives_nothing_else(
    database: str, tmp_path: Path
) -> None:
    one = archived_stream(database, "one", events_max=10)
    two = archived_stream(database, "two", events_max=10)
    fill(database, one, 30)
    fill(database, two, 10)
    assert len(archive(database, tmp_path, SegmentFilter(stream="two"))) == 1
    [_, uuid, _] = [row[0] for row in _segments(database, one)]
    archive(database, tmp_path, SegmentFilter(segment=uuid))
    assert [segment.first for segment in archived(database, one)] == [11]


def _segments(url: str, stream: int) -> list[tuple[str]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT uuid::text FROM segments WHERE stream_id = %s AND last IS NOT NULL"
            " ORDER BY first",
            (stream,),
        ).fetchall()


def test_an_empty_segment_is_archived_too(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "empty")
    execute(
        database,
        "UPDATE segments SET last = first - 1, bytes = 0, sealed_at = now() WHERE stream_id = %s",
        stream,
    )
    assert [(done.events, done.reason) for done in archive(database, tmp_path)] == [(0, "")]
    assert (only_manifest(tmp_path).first, only_manifest(tmp_path).last) == (1, 0)


def test_a_segment_with_a_hole_is_not_archived_and_the_others_are(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    execute(database, "DELETE FROM events WHERE sequence = 14")
    done = archive(database, tmp_path)
    assert [found.reason for found in done] == ["", "segment_unreadable", ""]
    assert done[1].detail.startswith("Event 14 of")
    assert [segment.first for segment in archived(database, stream)] == [1, 21]
    assert archive(database, tmp_path) == []  # it waits for its next try
    with psycopg.connect(database) as connection:
        found = catalog.status(connection)
    assert found.waiting.segments == 1
    assert [(failure.reason, failure.attempts) for failure in found.failures] == [
        ("segment_unreadable", 1)
    ]
    assert [again.reason for again in archive(database, tmp_path, retry_failed=True)] == [
        "segment_unreadable"
    ]


@pytest.mark.parametrize("lost", ["last", "first"])
def test_a_segment_that_lost_an_event_at_its_edge_is_not_archived(
    database: str, tmp_path: Path, lost: str
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    at = {"first": 1, "last": 10}[lost]
    execute(database, "DELETE FROM events WHERE sequence = %s", at)
    assert [done.reason for done in archive(database, tmp_path)] == ["segment_unreadable"]
    assert files(tmp_path) == []


def test_an_altered_row_is_not_archived(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    more = "\\x7802"  # a priority: it can be decoded
    execute(database, "UPDATE events SET payload = payload || %s::bytea WHERE sequence = 5", more)
    assert [done.reason for done in archive(database, tmp_path)] == ["segment_unreadable"]


def test_one_archiver_at_a_time(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    with open_archiver(str(tmp_path), database, SystemClock()) as archiver:
        running = archiver.run(SegmentFilter())
        assert next(running).reason == ""
        with pytest.raises(ArchiveLeaseLost):
            archive(database, tmp_path)
        assert len(list(running)) == 2
    assert archive(database, tmp_path) == []


def test_an_archiver_suspended_beyond_its_lease_ends_without_harm(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    with open_archiver(str(tmp_path), database, SystemClock()) as archiver:
        running = archiver.run(SegmentFilter())
        next(running)
        free_lease(database)
        assert len(archive(database, tmp_path)) == 2  # another took over meanwhile
        before = files(tmp_path)
        assert list(running) == []
    assert files(tmp_path) == before
    assert len(before) == 6
    assert len(archived(database, stream)) == 3


def test_leftovers_of_an_unfinished_attempt_are_removed(database: str, tmp_path: Path) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 20)
    [[uuid], [other]] = _segments(database, stream)
    execute(
        database,
        "INSERT INTO archive_attempts SELECT id, 1, 'unfinished', '', now(), now() FROM segments"
        " WHERE uuid::text = %s",
        uuid,
    )
    folder = tmp_path / "zone=1" / "stream=orders"
    folder.mkdir(parents=True)
    left = folder / f"{1:020d}-{uuid}-{'0' * 16}.parquet"
    kept = folder / f"{11:020d}-{other}-{'0' * 16}.parquet"  # perhaps another archiver's, just now
    left.write_bytes(b"of a version that wrote other bytes")
    kept.write_bytes(b"")
    unfinished = tmp_path / "_unfinished" / "0123-some.parquet"
    unfinished.parent.mkdir()
    unfinished.write_bytes(b"half")
    assert [done.reason for done in archive(database, tmp_path)] == ["", ""]
    assert not left.exists() and not unfinished.exists()
    assert kept.exists() and len(files(tmp_path)) == 5


def test_any_filesystem_can_be_the_archive(database: str) -> None:
    place = f"memory://archive-{os.getpid()}-{next(_numbers)}"
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 20)
    assert [done.reason for done in archive(database, place)] == ["", ""]
    assert len(archived(database, stream)) == 2


def test_an_archive_that_cannot_be_written_fails_with_the_reason(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 30)
    (tmp_path / "file").write_text("no folder")
    done = archive(database, tmp_path / "file" / "archive")
    assert [found.reason for found in done] == ["archive_unavailable"]  # the others not tried
    assert archived(database, stream) == []


def test_an_archived_segment_is_not_overwritten_after_a_restore(
    database: str, tmp_path: Path
) -> None:
    stream = archived_stream(database, "orders", events_max=10)
    fill(database, stream, 10)
    archive(database, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("zone=*/**/*.*")}
    execute(database, "UPDATE segments SET archive_path = NULL, last = 9 WHERE last = 10")
    execute(database, "DELETE FROM events WHERE sequence = 10")
    assert [done.reason for done in archive(database, tmp_path)] == ["archive_conflict"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("zone=*/**/*.*")} == before


def test_a_segment_is_read_correctly_while_it_moves_between_partitions(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = archived_stream(database, "orders", events_max=12_000)
    payloads = fill(database, stream, 12_000)
    _second_group(database)
    with open_archiver(str(tmp_path), database, SystemClock()) as archiver:
        pages = archiver._rows.pages

        def moving(segment: catalog.DueSegment) -> object:
            for number, page in enumerate(pages(segment)):
                if number == 1:
                    _move(database, segment.id)
                yield page

        monkeypatch.setattr(archiver._rows, "pages", moving)
        assert [done.reason for done in archiver.run(SegmentFilter())] == [""]
    table = pq.read_table(only_file(tmp_path), partitioning=None)
    assert table.column("payload").to_pylist() == payloads


def _second_group(url: str) -> None:
    execute(url, "CREATE TABLE IF NOT EXISTS events_p2 PARTITION OF events FOR VALUES IN (2)")
    execute(url, "INSERT INTO event_partitions (id) VALUES (2) ON CONFLICT DO NOTHING")


def _move(url: str, segment_id: int) -> None:
    """Move segments to the other of two partitions, as the cleaning does."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "WITH gone AS (DELETE FROM events WHERE segment_id = %s RETURNING *)"
            " INSERT INTO events SELECT segment_id, sequence, mask, appended_at, 3 - partition_id,"
            " payload FROM gone",
            (segment_id,),
        )
        connection.execute(
            "UPDATE segments SET partition_id = 3 - partition_id WHERE id = %s", (segment_id,)
        )
