"""The job `audit`: proves that nothing was lost, or says what was. Spark module.

It reads and writes; what is judged, and how, stands in the modules beside it.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from eventhub.base import limits
from sparkjobs.audit import deliveries, details, event_log, figures, findings, listeners, scan
from sparkjobs.audit.gaps import gap_ranges
from sparkjobs.audit.output import Truncation, write_latest_hours, write_table
from sparkjobs.audit.report import report
from sparkjobs.expected_deliveries import ExecutorPaths
from sparkjobs.inputs import table
from sparkjobs.job_spec import JobSpec
from sparkjobs.matchers import build_matchers
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult

_BY_HOUR = "by registration and the hour in which events were appended"
_ABOUT = {
    "report.html": "The audit for people.",
    "findings": "Everything that is wrong, a row for each fault.",
    "streams": "Every stream: what was checked, missing, dropped.",
    "producers": "Every producer's incarnations: how many numbers, and how many it left out.",
    "registrations_hourly": f"What was matched, owed, delivered, late, {_BY_HOUR}.",
    "clients": "What each client was told, by the hour of telling.",
    "hours": "Events and deliveries of the whole hub by hour.",
    "replays": "Deliveries of replays, by run and stream.",
    "listeners": "What each client was told over its connections, over all its incarnations.",
}
ABOUT = {f"{name}.{kind}": text for name, text in _ABOUT.items() for kind in ("csv", "parquet")} | {
    "report.html": _ABOUT["report.html"]
}
_OF_STREAMS = ("segments", "events", "missing", "duplicates", "dropped", "unchecked")
# what the hub could not know any more, and what clients left out by themselves
NOTED = (event_log.FORGOTTEN_NUMBER, listeners.SKIPPED)
_JOIN_ROWS = 500_000  # of a shuffle's partition: sorted in memory


class AuditTables(NamedTuple):
    """Of the inputs."""

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
    """Of the scan."""

    owed: DataFrame
    fault: DataFrame
    unseen: DataFrame
    hour: DataFrame
    run: DataFrame
    read: DataFrame


class Assessment(NamedTuple):
    """What came of it all, on the disk."""

    faults: DataFrame
    noted: DataFrame  # no faults of the hub (NOTED)
    deliveries: DataFrame
    clients: DataFrame  # by client and hour


def run(spark: SparkSession, order: JobSpec, phases: Phases) -> JobResult:
    """Leaves what `ABOUT` says in the result's folder."""
    tables = AuditTables(*(table(spark, order, name) for name in AuditTables._fields))
    work, folder = Path(order.work), Path(order.result)
    folder.mkdir(parents=True, exist_ok=True)
    phases.begin("building matchers")
    build_matchers(tables.versions, tables.streams, order.work).count()
    phases.begin("reading segments")
    facts = _facts(spark, order, tables)
    phases.begin("adding up what clients heard")
    asked = listeners.ListenerTables(
        tables.listeners, tables.segments, tables.streams, tables.clients
    )
    heard = listeners.audit_listeners(order, asked)
    phases.begin("comparing deliveries")
    judged = _judged(spark, order, tables, facts, heard.faults)
    phases.begin("writing findings")
    found = findings.findings(judged.faults, tables.streams, tables.segments, tables.endpoints)
    cuts = [write_table(found, findings.ORDER, work, folder / "findings")]
    phases.begin("counting")
    cuts += _write_figures(tables, facts, judged, work, folder)
    named = listeners.with_names(heard.clients, tables.streams)
    cuts.append(write_table(named, listeners.BY, work, folder / "listeners"))
    phases.begin("writing the report")
    return _result(order, tables, judged, [cut for cut in cuts if cut is not None])


def _facts(spark: SparkSession, order: JobSpec, tables: AuditTables) -> ScanFacts:
    """Reads each segment once."""
    asked = scan.segments_to_scan(tables.segments, tables.streams)
    most = limits.AUDIT_TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    tasks = max(min(asked.count(), most), 1)
    where = ExecutorPaths(order.inputs, order.work, order.now_us)
    found = scan.scan(asked.repartition(tasks), where, order.archive_url)
    kept = _stored(found, f"{order.work}/facts")
    parts = (kept.where(sf.col(name).isNotNull()).select(f"{name}.*") for name in ScanFacts._fields)
    return ScanFacts(*parts)


def _judged(
    spark: SparkSession, order: JobSpec, tables: AuditTables, facts: ScanFacts, heard: DataFrame
) -> Assessment:
    compared = deliveries.compare(
        facts.owed,
        deliveries.stored_deliveries(tables.deliveries, tables.fanouts),
        deliveries.attempts_by_delivery(tables.attempts),
    )
    rows = tables.deliveries.count()
    before = spark.conf.get("spark.sql.shuffle.partitions")
    least = int(before or 1)
    spark.conf.set("spark.sql.shuffle.partitions", max(least, rows // _JOIN_ROWS))
    places = deliveries.segment_facts(tables.segments, tables.streams, facts.read, tables.retired)
    skipped = _stored(gap_ranges(tables.deliveries, tables.segments), f"{order.work}/gaps")
    judged = _stored(
        deliveries.judge(compared, places, skipped, _days(tables), order.now_us),
        f"{order.work}/judged",
    )
    spark.conf.set("spark.sql.shuffle.partitions", least)
    faults = _faults(tables, facts, judged, heard)
    faults = _stored(faults, f"{order.work}/faults")
    is_fault = ~sf.col("kind").isin(*NOTED)
    owed = judged.where(sf.col("outcome") != deliveries.NOT_EXPECTED)
    zones = tables.streams.select("zone_id", "zone").distinct()
    clients = figures.by_client(owed, tables.endpoints).join(zones, "zone_id", "left")
    return Assessment(
        faults.where(is_fault),
        faults.where(~is_fault),
        owed,
        _stored(clients, f"{order.work}/by-client"),
    )


def _faults(
    tables: AuditTables, facts: ScanFacts, judged: DataFrame, heard: DataFrame
) -> DataFrame:
    of_log = _log_faults(tables, facts)
    whole = event_log.whole_streams(tables.segments, facts.unseen, of_log, facts.read)
    parts = [
        event_log.repeated_numbers(facts.run, tables.segments, tables.streams, tables.clients),
        event_log.lost_numbers(tables.producers, facts.run, whole),
        deliveries.delivery_faults(judged, facts.unseen),
        heard,
    ]
    faults = findings.pad(of_log)
    for part in parts:
        faults = faults.unionByName(findings.pad(part))
    return faults


def _log_faults(tables: AuditTables, facts: ScanFacts) -> DataFrame:
    return facts.fault.unionByName(
        event_log.discontinuities(tables.segments, tables.streams)
    ).unionByName(event_log.live_faults(tables.segments, tables.live))


def _stored(frame: DataFrame, path: str) -> DataFrame:
    """On the disk, because it is looked at several times."""
    frame.write.mode("overwrite").parquet(path)
    return frame.sparkSession.read.schema(frame.schema).parquet(path)


def _days(tables: AuditTables) -> list[str]:
    """Of attempts that nobody has any more."""
    gone = tables.retired.where("parent = 'attempts' and not archived and rows > 0")
    return [row.day for row in gone.select("day").distinct().orderBy("day").collect()]


def _write_figures(
    tables: AuditTables, facts: ScanFacts, judged: Assessment, work: Path, folder: Path
) -> list[Truncation | None]:
    names = tables.streams.select(
        sf.col("id").alias("stream_id"), "zone_id", "zone", sf.col("name").alias("stream")
    )
    live = judged.deliveries.where("run = 0")
    events = facts.hour.groupBy("hour_us").agg(sf.sum("events").alias("events"))
    hours = events.join(figures.by_hour(live), "hour_us", "full_outer").where("hour_us is not null")
    hours = hours.fillna(0, [name for name in hours.columns if name not in figures.PERCENTILES])
    of_log = event_log.stream_figures(tables.segments, judged.faults, facts.read)
    by_stream = names.join(of_log, "stream_id").drop("zone_id")
    producers = names.join(event_log.producer_figures(facts.run), "stream_id").drop("zone_id")
    replays = figures.by_replay(judged.deliveries).join(names, "stream_id", "left")
    written = {
        "streams": (by_stream, ("zone", "stream", "stream_id")),
        "producers": (producers, ("zone", "stream", "stream_id", "client", "incarnation")),
        "hours": (hours, ("hour_us",)),
        "replays": (replays.drop("zone_id"), ("run", "zone", "stream")),
    }
    # these grow with what there is times the hours
    hourly = {
        "registrations_hourly": (
            figures.by_registration(live, tables.endpoints, tables.clients),
            ("registration_id", "hour_us"),
        ),
        "clients": (judged.clients, ("zone", "client", "hour_us")),
    }
    return [
        *(write_table(frame, by, work, folder / name) for name, (frame, by) in written.items()),
        *(
            write_latest_hours(frame, by, work, folder / name)
            for name, (frame, by) in hourly.items()
        ),
    ]


def _result(
    order: JobSpec, tables: AuditTables, judged: Assessment, cuts: Sequence[Truncation]
) -> JobResult:
    folder = Path(order.result)
    kinds, streams = _kinds(judged.faults), details.streams(folder)
    totals = figures.totals(judged.deliveries.where("run = 0")).first()
    of_deliveries = _numbers(totals)
    counted = {
        **{name: sum(row[name] for row in streams) for name in _OF_STREAMS},
        **of_deliveries,
        "findings": kinds.total(),
    }
    gone = tables.retired.where("not archived and rows > 0").orderBy("parent", "name")
    hours = details.hours(folder)
    clients = figures.clients_in_all(judged.clients).orderBy(sf.desc("told"), "zone", "client")
    shown = {
        "findings": details.first_rows(folder, "findings"),
        "finding_count": kinds.total(),
        "streams": streams[: limits.AUDIT_SHOWN_MAX],
        "deliveries": of_deliveries,
        "hours": details.timed(hours),
        "clients": details.timed(
            [row.asDict() for row in clients.limit(limits.AUDIT_SHOWN_MAX).collect()]
        ),
        "replays": details.timed(details.first_rows(folder, "replays")),
        "listeners": details.first_rows(folder, "listeners"),
        "not_known": details.not_known(
            gone.limit(limits.AUDIT_SHOWN_MAX).collect(),
            of_deliveries["unknown"],
            _kinds(judged.noted),
        ),
        "cut": [cut.json() for cut in cuts],
    }
    summary = details.summary(counted, [cut.table for cut in cuts])
    (folder / "report.html").write_text(report(summary, shown, of_deliveries, kinds, hours))
    return JobResult(summary, counted, "problems" if kinds else "ok", _about(cuts), shown)


def _kinds(faults: DataFrame) -> Counter[str]:
    """How many there are of each kind."""
    return Counter({row.kind: row["count"] for row in faults.groupBy("kind").count().collect()})


def _about(cuts: Sequence[Truncation]) -> dict[str, str]:
    """What is in the files, and what is not."""
    words = {cut.table: f" {cut.words()}" for cut in cuts}
    return {name: text + words.get(name.partition(".")[0], "") for name, text in ABOUT.items()}


def _numbers(totals: Any) -> dict[str, Any]:
    """Sums over nothing are 0; there are no percentiles of nothing."""
    return {
        name: value if name in figures.PERCENTILES else value or 0
        for name, value in totals.asDict().items()
    }
