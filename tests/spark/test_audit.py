"""The audit, on small histories: where all is well, each fault, and what is none."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from eventhub.base import limits
from sparkjobs.audit import deliveries
from sparkjobs.audit.event_log import producer_figures
from sparkjobs.audit.gaps import gap_ranges
from sparkjobs.audit.output import Truncation, first_hour, write_latest_hours
from tests.spark.audited import Found, audit
from tests.spark.history import (
    DESK,
    GUESTS,
    NOW_US,
    ORDERS,
    SYSTEM,
    TICKS,
    ZONE,
    History,
    event_of,
    time_of,
)
from tests.spark.planted import SIX, forget_the_attempt

TABLES = ("findings", "streams", "producers", "registrations_hourly", "clients", "hours")
HOUR_US = 3_600_000_000


@pytest.mark.timeout(300)  # two audits, and Spark is cold
def test_each_planted_fault_is_named_and_nothing_else(
    spark: SparkSession, history: History
) -> None:
    planted = [plant(history) for plant in SIX]
    audited = audit(spark, history)
    assert audited.found == planted
    assert audited.result.verdict == "problems"
    assert audited.result.details["finding_count"] == len(SIX)
    assert [line["kind"] for line in audited.lines("findings")] == [each.kind for each in planted]
    before = {name: audited.rows(name) for name in TABLES}
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    try:
        again = audit(spark, history, again=2, files=3, backwards=True)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions or "1")
    assert {name: again.rows(name) for name in TABLES} == before
    assert again.result._replace(about={}) == audited.result._replace(about={})


def test_what_else_can_be_wrong_is_named_exactly_and_as_much_as_tables_may_hold(
    spark: SparkSession, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault in each segment and table, so that none hides another."""
    monkeypatch.setattr(limits, "AUDIT_ROWS_MAX", 12)
    events = history.events[1001]
    history.events[1001] = [*events[:9], events[10], events[9], *events[11:], (900, events[0][1])]
    history.store(1001)
    lasting = event_of(ORDERS, 112)._replace(expires_at_us=NOW_US + HOUR_US)
    history.events[1003][112 - 81] = 112, lasting
    _store_altered(history, 1003)
    history.undeliver(DESK, 112)
    history.path(1002).unlink()
    history.segment(1003)["file_sha256"] = "0" * 64
    history.tables["live"][0].update(events=37, missing=[81, 95, 96])
    history.segment(1004)["bytes"] += 1
    history.segment(1006)["fault"] = "wrong_range"
    history.stream(TICKS)["head"] = 45
    history.delivery(DESK, 92)["registrations"] = [1, 2]
    where = {"endpoint_id": GUESTS, "segment_id": 1003, "sequence": 101, "run": 0}
    made = {**where, "stream_id": ORDERS, "partition_id": 3, "registrations": [3]}
    times = {"created_at_us": time_of(101), "attempts": 0}
    history.tables["deliveries"].append({**made, **times, "state": "pending"})
    _repeat_number_121(history)
    forget_the_attempt(history)  # one more than the table of findings may have
    history.tables["retired"].append(
        {"parent": "deliveries", "name": "deliveries_p2", "segments_from": [1, 1005],
         "segments_to": [1002, 1006], "rows": 5, "at_us": NOW_US, "archived": False}
    )  # fmt: skip
    audited = audit(spark, history)
    assert audited.found == [
        Found("missing_file", "orders", 1002, 41, 80),
        Found("wrong_range", "ticks", 1006, 21, 40),
        Found("out_of_order", "orders", 1001, 10, 10),
        Found("out_of_bounds", "orders", 1001, 900, 900),
        Found("altered", "orders", 1003, 81, 120),
        Found("missing_segment", "ticks", None, 41, 45),
        Found("missing_live", "orders", 1003, 81, 81),
        Found("missing_live", "orders", 1003, 95, 96),
        Found("duplicate_number", "orders", 1004, 130, 130),
        Found("not_delivered", "orders", 1003, 112, 112, DESK),
        Found("not_matched", "orders", 1003, 101, 101, GUESTS),
        Found("wrong_registrations", "orders", 1003, 92, 92, DESK),
    ]
    assert audited.result.details["finding_count"] == 13, "all are counted"
    [cut] = audited.result.details["cut"]
    assert (cut["table"], cut["rows"], cut["of"], cut["since"]) == ("findings", 12, 13, None)
    assert "findings" in audited.result.summary
    assert cut["words"] in audited.result.about["findings.csv"]
    assert cut["words"] in (audited.folder / "report.html").read_text()


def _repeat_number_121(history: History) -> None:
    """Event 130 has the producer's number of event 121: a fault if the hub had known both."""
    history.events[1004] = [*history.events[1004][:-1], (130, event_of(ORDERS, 121))]
    _store_altered(history, 1004)


def _store_altered(history: History, segment: int) -> None:
    history.store(segment)
    history.segment(segment)["bytes"] = None


def test_where_all_is_well_or_can_be_explained_nothing_is_found(
    spark: SparkSession, history: History
) -> None:
    """Delivered late, twice or never; not forwarded yet, on its way, skipped with a notice, gone
    with a partition, expired before it was matched or before it was posted, for groups, retired,
    forgotten; a number that came again from another client of the same name.
    """
    _deliver_otherwise(history)
    pending = _leave_out(history)
    audited = audit(spark, history)
    assert audited.found == []
    figures = audited.result.figures
    rows = [row for row in history.tables["deliveries"] if "gap_reason" not in row]
    written = [row for row in rows if row["state"] != "expired"]
    owed = len(written) + 2
    assert audited.result.verdict == "ok"
    assert audited.result.summary.startswith("Nothing was lost: 153 events in 7 segments")
    assert audited.result.summary.endswith(". Not known: 2 matches.")
    assert (figures["events"], figures["missing"], figures["dropped"]) == (153, 0, 20)
    assert (figures["skipped"], figures["expired"], figures["unknown"]) == (2, 2, 2)
    assert figures["pending"] == 2  # both that the fan-out has still to write
    matched = owed - 1 + 2 + 2 + 2  # of one endpoint of the fan-out nothing else is known
    assert (figures["matched"], figures["owed"], figures["delivered"]) == (matched, owed, owed - 3)
    assert (figures["dead_lettered"], figures["retried"], figures["late"]) == (1, 1, 2)
    assert (figures["repeats"], figures["undelivered"]) == (1, 2)
    assert (figures["p50_ms"], figures["p95_ms"]) == (20.0, 20.0)
    ticks = next(row for row in audited.rows("streams") if row["stream"] == "ticks")
    assert (ticks["dropped"], ticks["dropped_why"], ticks["unchecked"]) == (20, "age", 0)
    till = next(row for row in audited.rows("producers") if row["stream"] == "orders")
    seen = (till["numbers"], till["lowest"], till["highest"], till["left_out"])
    assert seen == (130, 2, 258, 127)
    _check_by_hand([*written, pending], audited.rows("registrations_hourly"))
    told = {row["client"]: row for row in audited.result.details["clients"]}
    assert told["desk"]["first_told"] == "2025-10-09T09:01:00.020000Z"
    assert told["desk"]["told"] + told["guests"]["told"] == owed - 3
    assert [line["kind"] for line in audited.lines("findings")] == []
    page = (audited.folder / "report.html").read_text()
    assert page.count("<svg") == 3 and "Nothing was lost" in page
    [what, rows, groups, numbers] = audited.result.details["not_known"]
    assert "attempts_20251009" in what["what"] and "2 matches" in groups["what"]
    assert "deliveries_p2" in rows["what"]
    assert numbers["what"] == "1 numbers that producers used again"


def _leave_out(history: History) -> dict[str, Any]:
    """The delivery that is on its way."""
    tables = history.tables
    history.stream(ORDERS)["forwarded"] = 126
    for row in [row for row in tables["deliveries"] if row["sequence"] > 126]:
        history.remove("attempts", *history.attempts(row))
        history.remove("deliveries", row)
    pending = history.delivery(DESK, 117)
    history.undeliver(DESK, 117)
    fan = {"stream_id": ORDERS, "segment_id": 1003, "sequence": 117}
    tables["fanouts"].append({**fan, "endpoints": [3, DESK, 13], "total": 3, "done": 1})
    for sequence in (7, 12):
        history.undeliver(DESK, sequence)
    notice = {**history.delivery(DESK, 17), "sequence": 13, "gap_first": 6, "gap_reason": "quota"}
    tables["deliveries"] += [*_notices_of_another_stream(history), notice]
    gone = history.delivery(GUESTS, 88)
    history.remove("attempts", *history.attempts(gone))
    tables["retired"].append(
        {"parent": "attempts", "name": "attempts_20251009", "day": "2025-10-09", "rows": 9,
         "at_us": NOW_US, "archived": False}
    )  # fmt: skip
    for sequence, fields in {
        92: {"expires_at_us": time_of(93)},
        97: {"audience": ("staff",)},
        102: {"destinations": ("guests",)},
    }.items():
        history.events[1003][sequence - 81] = (
            sequence,
            event_of(ORDERS, sequence)._replace(**fields),
        )
        history.undeliver(DESK, sequence)
    _store_altered(history, 1003)
    _repeat_number_121(history)
    next(row for row in tables["producers"] if row["stream_id"] == ORDERS)["highest_number"] = 258
    for id in (3, 4):  # one was deleted, and its name given to the other; events have names alone
        tables["clients"].append({"id": id, **ZONE, "name": "till", "groups": []})
    tables["live"].clear()
    history.undeliver(GUESTS, 3)  # of 1001, as the partition that went had others
    tables["retired"].append(
        {"parent": "deliveries", "name": "deliveries_p2", "segments_from": [1, 1001],
         "segments_to": [9, 1001], "rows": 5, "at_us": NOW_US, "archived": False}
    )  # fmt: skip
    tables["types"].append(
        {"zone_id": ZONE["zone_id"], "domain": "shop", "type": "order.paid", "versions": 1,
         "lineage": ["order.paid", "order"]}
    )  # fmt: skip
    return pending


def _notices_of_another_stream(history: History) -> list[dict[str, Any]]:
    """More than were looked at once: those of the streams after it were forgotten, and what they
    explain was called undelivered.
    """
    one = {
        **history.delivery(DESK, 17),
        "stream_id": SYSTEM,
        "segment_id": 1,
        "gap_reason": "quota",
    }
    return [{**one, "sequence": n, "gap_first": n} for n in range(2, 2 * 10_001, 2)]


def _check_by_hand(deliveries: list[dict[str, Any]], hourly: list[dict[str, Any]]) -> None:
    expected: dict[tuple[int, int], int] = {}
    for row in deliveries:
        hour = time_of(row["sequence"]) // HOUR_US * HOUR_US
        for registration in row["registrations"]:
            key = registration, hour
            expected[key] = expected.get(key, 0) + 1
    assert {(row["registration_id"], row["hour_us"]): row["owed"] for row in hourly} == expected
    assert len(expected) > 4  # several hours


def _deliver_otherwise(history: History) -> None:
    dead, retried = history.delivery(GUESTS, 103), history.delivery(DESK, 112)
    dead["state"] = "dead_lettered"
    over = history.delivery(DESK, 107)
    over.update(state="expired", attempts=0)
    history.remove("attempts", *history.attempts(over))
    history.attempts(dead)[0]["outcome"] = "status"
    [good] = history.attempts(retried)
    history.tables["attempts"] += [
        {**good, "number": 2, "attempted_at_us": good["attempted_at_us"] + 120_000_000},
        {
            **good,
            "number": 3,
            "attempted_at_us": good["attempted_at_us"] + 130_000_000,
        },  # the answer was lost
    ]
    good["outcome"] = "timeout"
    retried["attempts"] = 3
    retried["finished_at_us"] += 120_000_000


def test_however_many_numbers_a_producer_leaves_out_they_are_counted(spark: SparkSession) -> None:
    last = (1 << 63) - 1
    runs = [(1, "till", 1, window, number, number) for window in (1, 2) for number in (1, last)]
    columns = "stream_id long, client string, incarnation long, window long, low long, high long"
    [row] = producer_figures(spark.createDataFrame(runs, columns)).collect()
    assert (row.numbers, row.lowest, row.highest, row.left_out) == (4, 1, last, last)


def test_of_a_table_of_hours_the_latest_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUDIT_ROWS_MAX", 4)
    rows = [(hour * HOUR_US, id) for hour in (1, 2, 3) for id in (1, 2)]
    frame = spark.createDataFrame(rows, "hour_us long, id long")
    cut = write_latest_hours(frame, ("hour_us", "id"), tmp_path, tmp_path / "hourly")
    assert cut == Truncation("hourly", 4, 6, 2 * HOUR_US)
    assert cut.since == "1970-01-01T02:00:00.000000Z"
    kept = pq.read_table(tmp_path / "hourly.parquet").to_pylist()
    assert [(row["hour_us"], row["id"]) for row in kept] == rows[2:]
    assert (tmp_path / "hourly.csv").read_text().count("\n") == 1 + 4


@pytest.mark.parametrize(
    ("hours", "since_us"),
    [
        ([], None),
        ([(7, 2), (6, 2)], None),
        ([(7, 2), (6, 2), (5, 1)], 6),
        ([(7, 9), (6, 1)], 7),  # the latest stays; its first rows are written
        ([(7, 9)], None),
        ([(7, 4), (None, 1)], 7),
    ],
)
def test_hours_that_fit_stay_whole(hours: list[Any], since_us: int | None) -> None:
    assert first_hour(hours, 4) == since_us


def test_what_too_much_waited_for_is_dropped_and_no_gap_for_others(spark: SparkSession) -> None:
    """A notice of a backlog is the last delivery that it stands for. As a gap of the stream it
    would excuse what other endpoints did not get.
    """
    rows = [
        (3, 1, 5, 0, [7], "dropped", None, None),
        (3, 1, 6, 0, [7, 9], "dropped", None, None),  # was the notice, of 9 too, before the next
        (3, 1, 7, 0, [7, 9], "delivered", 5, "backlog"),
        (3, 1, 8, 0, [7], "delivered", None, None),
        (3, 1, 20, 0, [7], "pending", 15, "quota"),
    ]
    found = spark.createDataFrame(
        [(*row, 0, 0, 0) for row in rows],
        "endpoint_id long, segment_id long, sequence long, run long, registrations array<long>,"
        " state string, gap_first long, gap_reason string, attempts long, created_at_us long,"
        " finished_at_us long",
    )
    fanouts = spark.createDataFrame(
        [], "segment_id long, sequence long, endpoints array<long>, done long"
    )
    there = deliveries.stored_deliveries(found, fanouts).orderBy("sequence")
    assert [(row.sequence, row.state, row.told) for row in there.collect()] == [
        (5, "dropped", None), (6, "dropped", None), (7, "dropped", None), (8, "delivered", [7]),
    ]  # fmt: skip
    held = spark.createDataFrame(
        [(1, "db", 1, 99)], "stream_id long, source string, first long, last long"
    )
    of_stream = found.withColumn("stream_id", sf.lit(1))
    ranges = [(row["from"], row["to"]) for row in gap_ranges(of_stream, held).collect()]
    assert ranges == [(15, 20)]
