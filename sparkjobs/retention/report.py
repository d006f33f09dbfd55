"""A retention plan's HTML report. Plain module."""

import json
from typing import Any

from eventhub.base import limits
from sparkjobs.report.page import ReportSection, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, bars
from sparkjobs.result import JobResult

_ACTIONS = {
    "drop": "drop: delete from the database; an archived copy stays readable",
    "archive": "archive: next in the archiver's queue",
    "compact": "compact: copy out of a partition that is mostly dropped",
    "keep": "keep",
}
REASONS = {
    "age": "sealed more than `retain_age_s` ago",
    "size": "newer segments hold `retain_bytes`",
    "count": "newer segments hold `retain_events`",
    "hold": "the stream has a hold",
    "needed": "a durable cursor has not passed the segment",
    "not_archived": "the stream is archived, and the segment is not yet",
    "open": "the segment is not sealed",
    "policy": "within the policy's limits",
    "mostly_dropped": "at most half of the partition is live",
}


def report(params: dict[str, Any], result: JobResult) -> str:
    """Return the page. `params` are the run's, `result` has the details."""
    details = result.details
    freed = details["actions"]["compact"]["freed_bytes"]
    sections = [
        ReportSection(
            "Totals", [_actions(details), figures({"Disk bytes freed (estimate)": freed})]
        ),
        ReportSection("Streams", _plot(details)),
        ReportSection("Segments", _segments(details)),
        ReportSection("Reasons", [figures(REASONS)]),
    ]
    if params.get("policies"):
        text = json.dumps(params["policies"], indent=1, ensure_ascii=False)
        sections.insert(0, ReportSection("Proposed policies", [verbatim(text)]))
    zone = params.get("zone")
    about = f"{result.summary} The plan changes nothing until it is applied."
    return page(f"Retention plan of {f'zone {zone}' if zone else 'the hub'}", about, sections)


def _actions(details: Any) -> str:
    rows = [
        (_ACTIONS[name], one["segments"], one["events"], one["bytes"])
        for name, one in details["actions"].items()
    ]
    return table(["Action", "Segments", "Events", "Stored bytes"], rows)


def _plot(details: Any) -> list[str]:
    streams = details["streams"][: limits.PLAN_PLOT_STREAMS_MAX]
    if not streams:
        return ["Segments: 0."]
    names = [f"{one['zone']}/{one['stream']}" if one["zone"] else one["stream"] for one in streams]
    series = [PlotSeries(action, [one[action]["bytes"] for one in streams]) for action in _ACTIONS]
    return [bars(names, series, PlotLabels("Stored bytes by action", "bytes"))]


def _segments(details: Any) -> list[str]:
    heads = ["Zone", "Stream", "First", "Last", "Stored bytes", "Action", "Reason", "Segment"]
    rows = [
        (one["zone"], one["stream"], str(one["first"]), str(one["last"]), one["bytes"],
         one["action"], one["reason"], one["segment"])
        for one in details["segments"]
    ]  # fmt: skip
    rest = details["segment_count"] - len(rows)
    more = [f"Further segments in plan.csv: {rest:,}."] if rest else []
    return [table(heads, rows), *more]
