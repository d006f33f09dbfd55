"""The facts that one segment leaves when it is scanned, without Spark."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventhub.event.envelope import Event
from eventhub.event.identity import EventId
from eventhub.event.protobuf_codec import encode
from sparkjobs.audit.scan import facts_of
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.matchers import build_matcher
from tests.spark.history import NOW_US, ORDERS, JobHistory, event_of, expected_by_hand
from tests.spark.tables import write_tables


def facts(history: JobHistory, segment_id: int, forwarded: int = 130) -> dict[str, list[Any]]:
    """Return the facts of a segment by structure, in order."""
    inputs = history.folder / "inputs"
    write_tables(inputs, history.tables)
    paths = ExecutorPaths(
        str(inputs), str(history.folder / f"work-{segment_id}-{forwarded}"), NOW_US
    )
    rows = [row for row in history.tables["versions"] if row["stream_id"] == ORDERS]
    build_matcher(paths.matcher(ORDERS), [{**row, "is_system": False} for row in rows])
    names = ("file", "file_bytes", "file_sha256", "fault")
    blank = dict.fromkeys(names)
    segment = {**blank, **history.segment(segment_id), "zone_id": 7, "forwarded": forwarded}
    found: dict[str, list[Any]] = {}
    for batch in facts_of(segment, paths, history.archive.as_uri()):
        for row in batch.to_pylist():
            [(name, fact)] = [(name, fact) for name, fact in row.items() if fact is not None]
            found.setdefault(name, []).append(fact)
    return found


def faults(found: dict[str, list[Any]]) -> list[tuple[str, int, int]]:
    return [(each["kind"], each["first"], each["last"]) for each in found.get("fault", [])]


@pytest.mark.parametrize("forwarded", [0, 97, 130])
def test_expected_deliveries_are_found_up_to_the_forwarded_sequence(
    history: JobHistory, forwarded: int
) -> None:
    found = facts(history, 1003, forwarded)
    expected = [
        (sequence, *delivery)
        for sequence in range(81, min(forwarded, 120) + 1)
        for delivery in expected_by_hand(ORDERS, sequence, event_of(ORDERS, sequence))
    ]
    scanned = found.get("expected", [])
    assert expected == sorted(
        (each["sequence"], each["endpoint_id"], each["registrations"]) for each in scanned
    )
    assert bool(expected) == (forwarded > 0)
    assert faults(found) == []
    assert [each["events"] for each in found["read"]] == [40]
    assert sum(each["events"] for each in found["hour"]) == 40


@pytest.mark.parametrize("garbage", [b"\xff\xff no event", b"\xc8\x01\x07"])
def test_undecodable_events_are_reported_and_the_others_are_checked(
    history: JobHistory, garbage: bytes
) -> None:
    """The second case is a security level that does not exist."""
    path = history.path(1004)
    table = pq.read_table(path)
    payloads = table.column("payload").to_pylist()
    payloads[3] += garbage
    pq.write_table(table.set_column(3, "payload", pa.array(payloads, pa.binary())), path)
    found = facts(history, 1004)
    assert faults(found) == [("undecodable", 124, 124)]
    assert [(each["first"], each["last"]) for each in found["unchecked"]] == [(124, 124)]
    assert 127 in [each["sequence"] for each in found["expected"]]


def test_a_file_that_breaks_off_is_one_finding(history: JobHistory) -> None:
    """The rows read before the break are checked."""
    path = history.path(1004)
    table = pq.read_table(path)
    sequences = [*table.column("sequence").to_pylist()[:-1], None]
    broken = table.set_column(0, "sequence", pa.array(sequences, pa.int64()))
    pq.write_table(broken, path, row_group_size=4)
    found = facts(history, 1004)
    assert faults(found) == [("unreadable", 121, 130)]
    assert [(each["first"], each["last"]) for each in found["unchecked"]] == [(129, 130)]
    assert [each["events"] for each in found["read"]] == [8]


def test_a_wrong_manifest_is_one_finding(history: JobHistory) -> None:
    history.segment(1001)["fault"] = "missing_manifest"
    history.segment(1001)["file"] = None
    assert faults(facts(history, 1001)) == [("missing_manifest", 1, 40)]


def test_producer_numbers_become_ranges(history: JobHistory) -> None:
    """A number is unique within its client, incarnation and timestamp."""
    given = [("a", 0, 1, 1), ("b", 0, 1, 1), ("a", 0, 2, 1), ("a", 7, 1, 1), ("a", 0, 4, 1)]
    ids = [EventId(*each) for each in [*given, ("a", 0, 2, 1), ("a", 0, 1, 2)]]
    events = [Event("d", "t", {}, id=id) for id in ids]
    history.events[1004] = list(enumerate([*events, event_of(1, 1)], start=121))
    row = history.segment(1004)
    row.update(last=128, bytes=sum(len(encode(event)) for _, event in history.events[1004]))
    history.store(1004)
    found = facts(history, 1004)
    assert faults(found) == []
    ranges = sorted(
        (one["client"], one["incarnation"], one["timed"], one["low"], one["high"], one["first"])
        for one in found["number_range"]
    )
    assert ranges == [
        ("a", 1, False, 1, 2, 121),
        ("a", 1, False, 2, 2, 126),
        ("a", 1, False, 4, 4, 125),
        ("a", 1, True, 1, 1, 124),
        ("a", 2, False, 1, 1, 127),
        ("b", 1, False, 1, 1, 122),
    ]


def test_events_of_a_missing_file_are_unchecked(history: JobHistory) -> None:
    history.path(1002).unlink()
    found = facts(history, 1002)
    assert faults(found) == [("missing_file", 41, 80)]
    assert [(each["first"], each["last"]) for each in found["unchecked"]] == [(41, 80)]
