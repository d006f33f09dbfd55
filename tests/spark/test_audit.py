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
from tests.spark.audited import ExpectedFinding, audit
from tests.spark.history import (
    DESK,
    GUESTS,
    NOW_US,
    ORDERS,
    SYSTEM,
    TICKS,
    ZONE,
    JobHistory,
    event_of,
    time_of,
)
from tests.spark.planted import SIX

HOUR_US = 3_600_000_000


@pytest.mark.slow
@pytest.mark.timeout(300)  # Spark is cold
def test_each_planted_fault_is_reported_and_nothing_else(
    spark: SparkSession, history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is in a segment or table of its own, so that none hides another. The table of
    findings is too long by one and is truncated.
    """
    cut, at_an_edge, inside, repeated, undelivered, no_attempt = (plant(history) for plant in SIX)
    _plant_others(history)
    history.remove("attempts", *history.attempts(history.delivery(DESK, 107)))
    expected = [
        ExpectedFinding("missing_file", "returns", 1012, 11, 20),
        cut,
        ExpectedFinding("wrong_range", "returns", 1013, 21, 30),
        at_an_edge,
        inside,
        repeated,
        ExpectedFinding("out_of_order", "returns", 1011, 5, 5),
        ExpectedFinding("out_of_bounds", "returns", 1011, 900, 900),
        ExpectedFinding("altered", "orders", 1003, 81, 120),
        ExpectedFinding("missing_segment", "ticks", None, 41, 45),
        ExpectedFinding("missing_live", "orders", 1003, 81, 81),
        ExpectedFinding("missing_live", "orders", 1003, 95, 96),
        ExpectedFinding("duplicate_number", "orders", 1004, 130, 130),
        undelivered,
        ExpectedFinding("not_delivered", "orders", 1003, 112, 112, DESK),
        ExpectedFinding("not_matched", "orders", 1003, 101, 101, GUESTS),
        ExpectedFinding("wrong_registrations", "orders", 1003, 92, 92, DESK),
        no_attempt,
    ]
    monkeypatch.setattr(limits, "AUDIT_ROWS_MAX", len(expected))
    audited = audit(spark, history)
    assert audited.findings == expected
    assert audited.result.verdict == "problems"
    assert audited.result.details["finding_count"] == len(expected) + 1, "all are counted"
    assert [line["kind"] for line in audited.lines("findings")] == [one.kind for one in expected]
    [truncated] = audited.result.details["truncated"]
    rows = truncated["table"], truncated["rows"], truncated["total"], truncated["since"]
    assert rows == ("findings", len(expected), len(expected) + 1, None)
    assert "findings" in audited.result.summary
    assert truncated["note"] in audited.result.about["findings.csv"]
    assert truncated["note"] in (audited.folder / "report.html").read_text()


def _plant_others(history: JobHistory) -> None:
    """Plant the kinds of faults that are not among the six."""
    history.add_stream(102, "returns", {1011: (1, 10), 1012: (11, 20), 1013: (21, 30)})
    events = history.events[1011]
    history.events[1011] = [*events[:4], events[5], events[4], *events[6:], (900, events[0][1])]
    history.store(1011)
    history.path(1012).unlink()
    history.segment(1013)["fault"] = "wrong_range"
    lasting = event_of(ORDERS, 112)._replace(expires_at_us=NOW_US + HOUR_US)
    history.events[1003][112 - 81] = 112, lasting
    _store_altered(history, 1003)
    history.remove_delivery(DESK, 112)
    history.segment(1003)["file_sha256"] = "0" * 64
    history.tables["live"][0].update(events=37, missing=[81, 95, 96])
    history.segment(1004)["bytes"] += 1
    history.stream(TICKS)["head"] = 45
    history.delivery(DESK, 92)["registrations"] = [1, 2]
    where = {"endpoint_id": GUESTS, "segment_id": 1003, "sequence": 101}
    made = {**where, "stream_id": ORDERS, "partition_id": 3, "registrations": [3]}
    times = {"created_at_us": time_of(101), "attempts": 0}
    history.tables["deliveries"].append({**made, **times, "state": "pending"})
    _repeat_number_121(history)
    history.tables["retired"].append(
        {"parent": "deliveries", "name": "deliveries_p2", "segments_from": [1, 1005],
         "segments_to": [1002, 1006], "rows": 5, "at_us": NOW_US, "archived": False}
    )  # fmt: skip


def _repeat_number_121(history: JobHistory) -> None:
    """Give event 130 the producer number of event 121: a fault if the hub still knew the first."""
    history.events[1004] = [*history.events[1004][:-1], (130, event_of(ORDERS, 121))]
    _store_altered(history, 1004)


def _store_altered(history: JobHistory, segment: int) -> None:
    history.store(segment)
    history.segment(segment)["bytes"] = None


def test_explained_deviations_are_not_findings(spark: SparkSession, history: JobHistory) -> None:
    """Deliveries that are late, repeated, dead-lettered, pending, not forwarded yet, skipped with a
    notice, in a dropped partition, expired before the match or before the POST, or for groups; and
    a producer number reused by another client of the same name. The inputs come in several files
    and another order, and joins are spread, on which no figure depends.
    """
    _deliver_otherwise(history)
    pending = _leave_undelivered(history)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    try:
        audited = audit(spark, history, files=3, backwards=True)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions or "1")
    assert audited.findings == []
    figures = audited.result.figures
    rows = [row for row in history.tables["deliveries"] if "gap_reason" not in row]
    written = [row for row in rows if row["state"] != "expired"]
    expected = len(written) + 2
    assert audited.result.verdict == "ok"
    assert audited.result.summary.startswith("Findings: 0. Events: 153 in 7 segments. ")
    assert audited.result.summary.endswith(". Unknown: 2 matches.")
    assert (figures["events"], figures["missing"], figures["dropped"]) == (153, 0, 20)
    assert (figures["skipped"], figures["expired"], figures["unknown"]) == (2, 2, 2)
    assert figures["pending"] == 2  # the two that the fan-out has yet to write
    matched = expected - 1 + 2 + 2 + 2  # one endpoint of the fan-out is not among the inputs
    assert (figures["matched"], figures["deliveries"]) == (matched, expected)
    assert figures["delivered"] == expected - 3
    assert (figures["dead_lettered"], figures["retried"], figures["late"]) == (1, 1, 2)
    assert (figures["repeats"], figures["undelivered"]) == (1, 2)
    assert (figures["p50_ms"], figures["p95_ms"]) == (20.0, 20.0)
    ticks = next(row for row in audited.rows("streams") if row["stream"] == "ticks")
    assert (ticks["dropped"], ticks["drop_reasons"], ticks["unchecked"]) == (20, "age", 0)
    till = next(row for row in audited.rows("producers") if row["stream"] == "orders")
    numbers = (till["numbers"], till["lowest"], till["highest"], till["omitted"])
    assert numbers == (130, 2, 258, 127)
    _check_hourly([*written, pending], audited.rows("registrations_hourly"))
    clients = {row["client"]: row for row in audited.result.details["clients"]}
    assert clients["desk"]["first_delivered"] == "2025-10-09T09:01:00.020000Z"
    assert clients["desk"]["delivered"] + clients["guests"]["delivered"] == expected - 3
    assert [line["kind"] for line in audited.lines("findings")] == []
    page = (audited.folder / "report.html").read_text()
    assert page.count("<svg") == 3 and "Findings: 0" in page
    [attempts, partition, matches, reused] = audited.result.details["unknown"]
    assert "attempts_20251009" in attempts["subject"] and "2 matches" in matches["subject"]
    assert "deliveries_p2" in partition["subject"]
    assert reused["subject"] == "1 ranges of reused producer numbers"


def _leave_undelivered(history: JobHistory) -> dict[str, Any]:
    """Remove deliveries for reasons that are no faults; return the pending one."""
    tables = history.tables
    history.stream(ORDERS)["forwarded"] = 126
    for row in [row for row in tables["deliveries"] if row["sequence"] > 126]:
        history.remove("attempts", *history.attempts(row))
        history.remove("deliveries", row)
    pending = history.delivery(DESK, 117)
    history.remove_delivery(DESK, 117)
    fan = {"stream_id": ORDERS, "segment_id": 1003, "sequence": 117}
    tables["fanouts"].append({**fan, "endpoints": [3, DESK, 13], "total": 3, "done": 1})
    for sequence in (7, 12):
        history.remove_delivery(DESK, sequence)
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
        history.remove_delivery(DESK, sequence)
    _store_altered(history, 1003)
    _repeat_number_121(history)
    next(row for row in tables["producers"] if row["stream_id"] == ORDERS)["highest_number"] = 258
    for id in (
        3,
        4,
    ):  # a deleted client and its successor of the same name; events carry names only
        tables["clients"].append({"id": id, **ZONE, "name": "till", "groups": []})
    tables["live"].clear()
    history.remove_delivery(
        GUESTS, 3
    )  # in segment 1001, whose other deliveries were in the dropped partition
    tables["retired"].append(
        {"parent": "deliveries", "name": "deliveries_p2", "segments_from": [1, 1001],
         "segments_to": [9, 1001], "rows": 5, "at_us": NOW_US, "archived": False}
    )  # fmt: skip
    tables["types"].append(
        {"zone_id": ZONE["zone_id"], "domain": "shop", "type": "order.paid", "versions": 1,
         "lineage": ["order.paid", "order"]}
    )  # fmt: skip
    return pending


def _notices_of_another_stream(history: JobHistory) -> list[dict[str, Any]]:
    """Return more notices than one batch held. Regression: the notices of later streams were then
    ignored, and what they explain was reported as undelivered.
    """
    one = {
        **history.delivery(DESK, 17),
        "stream_id": SYSTEM,
        "segment_id": 1,
        "gap_reason": "quota",
    }
    return [{**one, "sequence": n, "gap_first": n} for n in range(2, 2 * 10_001, 2)]


def _check_hourly(deliveries: list[dict[str, Any]], hourly: list[dict[str, Any]]) -> None:
    expected: dict[tuple[int, int], int] = {}
    for row in deliveries:
        hour = time_of(row["sequence"]) // HOUR_US * HOUR_US
        for registration in row["registrations"]:
            key = registration, hour
            expected[key] = expected.get(key, 0) + 1
    assert {
        (row["registration_id"], row["hour_us"]): row["deliveries"] for row in hourly
    } == expected
    assert len(expected) > 4  # several hours


def _deliver_otherwise(history: JobHistory) -> None:
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


def test_any_number_of_omitted_producer_numbers_is_counted(spark: SparkSession) -> None:
    last = (1 << 63) - 1
    runs = [(1, "till", 1, window, number, number) for window in (1, 2) for number in (1, last)]
    columns = "stream_id long, client string, incarnation long, window long, low long, high long"
    [row] = producer_figures(spark.createDataFrame(runs, columns)).collect()
    assert (row.numbers, row.lowest, row.highest, row.omitted) == (4, 1, last, last)


def test_a_long_hourly_table_keeps_its_latest_hours(
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
        ([(7, 9), (6, 1)], 7),  # the latest hour stays; only its first rows are written
        ([(7, 9)], None),
        ([(7, 4), (None, 1)], 7),
    ],
)
def test_the_hours_that_fit_are_whole(hours: list[Any], since_us: int | None) -> None:
    assert first_hour(hours, 4) == since_us


def test_a_backlog_notice_is_a_dropped_delivery_and_not_a_gap(spark: SparkSession) -> None:
    """A backlog notice took the place of the last delivery that it covers. As a gap of the stream
    it would excuse deliveries missing at other endpoints.
    """
    rows = [
        (3, 1, 5, [7], "dropped", None, None),
        (3, 1, 6, [7, 9], "dropped", None, None),  # was the notice, for 9 too, before the next
        (3, 1, 7, [7, 9], "delivered", 5, "backlog"),
        (3, 1, 8, [7], "delivered", None, None),
        (3, 1, 20, [7], "pending", 15, "quota"),
    ]
    found = spark.createDataFrame(
        [(*row, 0, 0, 0) for row in rows],
        "endpoint_id long, segment_id long, sequence long, registrations array<long>,"
        " state string, gap_first long, gap_reason string, attempts long, created_at_us long,"
        " finished_at_us long",
    )
    fanouts = spark.createDataFrame(
        [], "segment_id long, sequence long, endpoints array<long>, done long"
    )
    stored = deliveries.stored_deliveries(found, fanouts).orderBy("sequence")
    assert [(row.sequence, row.state, row.stored_registrations) for row in stored.collect()] == [
        (5, "dropped", None), (6, "dropped", None), (7, "dropped", None), (8, "delivered", [7]),
    ]  # fmt: skip
    held = spark.createDataFrame(
        [(1, "db", 1, 99)], "stream_id long, source string, first long, last long"
    )
    of_stream = found.withColumn("stream_id", sf.lit(1))
    ranges = [(row["from"], row["to"]) for row in gap_ranges(of_stream, held).collect()]
    assert ranges == [(15, 20)]
