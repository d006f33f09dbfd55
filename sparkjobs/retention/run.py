"""The job `retention`: plans what to drop, archive and compact. Spark module.

This module reads and writes; the rules are in transform.py. Only `manage.py retention apply`
carries a plan out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from eventhub.base import limits
from sparkjobs import inputs
from sparkjobs.csv_export import write_csv
from sparkjobs.job_spec import JobSpec
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from sparkjobs.retention import transform
from sparkjobs.retention.report import report
from sparkjobs.retention.transform import ACTIONS, COMPACT, DROP, KEEP

PLAN = "plan.parquet"
ABOUT = {
    "report.html": "The plan as a page.",
    PLAN: "The action and reason of every segment in the database.",
    "plan.csv": "The same as CSV.",
    "partitions.csv": "Partitions that the plan compacts, and about how many bytes that frees.",
}
Row = dict[str, Any]


def run(spark: SparkSession, spec: JobSpec, phases: Phases) -> JobResult:
    """Plan for the streams of `spec.inputs` and write the files of `ABOUT`."""
    folder = Path(spec.result)
    folder.mkdir(parents=True, exist_ok=True)
    phases.begin("evaluating policies")
    plan, partitions = _plan(spark, spec)
    phases.begin("writing the plan")
    pq.write_table(plan, folder / PLAN)
    write_csv(folder / "plan.csv", plan.schema, plan.to_batches())
    write_csv(folder / "partitions.csv", partitions.schema, partitions.to_batches())
    details = _details(plan, _totals(plan), partitions.to_pylist())
    result = JobResult(_summary(details), _figures(details), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(spec.params, result))
    return result


def _plan(spark: SparkSession, spec: JobSpec) -> tuple[pa.Table, pa.Table]:
    """Return the plan and the partitions to compact. One row per segment is little even for a large
    hub.
    """
    params = spec.params
    proposed = transform.proposed_policies(spark, params.get("policies") or {})
    streams = inputs.table(spark, spec, "streams")
    policies = transform.with_policies(streams, proposed, params.get("zone_id"))
    segments = inputs.table(spark, spec, "segments")
    evaluated = transform.evaluate(segments, policies, spec.now_us)
    partitions = inputs.table(spark, spec, "event_partitions")
    compacted = transform.partitions_to_compact(evaluated, partitions).toArrow()
    plan = transform.plan(evaluated, compacted.column("partition_id").to_pylist())
    return plan.toArrow(), compacted


def _totals(plan: pa.Table) -> list[Row]:
    """Sum segments, events and bytes by stream and action."""
    by = ["zone", "stream", "stream_id", "action"]
    sums = plan.group_by(by).aggregate([([], "count_all"), ("events", "sum"), ("bytes", "sum")])
    totals = sums.select([*by, "count_all", "events_sum", "bytes_sum"])
    totals = totals.rename_columns([*by, "segments", "events", "bytes"])
    in_order = totals.sort_by([("stream_id", "ascending"), ("action", "ascending")])
    rows: list[Row] = in_order.to_pylist()
    return rows


def _details(plan: pa.Table, totals: list[Row], partitions: list[Row]) -> Row:
    actions = {action: _sum(totals, action) for action in ACTIONS}
    actions[COMPACT]["freed_bytes"] = sum(row["freed_bytes"] for row in partitions)
    return {
        "actions": actions,
        "segments": [_segment(row) for row in _first(plan)],
        "segment_count": plan.num_rows,
        "streams": _streams(totals),
    }


def _sum(totals: list[Row], action: str) -> dict[str, int]:
    of = [row for row in totals if row["action"] == action]
    return {name: sum(row[name] for row in of) for name in ("segments", "events", "bytes")}


def _first(plan: pa.Table) -> list[Row]:
    """Return the first rows, those with an action before those that are kept, in stream order."""
    most = limits.PLAN_SHOWN_SEGMENTS_MAX
    rows: list[Row] = []
    for action in ACTIONS:
        if len(rows) < most:
            of = plan.filter(pa.compute.equal(plan["action"], action))
            rows += of.slice(0, most - len(rows)).to_pylist()
    return rows


def _segment(row: Row) -> Row:
    names = ("zone", "stream", "segment", "first", "last", "events", "bytes", "action", "reason")
    tier = "live and archived" if row["archived"] else "live"
    return {**{name: row[name] for name in names}, "tier": tier}


def _streams(totals: list[Row]) -> list[Row]:
    """Return segments, events and bytes by action, of the largest streams."""
    found: dict[int, Row] = {}
    for row in totals:
        of = found.setdefault(row["stream_id"], {"zone": row["zone"], "stream": row["stream"]})
        of[row["action"]] = {name: row[name] for name in ("segments", "events", "bytes")}
    nothing = {"segments": 0, "events": 0, "bytes": 0}
    streams = [{**dict.fromkeys(ACTIONS, nothing), **of} for of in found.values()]
    streams.sort(key=lambda of: -sum(of[action]["bytes"] for action in ACTIONS))
    return streams[: limits.PLAN_SHOWN_STREAMS_MAX]


def _summary(details: Row) -> str:
    actions: Mapping[str, Row] = details["actions"]
    parts = [f"{actions[one]['segments']:,} to {one}" for one in ACTIONS if one != KEEP]
    return f"Segments: {details['segment_count']:,}, of which {', '.join(parts)}."


def _figures(details: Row) -> dict[str, int | float | str | None]:
    figures: dict[str, int | float | str | None] = {"segments": details["segment_count"]}
    for action in ACTIONS:
        figures[f"{action}_segments"] = details["actions"][action]["segments"]
        figures[f"{action}_bytes"] = details["actions"][action]["bytes"]
    figures["drop_events"] = details["actions"][DROP]["events"]
    figures["freed_bytes"] = details["actions"][COMPACT]["freed_bytes"]
    return figures
