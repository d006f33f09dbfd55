"""The job `audit`: proves that nothing was lost, or reports what was. Spark module.

This module reads and writes; the other modules of the package contain the checks.
"""

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from eventhub.base import limits
from sparkjobs.arrow_dataset import ds
from sparkjobs.audit import deliveries, details, event_log, figures, findings, listeners, scan
from sparkjobs.audit.gaps import gap_ranges
from sparkjobs.audit.output import Truncation, stored, write_latest_hours, write_table
from sparkjobs.audit.report import report
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.matchers import build_matchers
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.segment_files import NONE, open_table, read_rows
from sparkjobs.tables import DELIVERIES, RETIRED, SEGMENTS

_BY_HOUR = "by registration and the hour in which events were appended"
_ABOUT = {
    "report.html": "The audit as a page.",
    "findings": "One row per fault.",
    "streams": "Events of each stream: checked, missing, duplicate, dropped.",
    "producers": "Numbers of each producer incarnation: used and omitted.",
    "registrations_hourly": f"Matches and deliveries {_BY_HOUR}.",
    "clients": "Deliveries to each client, by hour of delivery.",
    "hours": "Events and deliveries of the whole hub, by hour of append.",
    "listeners": "Events expected by and delivered to each client's listeners, in total.",
}
ABOUT = {f"{name}.{kind}": text for name, text in _ABOUT.items() for kind in ("csv", "parquet")} | {
    "report.html": _ABOUT["report.html"]
}
_STREAM_FIGURES = ("segments", "events", "missing", "duplicates", "dropped", "unchecked")
# no faults of the hub: what it had expired, and what clients skipped
NOTED = (event_log.FORGOTTEN_NUMBER, listeners.SKIPPED)
FAULTS, _KIND = "faults", pa.schema([("kind", pa.string())])  # a folder of the job's work
_JOIN_ROWS = 500_000  # per shuffle partition, so that it sorts in memory


class AuditTables(NamedTuple):
    """The input tables of the audit."""

    streams: DataFrame
    segments: DataFrame
    live: DataFrame
    producers: DataFrame
    versions: DataFrame
    endpoints: DataFrame
    deliveries: DataFrame
    attempts: DataFrame
    fanouts: DataFrame
    retired: DataFrame
    clients: DataFrame
    listeners: DataFrame


class ScanFacts(NamedTuple):
    """The facts of the scan, by structure (scan.FACTS)."""

    expected: DataFrame
    fault: DataFrame
    unchecked: DataFrame
    hour: DataFrame
    number_range: DataFrame
    read: DataFrame


class Assessment(NamedTuple):
    """The assessed faults and deliveries, on disk."""

    faults: DataFrame
    deliveries: DataFrame
    clients: DataFrame  # by client and hour


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Run the audit and write the files of `ABOUT` into the result's folder."""
    tables = AuditTables(*(table(spark, spec, name) for name in AuditTables._fields))
    work, folder = Path(spec.work), Path(spec.result)
    folder.mkdir(parents=True, exist_ok=True)
    phases.begin("building matchers")
    build_matchers(tables.versions, tables.streams, spec.work).count()
    phases.begin("reading segments")
    facts = _scan(spark, spec, tables)
    phases.begin("auditing listeners")
    of_listeners = listeners.audit_listeners(
        spec,
        listeners.ListenerTables(tables.listeners, tables.segments, tables.streams, tables.clients),
    )
    phases.begin("comparing deliveries")
    assessed = _assess(spark, spec, tables, facts, of_listeners.faults)
    phases.begin("writing findings")
    found = findings.findings(assessed.faults, tables.streams, tables.segments, tables.endpoints)
    cuts = [write_table(found, findings.SORTED_BY, work, folder / "findings")]
    phases.begin("writing figures")
    cuts += _write_figures(tables, facts, assessed, work, folder)
    named = listeners.with_names(of_listeners.clients, tables.streams)
    cuts.append(write_table(named, listeners.SORTED_BY, work, folder / "listeners"))
    phases.begin("writing the report")
    return _result(spec, tables, assessed, [cut for cut in cuts if cut is not None])


def _scan(spark: SparkSession, spec: JobSpec, tables: AuditTables) -> ScanFacts:
    """Read each segment once."""
    segments = scan.segments_to_scan(tables.segments, tables.streams)
    most = limits.AUDIT_TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    tasks = max(min(_readable_segments(spec), most), 1)
    paths = ExecutorPaths(spec.inputs, spec.work, spec.now_us)
    facts = scan.scan(segments.repartition(tasks), paths, spec.archive_url)
    facts = stored(facts, spec.work, "facts")
    return ScanFacts(
        *(facts.where(sf.col(name).isNotNull()).select(f"{name}.*") for name in ScanFacts._fields)
    )


def _readable_segments(spec: JobSpec) -> int:
    readable = (ds.field("source") != NONE) & (ds.field("last") >= ds.field("first"))
    found: int = open_table(spec.inputs, "segments", SEGMENTS).count_rows(filter=readable)
    return found


def _assess(
    spark: SparkSession,
    spec: JobSpec,
    tables: AuditTables,
    facts: ScanFacts,
    listener_faults: DataFrame,
) -> Assessment:
    compared = deliveries.compare(
        facts.expected,
        deliveries.stored_deliveries(tables.deliveries, tables.fanouts),
        deliveries.attempts_by_delivery(tables.attempts),
    )
    rows = open_table(spec.inputs, "deliveries", DELIVERIES).count_rows()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    least = int(before or 1)
    spark.conf.set("spark.sql.shuffle.partitions", max(least, rows // _JOIN_ROWS))
    of_segment = deliveries.segment_facts(
        tables.segments, tables.streams, facts.read, tables.retired
    )
    skipped = stored(gap_ranges(tables.deliveries, tables.segments), spec.work, "gaps")
    assessed = deliveries.assess(compared, of_segment, skipped, _unknown_days(spec), spec.now_us)
    assessed = stored(assessed, spec.work, "assessed")
    spark.conf.set("spark.sql.shuffle.partitions", least)
    faults = stored(_faults(tables, facts, assessed, listener_faults), spec.work, FAULTS)
    is_fault = ~sf.col("kind").isin(*NOTED)
    expected = assessed.where(sf.col("outcome") != deliveries.NOT_EXPECTED)
    zones = tables.streams.select("zone_id", "zone").distinct()
    clients = figures.by_client(expected, tables.endpoints).join(zones, "zone_id", "left")
    return Assessment(
        faults.where(is_fault),
        expected,
        stored(clients, spec.work, "by-client"),
    )


def _faults(
    tables: AuditTables, facts: ScanFacts, assessed: DataFrame, listener_faults: DataFrame
) -> DataFrame:
    of_log = _log_faults(tables, facts)
    whole = event_log.whole_streams(tables.segments, facts.unchecked, of_log, facts.read)
    numbers = facts.number_range
    faults = findings.pad(of_log)
    for part in (
        event_log.repeated_numbers(numbers, tables.segments, tables.streams, tables.clients),
        event_log.lost_numbers(tables.producers, numbers, whole),
        deliveries.delivery_faults(assessed, facts.unchecked),
        listener_faults,
    ):
        faults = faults.unionByName(findings.pad(part))
    return faults


def _log_faults(tables: AuditTables, facts: ScanFacts) -> DataFrame:
    return facts.fault.unionByName(
        event_log.discontinuities(tables.segments, tables.streams)
    ).unionByName(event_log.live_faults(tables.segments, tables.live))


def _unknown_days(spec: JobSpec) -> list[str]:
    """Return the days whose attempts were dropped without being archived."""
    return sorted({row["day"] for row in _unarchived(spec) if row["parent"] == "attempts"})


def _unarchived(spec: JobSpec) -> list[dict[str, Any]]:
    """Return the partitions that were dropped with rows that are not archived."""
    where = ~ds.field("archived") & (ds.field("rows") > 0)
    rows = read_rows(spec.inputs, "retired", RETIRED, where)
    return sorted(rows, key=itemgetter("parent", "name"))


def _write_figures(
    tables: AuditTables, facts: ScanFacts, assessed: Assessment, work: Path, folder: Path
) -> list[Truncation | None]:
    names = tables.streams.select(
        sf.col("id").alias("stream_id"), "zone_id", "zone", sf.col("name").alias("stream")
    )
    events = facts.hour.groupBy("hour_us").agg(sf.sum("events").alias("events"))
    hours = events.join(figures.by_hour(assessed.deliveries), "hour_us", "full_outer").where(
        "hour_us is not null"
    )
    hours = hours.fillna(0, [name for name in hours.columns if name not in figures.PERCENTILES])
    of_log = event_log.stream_figures(tables.segments, assessed.faults, facts.read)
    by_stream = names.join(of_log, "stream_id").drop("zone_id")
    numbers = event_log.producer_figures(facts.number_range)
    producers = names.join(numbers, "stream_id").drop("zone_id")
    bounded = {
        "streams": (by_stream, ("zone", "stream", "stream_id")),
        "producers": (producers, ("zone", "stream", "stream_id", "client", "incarnation")),
        "hours": (hours, ("hour_us",)),
    }
    hourly = {  # their size grows with the number of hours
        "registrations_hourly": (
            figures.by_registration(assessed.deliveries, tables.endpoints, tables.clients),
            ("registration_id", "hour_us"),
        ),
        "clients": (assessed.clients, ("zone", "client", "hour_us")),
    }
    return [
        *(write_table(frame, by, work, folder / name) for name, (frame, by) in bounded.items()),
        *(
            write_latest_hours(frame, by, work, folder / name)
            for name, (frame, by) in hourly.items()
        ),
    ]


def _result(
    spec: JobSpec, tables: AuditTables, assessed: Assessment, cuts: Sequence[Truncation]
) -> JobResult:
    folder = Path(spec.result)
    kinds, streams = _kinds(spec), details.streams(folder)
    noted = {kind: kinds.pop(kind) for kind in NOTED if kind in kinds}
    totals = figures.totals(assessed.deliveries).first()
    of_deliveries = _zero_filled(totals)
    counts = {
        **{name: sum(row[name] for row in streams) for name in _STREAM_FIGURES},
        **of_deliveries,
        "findings": kinds.total(),
    }
    hours = details.hours(folder)
    clients = figures.client_totals(assessed.clients).orderBy(
        sf.desc("delivered"), "zone", "client"
    )
    shown = {
        "findings": details.first_rows(folder, "findings"),
        "finding_count": kinds.total(),
        "streams": streams[: limits.AUDIT_SHOWN_MAX],
        "deliveries": of_deliveries,
        "hours": details.with_times(hours),
        "clients": details.with_times(
            [row.asDict() for row in clients.limit(limits.AUDIT_SHOWN_MAX).collect()]
        ),
        "listeners": details.first_rows(folder, "listeners"),
        "unknown": details.unknowns(
            _unarchived(spec)[: limits.AUDIT_SHOWN_MAX],
            of_deliveries["unknown"],
            noted,
        ),
        "truncated": [cut.json() for cut in cuts],
    }
    summary = details.summary(counts, [cut.table for cut in cuts])
    (folder / "report.html").write_text(report(summary, shown, of_deliveries, kinds, hours))
    return JobResult(summary, counts, "problems" if kinds else "ok", _about(cuts), shown)


def _kinds(spec: JobSpec) -> Counter[str]:
    """Count the stored faults of each kind."""
    found: Counter[str] = Counter()
    for batch in open_table(spec.work, FAULTS, _KIND).to_batches():
        found.update(batch.column("kind").to_pylist())
    return found


def _about(cuts: Sequence[Truncation]) -> dict[str, str]:
    """Describe the files, with a note on truncated tables."""
    notes = {cut.table: f" {cut.note()}" for cut in cuts}
    return {name: text + notes.get(name.partition(".")[0], "") for name, text in ABOUT.items()}


def _zero_filled(totals: Any) -> dict[str, Any]:
    """Replace null sums by 0; percentiles of nothing stay null."""
    return {
        name: value if name in figures.PERCENTILES else value or 0
        for name, value in totals.asDict().items()
    }
