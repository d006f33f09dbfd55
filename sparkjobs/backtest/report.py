"""A back-test's report for people. Plain module."""

import json
from typing import Any

from sparkjobs.report.page import ReportSection, Value, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, time_bars
from sparkjobs.result import JobResult


def report(params: dict[str, Any], result: JobResult) -> str:
    """The page. `params` are the run's, `result` has the details."""
    details = result.details
    sections = [
        ReportSection("The filter", _filter(params)),
        ReportSection("Found", [figures(_figures(details))]),
        ReportSection("When", _when(details)),
        ReportSection("The first of them", _shown(details)),
    ]
    if details["skipped"]:
        sections.append(ReportSection("Not searched", _skipped(details, result)))
    return page(f"Back-test on {params['stream']}", result.summary, sections)


def _filter(params: dict[str, Any]) -> list[str]:
    source = params["filter"]
    text = source if isinstance(source, str) else json.dumps(source, indent=1, ensure_ascii=False)
    return [f"In the language {params['language']}:", verbatim(text)]


def _figures(details: Any) -> dict[str, Value]:
    return {
        "Events that match": details["count"],
        "Events searched": details["searched_events"],
        "Segments searched": details["searched_segments"],
        "From": details["from"],
        "Until": details["until"],
    }


def _when(details: Any) -> list[str]:
    hours, width_s = details["hours"], details["buckets_s"]
    if not hours:
        return ["There are no events in this range of time."]
    counts = PlotSeries("matches", [count for _, count in hours])
    words = PlotLabels(f"Matches by {_span(width_s)} (UTC)", "events")
    return [time_bars([start for start, _ in hours], width_s * 1_000_000, [counts], words)]


def _span(width_s: int) -> str:
    for name, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        if width_s % seconds == 0:
            count = width_s // seconds
            return name if count == 1 else f"{count} {name}s"
    return ""


def _shown(details: Any) -> list[str]:
    if not details["shown"]:
        return ["No event matches."]
    rows = [
        (str(one["sequence"]), one["appended_at"], one["type"], _attributes(one))
        for one in details["shown"]
    ]
    return [table(["Sequence", "Appended at", "Type", "Attributes"], rows)]


def _attributes(one: dict[str, Any]) -> str:
    given = one["attributes"]
    return "(too long to be shown)" if given is None else json.dumps(given, ensure_ascii=False)


def _skipped(details: Any, result: JobResult) -> list[str]:
    shown, count = details["skipped"], result.figures["skipped_segments"]
    return [
        f"{count} segments are not in these figures: what they hold could not be read, or has left "
        f"the hub. The files in the folder `segments` list all of them.",
        table(["Segment", "Why"], [(one["segment"], one["fault"]) for one in shown]),
    ]
