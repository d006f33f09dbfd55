"""A filter tried on a small hub's history: what matches is what plain Python says of its events."""

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
from sparkjobs.backtest.run import run
from sparkjobs.backtest.search import BacktestQuery
from sparkjobs.backtest.search import search as search_segments
from sparkjobs.backtest.transform import dropped_segments, spans, width_for
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.tables import SEGMENTS
from sparkjobs.type_hierarchy import DeclaredType
from tests.spark.history import NOW_US, ORDERS, SYSTEM, TICKS, ZONE, History, time_of

PREDICATE = {"language": "predicate", "filter": "(and (= vip true) (> room 0))"}


class Searched(NamedTuple):
    result: JobResult
    folder: Path

    @property
    def sequences(self) -> list[int]:
        """Of every match, as the files have them."""
        rows = pq.read_table(self.folder / "matches").sort_by("sequence")
        return [int(number) for number in rows["sequence"].to_pylist()]

    @property
    def details(self) -> dict[str, Any]:
        return dict(self.result.details)


def search(spark: SparkSession, history: History, *, again: int = 1, **params: Any) -> Searched:
    given = {"stream": "orders", "stream_id": ORDERS, "shown_max": 5, **ZONE, **PREDICATE, **params}
    layout = {name: given.pop(name) for name in ("files", "backwards") if name in given}
    history.write(**layout)
    order = history.order("backtest", run=again, **given)
    return Searched(run(spark, order, Phases(spark.sparkContext)), Path(order.result))


def looked_through(history: History, **fields: Any) -> list[int]:
    """What an executor finds in ORDERS, without Spark."""
    wanted = BacktestQuery(
        PREDICATE["language"], json.dumps(PREDICATE["filter"]), (), None, None, None, 5,
        str(history.folder / "inputs"), history.archive.as_uri(),
    )._replace(**fields)  # fmt: skip
    rows = [row for row in history.tables["segments"] if row["stream_id"] == ORDERS]
    segments = pa.Table.from_pylist(rows, schema=SEGMENTS).to_batches()
    found = pa.Table.from_batches([*search_segments(iter(segments), wanted)])
    return [number for number in found["sequence"].to_pylist() if number is not None]


def of_orders(history: History, wants: Callable[[Event], Any]) -> list[int]:
    segments = [row["id"] for row in history.tables["segments"] if row["stream_id"] == ORDERS]
    rows = [row for id in segments for row in history.events[id]]
    return [sequence for sequence, event in rows if wants(event)]


@pytest.mark.parametrize(
    ("language", "filter", "wants"),
    [
        ("pairs", {"attributes": {"room": 2}}, lambda e: e.attributes["room"] == 2),
        ("pairs", {"type": "order.sent"}, lambda e: False),
        ("propositional", "(and room (or hall vip))", lambda e: True),
        ("predicate", "(or (= room 3) (= vip true))",
         lambda e: e.attributes["room"] == 3 or e.attributes["vip"]),
        ("ready", "Ev: order.paid | $room > 3", lambda e: e.attributes["room"] > 3),
        ("eventbridge", {"detail": {"room": [{"numeric": ["<", 1]}]}},
         lambda e: e.attributes["room"] < 1),
    ],
)  # fmt: skip
def test_every_language_finds_what_python_finds(
    history: History, language: str, filter: Any, wants: Any
) -> None:
    found = looked_through(history, language=language, filter=json.dumps(filter))
    assert found == of_orders(history, wants)


def test_a_declared_type_is_found_by_the_one_above_it(history: History) -> None:
    for number, (sequence, event) in enumerate(history.events[1004]):
        version = "2" if number < 5 else "3"  # which nobody has declared
        history.events[1004][number] = (sequence, event._replace(version=version))
    history.store(1004)
    types = (DeclaredType("shop", "order.paid", 2, ("order.paid", "money")),)
    wanted = json.dumps('(type "shop::money")')
    assert looked_through(history, filter=wanted, types=types) == [121, 122, 123, 124, 125]
    assert looked_through(history, filter=wanted) == []


def test_a_range_of_time_begins_with_its_first_moment_and_ends_before_its_last(
    history: History,
) -> None:
    bounds = {"since_us": time_of(35), "until_us": time_of(100)}
    assert looked_through(history, filter='"(exists room)"', **bounds) == [*range(35, 100)]


def test_shown_are_the_first_of_the_stream_with_their_attributes(
    spark: SparkSession, history: History
) -> None:
    _, event = history.events[1001][0]
    long = event._replace(attributes={**event.attributes, "text": "x" * 2_000})
    history.events[1001][0] = (1, long)
    history.store(1001)
    shown = search(spark, history, filter="(exists room)", shown_max=41).details["shown"]
    assert [one["sequence"] for one in shown] == [*range(1, 42)]
    assert shown[0]["attributes"] is None  # too long for a list
    assert shown[1] == {
        "sequence": 2,
        "segment": history.segment(1001)["uuid"],
        "appended_at": "2025-10-09T09:01:00.000000Z",
        "type": "order.paid",
        "attributes": {"room": 2, "vip": False, "text": "order 2"},
    }


def test_what_cannot_be_read_is_said_and_the_rest_is_searched(
    spark: SparkSession, history: History
) -> None:
    history.path(1001).unlink()
    history.path(1002).write_bytes(history.path(1002).read_bytes()[:-100])
    history.events[1003] = history.events[1003][:-1]
    row = dict(history.segment(1003))
    history.store(1003)  # it can be read, and is not what the archive's manifest says
    history.segment(1003).update(row, file_bytes=1)
    found = search(spark, history, filter="(exists room)")
    uuid = {id: history.segment(id)["uuid"] for id in (1001, 1002, 1003)}
    assert found.details["skipped"] == [
        {"segment": uuid[1001], "fault": "missing_file"},
        {"segment": uuid[1002], "fault": "truncated"},
        {"segment": uuid[1003], "fault": "altered"},
    ]
    assert found.sequences == [*range(121, 131)]
    assert "3 segments could not be searched" in found.result.summary


def test_segments_that_left_are_told(spark: SparkSession, history: History) -> None:
    gone = history.segment(1005)
    gone.update(sealed_at_us=time_of(21))
    ticks = {"stream": "ticks", "stream_id": TICKS, "filter": "(exists room)"}
    found = search(spark, history, **ticks)
    assert found.details["skipped"] == [{"segment": gone["uuid"], "fault": "dropped"}]
    assert found.sequences == [*range(21, 41)]
    segments = spark.createDataFrame(pa.Table.from_pylist([gone], schema=SEGMENTS))
    bounds = [(None, time_of(1)), (time_of(21), None), (time_of(22), None), (None, time_of(1) - 1)]
    assert [dropped_segments(segments, TICKS, *one).count() for one in bounds] == [1, 1, 0, 0]


def test_of_the_hubs_own_stream_a_zone_finds_what_it_is_told(
    spark: SparkSession, history: History
) -> None:
    sequence, event = history.events[1][1]
    of_others = event._replace(attributes={**event.attributes, "zone": "else"})
    history.events[1][1] = (sequence, of_others)
    history.store(1)
    system = {"stream": "system", "stream_id": SYSTEM, "filter": "(exists stream)"}
    found = search(spark, history, **system)
    assert found.sequences == [1, 3]
    assert found.details["searched_events"] == 2


def test_files_and_details_do_not_depend_on_how_the_inputs_lie(
    spark: SparkSession, history: History
) -> None:
    wanted = """(or (= vip true) (= text "<script>alert(1)</script>"))"""
    one = search(spark, history, filter=wanted)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        other = search(spark, history, again=2, files=3, backwards=True, filter=wanted)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
    assert (one.result.details, one.result.figures) == (other.result.details, other.result.figures)
    for name, key in (("matches", "sequence"), ("segments", "segment_id")):
        tables = [pq.read_table(each.folder / name).sort_by(key) for each in (one, other)]
        assert tables[0] == tables[1]
    for name in ("matches.csv", "report.html"):
        assert (one.folder / name).read_text() == (other.folder / name).read_text()
    with (one.folder / "matches.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["sequence"]) for line in lines] == one.sequences
    assert one.sequences == of_orders(history, lambda event: event.attributes["vip"])
    _check_report((one.folder / "report.html").read_text())


def _check_report(page: str) -> None:
    """It loads nothing, follows the reader's colours, and shows as text what people wrote."""
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "currentColor" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_an_empty_stream_is_searched_too(spark: SparkSession, history: History) -> None:
    history.tables["segments"] = []
    found = search(spark, history)
    assert found.details["count"] == found.details["searched_events"] == 0
    assert found.details["hours"] == []
    assert found.sequences == []


@pytest.mark.parametrize("days", [0, 0.001, 1, 30, 400, 40_000])
def test_spans_of_the_plot_are_few_however_long_the_time(days: float) -> None:
    last_us = NOW_US + int(days * 86_400e6)
    width_s = width_for(NOW_US, last_us)
    starts = spans(NOW_US, last_us, width_s)
    assert len(starts) <= 300
    assert starts[0] <= NOW_US < starts[0] + width_s * 1_000_000
    assert starts[-1] <= last_us < starts[-1] + width_s * 1_000_000
