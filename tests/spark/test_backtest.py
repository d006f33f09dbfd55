"""Back-tests on a small hub's history, compared with filters in plain Python."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eventhub.event.envelope import Event
from sparkjobs.backtest import local
from sparkjobs.backtest.run import run
from sparkjobs.backtest.search import BacktestQuery
from sparkjobs.backtest.search import search as search_segments
from sparkjobs.backtest.segments import dropped_segments
from sparkjobs.backtest.totals import bucket_starts, width_for
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.tables import SEGMENTS
from sparkjobs.type_hierarchy import DeclaredType
from tests.spark.history import NOW_US, ORDERS, SYSTEM, TICKS, ZONE, JobHistory, time_of
from tests.spark.results import assert_same_files

PREDICATE = {"language": "predicate", "filter": "(and (= vip true) (> room 0))"}


class BacktestResult(NamedTuple):
    result: JobResult
    folder: Path

    @property
    def sequences(self) -> list[int]:
        """The sequences of all matches, from the files."""
        rows = pq.read_table(self.folder / "matches").sort_by("sequence")
        return [int(number) for number in rows["sequence"].to_pylist()]

    @property
    def details(self) -> dict[str, Any]:
        return dict(self.result.details)


def search(
    history: JobHistory, *, number: int = 1, spark: SparkSession | None = None, **params: Any
) -> BacktestResult:
    """Search the history by Spark, else in this process."""
    stream = {"stream": "orders", "stream_ids": [ORDERS], "stream_id": ORDERS}
    given = {**stream, "sample_max": 5, **ZONE, **PREDICATE, **params}
    layout = {name: given.pop(name) for name in ("files", "backwards") if name in given}
    history.write(**layout)
    spec = history.spec("backtest", run=number, **given)
    if spark is None:
        return BacktestResult(local.run(spec, lambda phase: None), Path(spec.result))
    return BacktestResult(run(spark, spec, Phases(spark.sparkContext)), Path(spec.result))


def search_orders(history: JobHistory, **fields: Any) -> list[int]:
    """Return the matches in ORDERS as an executor finds them, without Spark."""
    query = BacktestQuery(
        PREDICATE["language"], json.dumps(PREDICATE["filter"]), (), None, None, None, 5,
        str(history.folder / "inputs"), history.archive.as_uri(),
    )._replace(**fields)  # fmt: skip
    rows = [row for row in history.tables["segments"] if row["stream_id"] == ORDERS]
    segments = pa.Table.from_pylist(rows, schema=SEGMENTS).to_batches()
    found = pa.Table.from_batches([*search_segments(iter(segments), query)])
    return [number for number in found["sequence"].to_pylist() if number is not None]


def matches_in_orders(history: JobHistory, matches: Callable[[Event], Any]) -> list[int]:
    segments = [row["id"] for row in history.tables["segments"] if row["stream_id"] == ORDERS]
    rows = [row for id in segments for row in history.events[id]]
    return [sequence for sequence, event in rows if matches(event)]


@pytest.mark.parametrize(
    ("language", "filter", "matches"),
    [
        ("pairs", {"attributes": {"room": 2}}, lambda e: e.attributes["room"] == 2),
        ("pairs", {"type": "order.sent"}, lambda e: False),
        ("propositional", "(and room (or hall vip))", lambda e: True),
        ("predicate", "(or (= room 3) (= vip true))",
         lambda e: e.attributes["room"] == 3 or e.attributes["vip"]),
        ("ready", "Ev: order.paid | $room > 3", lambda e: e.attributes["room"] > 3),
        ("cel", "room > 0 && room + 1 < 3", lambda e: 0 < e.attributes["room"] < 2),
        ("cesql", "room > 0 AND room % 2 = 1",
         lambda e: e.attributes["room"] > 0 and e.attributes["room"] % 2 == 1),
        ("eventbridge", {"detail": {"room": [{"numeric": ["<", 1]}]}},
         lambda e: e.attributes["room"] < 1),
    ],
)  # fmt: skip
def test_every_language_finds_what_python_finds(
    history: JobHistory, language: str, filter: Any, matches: Any
) -> None:
    found = search_orders(history, language=language, filter=json.dumps(filter))
    assert found == matches_in_orders(history, matches)


def test_a_filter_on_a_supertype_finds_declared_subtypes(history: JobHistory) -> None:
    for number, (sequence, event) in enumerate(history.events[1004]):
        version = "2" if number < 5 else "3"  # version 3 is not declared
        history.events[1004][number] = (sequence, event._replace(version=version))
    history.store(1004)
    types = (DeclaredType("shop", "order.paid", 2, ("order.paid", "money")),)
    supertype = json.dumps('(type "shop::money")')
    assert search_orders(history, filter=supertype, types=types) == [121, 122, 123, 124, 125]
    assert search_orders(history, filter=supertype) == []


def test_since_is_inclusive_and_until_is_exclusive(
    history: JobHistory,
) -> None:
    bounds = {"since_us": time_of(35), "until_us": time_of(100)}
    assert search_orders(history, filter='"(exists room)"', **bounds) == [*range(35, 100)]


def test_the_sample_contains_the_first_matches_with_their_attributes(
    history: JobHistory,
) -> None:
    _, event = history.events[1001][0]
    long = event._replace(attributes={**event.attributes, "text": "x" * 2_000})
    history.events[1001][0] = (1, long)
    history.store(1001)
    sample = search(history, filter="(exists room)", sample_max=41).details["sample"]
    assert [match["sequence"] for match in sample] == [*range(1, 42)]
    assert sample[0]["attributes"] is None  # too long
    assert sample[1] == {
        "sequence": 2,
        "segment": history.segment(1001)["uuid"],
        "appended_at": "2025-10-09T09:01:00.000000Z",
        "type": "order.paid",
        "attributes": {"room": 2, "vip": False, "text": "order 2"},
    }


def test_unreadable_segments_are_skipped_and_the_rest_is_searched(
    history: JobHistory,
) -> None:
    history.path(1001).unlink()
    history.path(1002).write_bytes(history.path(1002).read_bytes()[:-100])
    history.events[1003] = history.events[1003][:-1]
    row = dict(history.segment(1003))
    history.store(1003)  # readable, but it differs from the manifest
    history.segment(1003).update(row, file_bytes=1)
    found = search(history, filter="(exists room)")
    uuid = {id: history.segment(id)["uuid"] for id in (1001, 1002, 1003)}
    assert found.details["skipped"] == [
        {"segment": uuid[1001], "fault": "missing_file"},
        {"segment": uuid[1002], "fault": "truncated"},
        {"segment": uuid[1003], "fault": "altered"},
    ]
    assert found.sequences == [*range(121, 131)]
    assert "Skipped segments: 3" in found.result.summary


def test_dropped_segments_are_reported(history: JobHistory) -> None:
    dropped = history.segment(1005)
    dropped.update(sealed_at_us=time_of(21))
    ticks = {
        "stream": "ticks",
        "stream_id": TICKS,
        "stream_ids": [TICKS],
        "filter": "(exists room)",
    }
    found = search(history, **ticks)
    assert found.details["skipped"] == [{"segment": dropped["uuid"], "fault": "dropped"}]
    assert found.sequences == [*range(21, 41)]
    segments = pa.Table.from_pylist([dropped], schema=SEGMENTS)
    bounds = [(None, time_of(1)), (time_of(21), None), (time_of(22), None), (None, time_of(1) - 1)]
    assert [dropped_segments(segments, *one).num_rows for one in bounds] == [1, 1, 0, 0]


def test_on_system_a_zone_finds_its_own_events_and_those_of_the_hub(
    history: JobHistory,
) -> None:
    sequence, event = history.events[1][1]
    of_others = event._replace(attributes={**event.attributes, "zone": "else"})
    history.events[1][1] = (sequence, of_others)
    history.store(1)
    system = {
        "stream": "system",
        "stream_id": SYSTEM,
        "stream_ids": [SYSTEM],
        "filter": "(exists stream)",
    }
    found = search(history, **system)
    assert found.sequences == [1, 3]
    assert found.details["searched_events"] == 2


def test_spark_finds_the_same_for_any_layout_of_the_inputs(
    spark: SparkSession, history: JobHistory
) -> None:
    filter = """(or (= vip true) (= text "<script>alert(1)</script>"))"""
    history.path(1002).write_bytes(history.path(1002).read_bytes()[:-100])
    one = search(history, filter=filter)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        other = search(history, number=2, spark=spark, files=3, backwards=True, filter=filter)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    assert_same(one, other)
    with (one.folder / "matches.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["sequence"]) for line in lines] == one.sequences
    vip = matches_in_orders(history, lambda event: event.attributes["vip"])
    assert one.sequences == [number for number in vip if not 41 <= number <= 80]
    _check_report((one.folder / "report.html").read_text())


def assert_same(one: BacktestResult, other: BacktestResult) -> None:
    assert one.result == other.result
    assert_same_files(one.folder, other.folder)


def _check_report(page: str) -> None:
    """Check that the page loads nothing, follows the reader's colours and escapes user input."""
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "currentColor" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_an_empty_stream_can_be_searched(spark: SparkSession, history: JobHistory) -> None:
    history.tables["segments"] = []
    found = search(history)
    assert found.details["matched_events"] == found.details["searched_events"] == 0
    assert found.details["histogram"] == []
    assert found.sequences == []
    assert_same(found, search(history, number=2, spark=spark))


@pytest.mark.parametrize("days", [0, 0.001, 1, 30, 400, 40_000])
def test_the_number_of_buckets_is_bounded_for_any_time_range(days: float) -> None:
    last_us = NOW_US + int(days * 86_400e6)
    width_s = width_for(NOW_US, last_us)
    starts = bucket_starts(NOW_US, last_us, width_s)
    assert len(starts) <= 300
    assert starts[0] <= NOW_US < starts[0] + width_s * 1_000_000
    assert starts[-1] <= last_us < starts[-1] + width_s * 1_000_000
