"""A back-test's HTML report. Plain module."""

import json
from typing import Any

from sparkjobs.report.page import ReportSection, Value, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, time_bars
from sparkjobs.result import JobResult


def report(params: dict[str, Any], result: JobResult) -> str:
    """Return the page. `params` are the run's, `result` has the details."""
    details = result.details
    sections = [
        ReportSection("Filter", _filter(params)),
        ReportSection("Figures", [figures(_figures(details))]),
        ReportSection("Matches over time", _histogram(details)),
        ReportSection("First matches", _sample(details)),
    ]
    if details["skipped"]:
        sections.append(ReportSection("Skipped segments", skipped_segments(details, result)))
    return page(f"Back-test on {params['stream']}", result.summary, sections)


def _filter(params: dict[str, Any]) -> list[str]:
    source = params["filter"]
    text = source if isinstance(source, str) else json.dumps(source, indent=1, ensure_ascii=False)
    return [f"Language: {params['language']}", verbatim(text)]


def _figures(details: Any) -> dict[str, Value]:
    return {
        "Events matched": details["matched_events"],
        "Events searched": details["searched_events"],
        "Segments searched": details["searched_segments"],
        "From": details["from"],
        "Until": details["until"],
    }


def _histogram(details: Any) -> list[str]:
    buckets, width_s = details["histogram"], details["bucket_s"]
    if not buckets:
        return ["No events in this time range."]
    counts = PlotSeries("matches", [count for _, count in buckets])
    labels = PlotLabels(f"Matches by {bucket_name(width_s)} (UTC)", "events")
    return [time_bars([start for start, _ in buckets], width_s * 1_000_000, [counts], labels)]


def bucket_name(width_s: int) -> str:
    """Return the width of a bucket, such as `day` or `5 minutes`."""
    for name, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        if width_s % seconds == 0:
            count = width_s // seconds
            return name if count == 1 else f"{count} {name}s"
    return ""


def _sample(details: Any) -> list[str]:
    if not details["sample"]:
        return ["No events matched."]
    rows = [
        (str(match["sequence"]), match["appended_at"], match["type"], _attributes(match))
        for match in details["sample"]
    ]
    return [table(["Sequence", "Appended at", "Type", "Attributes"], rows)]


def _attributes(match: dict[str, Any]) -> str:
    attributes = match["attributes"]
    return "(too long)" if attributes is None else json.dumps(attributes, ensure_ascii=False)


def skipped_segments(details: Any, result: JobResult) -> list[str]:
    """Return the section on segments that were not searched."""
    skipped, count = details["skipped"], result.figures["skipped_segments"]
    return [
        f"Skipped segments: {count}. They were dropped or could not be read. The files in the"
        " folder `segments` list all of them.",
        table(["Segment", "Fault"], [(each["segment"], each["fault"]) for each in skipped]),
    ]
