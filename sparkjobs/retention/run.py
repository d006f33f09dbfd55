"""The job `retention`: a plan of what may leave the database, never an act. Spark module.

It reads and writes; the rules are in transform.py. `manage.py retention apply` acts on the plan.
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
    "report.html": "The plan, for people.",
    PLAN: "Every segment in the database: what to do with it, and why.",
    "plan.csv": "The same.",
    "partitions.csv": "Partitions that are cleaned then, and about how many bytes come back.",
}
Row = dict[str, Any]


def run(spark: SparkSession, order: JobSpec, phases: Phases) -> JobResult:
    """Plans for the streams of `order.inputs` and leaves what `ABOUT` says."""
    folder = Path(order.result)
    folder.mkdir(parents=True, exist_ok=True)
    phases.begin("judging segments")
    plan, totals, groups = _planned(spark, order)
    phases.begin("writing the plan")
    pq.write_table(plan, folder / PLAN)
    write_csv(folder / "plan.csv", plan.schema, plan.to_batches())
    write_csv(folder / "partitions.csv", groups.schema, groups.to_batches())
    details = _details(plan, totals.to_pylist(), groups.to_pylist())
    result = JobResult(_summary(details), _figures(details), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(order.params, result))
    return result


def _planned(spark: SparkSession, order: JobSpec) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The plan, its totals by stream and action, and the groups that are cleaned. A row a segment
    is little even for a large hub.
    """
    params = order.params
    proposed = transform.proposed_policies(spark, params.get("policies") or {})
    streams = inputs.table(spark, order, "streams")
    policies = transform.with_policies(streams, proposed, params.get("zone_id"))
    segments = inputs.table(spark, order, "segments")
    judged = transform.judge(segments, policies, order.now_us).cache()
    cleaned = transform.partitions_to_compact(judged, inputs.table(spark, order, "groups")).cache()
    plan = transform.plan(judged, cleaned).cache()
    return plan.toArrow(), transform.totals(plan).toArrow(), cleaned.toArrow()


def _details(plan: pa.Table, totals: list[Row], groups: list[Row]) -> Row:
    actions = {action: _sum(totals, action) for action in ACTIONS}
    actions[COMPACT]["back_bytes"] = sum(group["back_bytes"] for group in groups)
    return {
        "actions": actions,
        "segments": [_shown(row) for row in _first(plan)],
        "segment_count": plan.num_rows,
        "streams": _streams(totals),
    }


def _sum(totals: list[Row], action: str) -> dict[str, int]:
    of = [row for row in totals if row["action"] == action]
    return {name: sum(row[name] for row in of) for name in ("segments", "events", "bytes")}


def _first(plan: pa.Table) -> list[Row]:
    """What is shown: acts before what is kept, each in the order of the streams."""
    most = limits.PLAN_SHOWN_SEGMENTS_MAX
    shown: list[Row] = []
    for action in ACTIONS:
        if len(shown) < most:
            of = plan.filter(pa.compute.equal(plan["action"], action))
            shown += of.slice(0, most - len(shown)).to_pylist()
    return shown


def _shown(row: Row) -> Row:
    names = ("zone", "stream", "segment", "first", "last", "events", "bytes", "action", "reason")
    tier = "live and archived" if row["archived"] else "live"
    return {**{name: row[name] for name in names}, "tier": tier}


def _streams(totals: list[Row]) -> list[Row]:
    """Bytes and segments by action of the streams that hold the most."""
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
    return f"Of {details['segment_count']:,} segments: {', '.join(parts)}."


def _figures(details: Row) -> dict[str, int | float | str | None]:
    figures: dict[str, int | float | str | None] = {"segments": details["segment_count"]}
    for action in ACTIONS:
        figures[f"{action}_segments"] = details["actions"][action]["segments"]
        figures[f"{action}_bytes"] = details["actions"][action]["bytes"]
    figures["drop_events"] = details["actions"][DROP]["events"]
    figures["back_bytes"] = details["actions"][COMPACT]["back_bytes"]
    return figures
