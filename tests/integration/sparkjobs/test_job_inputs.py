"""The export of a job's inputs: sources of events, faults of manifests, one snapshot under
concurrent writes, and failures.
"""

import threading
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from delivery.partitions.create import create_partitions
from delivery.partitions.retire import run_retirement
from eventhub.base.errors import DatabaseUnavailable
from eventhub.eventlog.errors import ArchiveUnavailable
from sparkjobs.runs.export.files import InputsNotWritten
from sparkjobs.runs.export.snapshot import NAME, ExportedSnapshot, ExportRequest, export_inputs
from sparkjobs.segment_files import SegmentFile
from sparkjobs.tables import TABLES
from tests.integration.archive_world import archive, archived_stream, fill, put
from tests.integration.delivery.test_partition_archive import old_day
from tests.integration.eventlog_world import execute
from tests.integration.forward_world import World, world_database
from tests.integration.retention_world import connected, next_group

database = pytest.fixture(world_database)
EVERYTHING = frozenset(TABLES)


class Inputs:
    """A written export and its contents."""

    def __init__(self, url: str, folder: Path, archive: Path | str = "", **scope: Any) -> None:
        request = {"tables": EVERYTHING, "events": True, **scope}
        self.folder = folder
        self.archive = str(archive)
        self.snapshot: ExportedSnapshot = export_inputs(
            ExportRequest(url, self.archive, folder, **request), quiet
        )

    def rows(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(self.folder / name).to_pylist()
        return found

    def events(self, segment: dict[str, Any]) -> list[tuple[int, bytes]]:
        """Read a segment's events as the executors of a job do."""
        file = SegmentFile(segment, str(self.folder), self.archive)
        rows = [row for batch in file.batches() for row in batch.to_pylist()]
        return [(row["sequence"], row["payload"]) for row in rows]

    def segments(self, stream_id: int) -> list[dict[str, Any]]:
        return [row for row in self.rows("segments") if row["stream_id"] == stream_id]


def quiet(_table: str, _rows: int) -> None:
    return


def test_events_are_exported_or_found_in_the_archive(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=10)
    payloads = fill(url, stream, 25)
    archive(url, place)
    payloads += fill(url, stream, 10, begin=26)  # seals the third segment, opens the fourth
    execute(url, "UPDATE segments SET tier = 'archived', removal_reason = 'age'"
                 " WHERE stream_id = %s AND first = 1", stream)  # fmt: skip
    inputs = Inputs(url, tmp_path / "in", place)
    found = inputs.segments(stream)
    assert [(row["first"], row["last"], row["source"], row["sealed"]) for row in found] == [
        *((1, 10, "archive", True), (11, 20, "archive", True)),
        *((21, 30, "export", True), (31, 35, "export", False)),
    ]
    read = [event for row in found for event in inputs.events(row)]
    assert read == list(enumerate(payloads, 1))
    assert [row["fault"] for row in found] == [None] * 4
    assert all(row["appended_min_us"] <= row["appended_max_us"] for row in found[:2])
    assert [row["bytes"] for row in found] == [
        sum(map(len, payloads[first : first + 10])) for first in (0, 10, 20, 30)
    ]
    [live] = inputs.rows("live")
    assert live == {
        **{"segment_id": found[1]["id"], "events": 10, "first": 11, "last": 20},
        **{"bytes": found[1]["bytes"], "missing": []},
    }
    with pytest.raises(ArchiveUnavailable, match="set EVENTHUB_ARCHIVE_URL"):
        Inputs(url, tmp_path / "without")


def test_missing_rows_are_reported(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    fill(url, stream, 12)
    archive(url, place)
    execute(url, "DELETE FROM events e USING segments s WHERE s.id = e.segment_id AND s.stream_id"
                 " = %s AND e.sequence IN (3, 5, 6, 7, 8, 9, 10, 12)", stream)  # fmt: skip
    inputs = Inputs(url, tmp_path / "in", place)
    held = [
        (row["events"], row["first"], row["last"], row["missing"]) for row in inputs.rows("live")
    ]
    assert sorted(held, key=str) == [(0, None, None, [6, 7, 8, 9, 10]), (3, 1, 4, [3, 5])]
    *_, opened = inputs.segments(stream)
    assert (opened["first"], opened["last"]) == (11, 12)
    assert [sequence for sequence, _ in inputs.events(opened)] == [11]


def test_a_segment_without_rows_has_a_file(database: World, tmp_path: Path) -> None:
    stream = database.stream(segment_events_max=2)
    database.emit(stream, *"abcde")
    execute(database.url, "DELETE FROM events WHERE sequence < 5 AND segment_id IN"
                          " (SELECT id FROM segments WHERE stream_id = %s)", stream)  # fmt: skip
    inputs = Inputs(database.url, tmp_path / "in")
    assert [len(inputs.events(row)) for row in inputs.segments(stream)] == [0, 0, 1]


def test_faults_of_manifests_are_reported(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    fill(url, stream, 20)
    archive(url, place)
    first, second, *_ = sorted((place / f"zone={database.zone}").rglob("*.json"))
    first.unlink()
    second.write_text(second.read_text().replace("5", "6", 1))
    execute(url, "UPDATE segments SET last = 14 WHERE stream_id = %s AND first = 11", stream)
    found = Inputs(url, tmp_path / "in", place).segments(stream)
    faults = ["missing_manifest", "bad_manifest", "wrong_range", None, None]
    assert [row["fault"] for row in found] == faults
    assert [row["file"] is None for row in found] == [True, True, False, False, True]
    place.rename(tmp_path / "elsewhere")
    with pytest.raises(ArchiveUnavailable):
        Inputs(url, tmp_path / "away", place)
    assert not (tmp_path / "away" / NAME).exists()


def test_a_time_range_selects_segments(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    for begin in (1, 6, 11):
        fill(url, stream, 5, begin=begin)
    archive(url, place)
    put(url, stream, [b""] * 5)  # the last full segment is live alone
    database.sql(
        "INSERT INTO fanouts (partition_id, stream_id, segment_id, sequence, endpoints,"
        " registrations,"
        " ends, total) SELECT partition_id, stream_id, id, first, '{7}', '{1}', '{1}', 1 FROM"
        " segments"
        " WHERE stream_id = %s",
        stream,
    )
    whole = Inputs(url, tmp_path / "whole", place)
    at = [row["appended_at"] for row in _times(url, stream)]
    inside = {"since_us": at[5], "until_us": at[9]}
    inputs = Inputs(url, tmp_path / "in", place, **inside)
    assert [row["source"] for row in inputs.segments(stream)] == [
        *("none", "archive", "none", "none", "none")
    ]
    # the third segment was opened when the second was sealed
    assert [row["sequence"] for row in inputs.rows("fanouts")] == [6, 11]
    assert [row["sequence"] for row in whole.rows("fanouts")] == [1, 6, 11, 16, 21]
    late = Inputs(url, tmp_path / "late", place, since_us=at[15], until_us=None)
    assert [row["source"] for row in late.segments(stream)] == [
        *("none", "none", "none", "export", "none")
    ]
    assert [row["id"] for row in inputs.segments(stream)] == [
        row["id"] for row in whole.segments(stream)
    ]


def _times(url: str, stream: int) -> list[dict[str, int]]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT (extract(epoch FROM e.appended_at) * 1000000)::bigint FROM events e"
            " JOIN segments s ON s.id = e.segment_id WHERE s.stream_id = %s ORDER BY e.sequence",
            (stream,),
        ).fetchall()
    return [{"appended_at": row[0]} for row in rows]


async def test_archived_rows_of_dropped_partitions_are_exported(
    database: World, tmp_path: Path
) -> None:
    url, place = database.url, tmp_path / "archive"
    group = await next_group(url)
    async with connected(url) as connection:
        assert await create_partitions(connection)
    stream = database.stream(segment_events_max=3)
    other = database.stream(segment_events_max=3)
    for each in (stream, other):
        for appended in database.emit(each, *"abc"):
            database.sql(
                "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence,"
                " stream_id,"
                " registrations, state) SELECT partition_id, 7, id, %s, stream_id, '{1}',"
                " 'dead_lettered'"
                " FROM segments WHERE uuid = %s::uuid",
                *(appended.sequence, appended.segment),
            )
    old_day(database)
    database.sql("UPDATE attempts SET segment_id = (SELECT min(id) FROM segments WHERE"
                 " stream_id = %s)", stream)  # fmt: skip
    database.sql("DELETE FROM attempts WHERE sequence = 3")
    database.sql("UPDATE attempts SET sequences = '{2,3}' WHERE sequence = 2")  # one of a batch
    scope = {"stream_ids": (stream,)}
    before = Inputs(url, tmp_path / "before", place, **scope)
    await next_group(url)
    async with connected(url) as connection:
        assert await create_partitions(connection)
    for each in (stream, other):
        database.emit(each, *"abc")
    database.sql("UPDATE segments SET sealed_at = '2020-01-01' WHERE partition_id = %s", group)
    await run_retirement(url, str(place))
    after = Inputs(url, tmp_path / "after", place, **scope)
    none = Inputs(url, tmp_path / "none", place, since_us=0, until_us=1, **scope)
    assert [row["sequence"] for row in before.rows("attempts")] == [1, 2, 3]
    for table in ("deliveries", "attempts"):
        assert after.rows(table) == before.rows(table)
        assert len(after.rows(table)) == 3
        assert none.rows(table) == [], "no segment is requested"
    dropped = {row["parent"]: (row["name"], row["day"], row["archived"], row["rows"])
            for row in after.rows("retired")}  # fmt: skip
    assert dropped == {
        "attempts": ("attempts_20200101", "2020-01-01", True, 3),
        "deliveries": (f"deliveries_p{group}", None, True, 6),
    }
    [held] = [row for row in after.rows("retired") if row["parent"] == "deliveries"]
    segments = {row["segment_id"] for row in before.rows("deliveries")}
    ranges = zip(held["segments_from"], held["segments_to"], strict=True)
    found = {id for first, last in ranges for id in range(first, last + 1)}
    assert segments <= found
    assert len(found) < 20, "it held no others"
    for file in (place / "_deliveries").glob("*.parquet"):
        file.write_bytes(b"")
    damaged = Inputs(url, tmp_path / "damaged", place, **scope)
    assert damaged.rows("deliveries") == []
    readable = {row["parent"]: row["archived"] for row in damaged.rows("retired")}
    assert readable == {"attempts": True, "deliveries": False}


def test_all_tables_belong_to_one_snapshot_under_concurrent_writes(
    database: World, tmp_path: Path
) -> None:
    stream = database.stream(segment_events_max=50)
    over = threading.Event()
    database.sql("CREATE TABLE attempts_now PARTITION OF attempts DEFAULT")
    database.sql("CREATE TABLE deliveries_p1 PARTITION OF deliveries FOR VALUES IN (1)")
    database.sql("ALTER TABLE attempts DETACH PARTITION attempts_now")
    database.sql("ALTER TABLE attempts_now RENAME TO attempts_20000101")
    database.sql("ALTER TABLE attempts ATTACH PARTITION attempts_20000101 DEFAULT")

    def write() -> None:
        """Write events, deliveries and attempts, each in a transaction of its own."""
        while not over.is_set():
            [appended] = database.emit(stream, "a")
            for statement in (
                "INSERT INTO deliveries (partition_id, endpoint_id, segment_id, sequence,"
                " stream_id,"
                " registrations) SELECT partition_id, 7, id, %s, stream_id, '{1}' FROM segments"
                " WHERE uuid = %s::uuid",
                "WITH done AS (UPDATE deliveries d SET state = 'delivered' FROM segments s"
                "  WHERE d.sequence = %s AND s.uuid = %s::uuid AND s.id = d.segment_id"
                "  RETURNING d.*)"
                " INSERT INTO attempts SELECT now(), partition_id, endpoint_id, segment_id,"
                " sequence,"
                "  1, 'delivered', 204, 1, '', '', '' FROM done",
            ):
                database.sql(statement, appended.sequence, appended.segment)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        heads = [_check_one_snapshot(database, stream, tmp_path / str(at)) for at in range(5)]
    finally:
        over.set()
        writer.join()
    assert heads == sorted(set(heads))  # there were writes


def _check_one_snapshot(world: World, stream: int, folder: Path) -> int:
    inputs = Inputs(world.url, folder, stream_ids=(stream,))
    [row] = inputs.rows("streams")
    found = inputs.segments(stream)
    full = [segment for segment in found if segment["source"] == "export"]  # the last may be empty
    sequences = [at for segment in full for at, _ in inputs.events(segment)]
    assert sequences == list(range(1, row["head"] + 1))
    assert found[-1]["last"] == row["head"]
    states = {each["sequence"]: each["state"] for each in inputs.rows("deliveries")}
    assert max(states, default=0) in (row["head"] - 1, row["head"])
    attempted = {each["sequence"] for each in inputs.rows("attempts")}
    assert attempted == {at for at, state in states.items() if state == "delivered"}
    return int(row["head"])


def test_events_of_a_missing_partition_are_missing(database: World, tmp_path: Path) -> None:
    url, place = database.url, tmp_path / "archive"
    stream = archived_stream(url, "orders", zone_id=database.zone, events_max=5)
    fill(url, stream, 8)
    archive(url, place)
    database.sql("DROP TABLE events_p1")
    inputs = Inputs(url, tmp_path / "in", place)
    [row] = inputs.rows("live")
    assert (row["events"], row["missing"]) == (0, [1, 2, 3, 4, 5])
    _, opened = inputs.segments(stream)
    assert (opened["first"], opened["last"]) == (6, 8)
    assert inputs.events(opened) == []


def test_types_have_the_declaration_time_of_each_version(database: World, tmp_path: Path) -> None:
    database.sql(
        "INSERT INTO event_types (zone_id, domain, type, version, parent, evolution, schema,"
        " declared_at) SELECT %s, 'd', name, version, parent, 'none', '{}', to_timestamp(at)"
        " FROM (VALUES ('a', 1, NULL, 5), ('b', 1, 'a', 7), ('b', 2, 'a', 9))"
        " AS given (name, version, parent, at)",
        database.zone,
    )
    rows = Inputs(database.url, tmp_path / "in", tables=frozenset({"types"})).rows("types")
    found = {row["type"]: (row["versions"], row["declared_us"], row["lineage"]) for row in rows}
    assert found == {
        "a": (1, [5_000_000], ["a"]),
        "b": (2, [7_000_000, 9_000_000], ["b", "a"]),
    }


class StopExport(Exception):
    """The observer of an export stops it."""


def test_a_stopped_export_leaves_no_complete_inputs(database: World, tmp_path: Path) -> None:
    stream = database.stream()
    database.emit(stream, *"abc")
    with psycopg.connect(database.url) as blocker:  # until it is released, no export proceeds
        blocker.execute("LOCK TABLE heads IN ACCESS EXCLUSIVE MODE")

        def report(_table: str, _rows: int) -> None:
            raise StopExport

        with pytest.raises(StopExport):
            export_inputs(ExportRequest(database.url, "", tmp_path / "in", EVERYTHING), report)
    assert not (tmp_path / "in" / NAME).exists()


def test_an_unwritable_folder_is_reported(database: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputsNotWritten):
        Inputs(database.url, tmp_path / "file/in")


def test_an_unavailable_database_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        Inputs("postgresql://nobody@127.0.0.1:1/nothing", tmp_path / "in")
