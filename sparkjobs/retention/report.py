"""A retention plan's report for people. Plain module."""

import json
from typing import Any

from eventhub.base import limits
from sparkjobs.report.page import ReportSection, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, bars
from sparkjobs.result import JobResult

_ACTIONS = {
    "drop": "drop: it leaves the database; what is archived stays readable there",
    "archive": "archive: the archiver takes it next",
    "compact": "compact: it stays, and is copied out of a partition that is mostly gone",
    "keep": "keep",
}
REASONS = {
    "age": "sealed longer ago than `retain_age_s`",
    "size": "newer segments hold `retain_bytes` already",
    "count": "newer segments hold `retain_events` already",
    "hold": "the stream is under a hold",
    "needed": "a durable cursor has not passed it yet",
    "not_archived": "the stream is archived first, and this is not yet",
    "open": "it is still written to",
    "policy": "the policy keeps it",
    "mostly_gone": "at most half of its partition is still live",
}


def report(params: dict[str, Any], result: JobResult) -> str:
    """The page. `params` are the run's, `result` has the details."""
    details = result.details
    freed = details["actions"]["compact"]["back_bytes"]
    sections = [
        ReportSection(
            "Totals", [_actions(details), figures({"Disk bytes freed (estimate)": freed})]
        ),
        ReportSection("By stream", _plot(details)),
        ReportSection("Segments", _segments(details)),
        ReportSection("Reasons", [figures(REASONS)]),
    ]
    if params.get("policies"):
        text = json.dumps(params["policies"], indent=1, ensure_ascii=False)
        sections.insert(0, ReportSection("Proposed policies", [verbatim(text)]))
    zone = params.get("zone")
    about = f"{result.summary} Nothing was changed."
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
        return ["There are no segments."]
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
    more = [f"{rest:,} more are in plan.csv."] if rest else []
    return [table(heads, rows), *more]
