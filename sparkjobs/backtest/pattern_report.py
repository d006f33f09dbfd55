"""The HTML report of a pattern's back-test. Plain module."""

import json
from typing import Any

from sparkjobs.backtest.report import bucket_name, skipped_segments
from sparkjobs.report.page import ReportSection, Value, figures, page, table, verbatim
from sparkjobs.report.plot import PlotLabels, PlotSeries, time_bars
from sparkjobs.result import JobResult

STOPPED = {
    "once": "The pattern ended with its first match.",
    "suspended": "The agent was suspended: it exceeded a limit or failed repeatedly.",
    "time_max": "The pattern took too long and was stopped; later events were not searched.",
}


def report(params: dict[str, Any], result: JobResult) -> str:
    """Return the page. `params` are the run's, `result` has the details."""
    details = result.details
    about = f"Language: {params['language']}. Streams: {', '.join(params['streams'])}."
    sections = [
        ReportSection("Pattern", [about, verbatim(params["pattern"])]),
        ReportSection("Figures", [figures(_figures(details)), *_stopped(details)]),
        ReportSection("Matches over time", _histogram(details)),
        ReportSection("First matches", _sample(details["sample"])),
        ReportSection("First notifications and announced events", _sample(details["outputs"])),
        ReportSection("Partial matches at the end", _waiting(details)),
    ]
    if details["skipped"]:
        sections.append(ReportSection("Skipped segments", skipped_segments(details, result)))
    return page(f"Back-test on {', '.join(params['streams'])}", result.summary, sections)


def _figures(details: Any) -> dict[str, Value]:
    return {
        "Matches": details["matches"],
        "Notifications": details["notified"],
        "Announced events": details["announced"],
        "Failed runs": details["failed"],
        **{f"Discarded ({reason})": count for reason, count in details["dropped"].items()},
        "Events searched": details["searched_events"],
        "Events taken": details["taken_events"],
        "Segments searched": details["searched_segments"],
        "From": details["from"],
        "Until": details["until"],
    }


def _stopped(details: Any) -> list[str]:
    stopped = details["stopped"]
    if stopped is None:
        return []
    fault = stopped["fault"]
    why = "" if fault is None else f" {fault['code']}: {fault['message']}"
    if fault is not None:
        why += f" (line {fault['line']}, column {fault['column']})"
    return [f"{STOPPED[stopped['reason']]}{why} Event: {_position(stopped['at'])}."]


def _histogram(details: Any) -> list[str]:
    buckets, width_s = details["histogram"], details["bucket_s"]
    if not buckets:
        return ["No events in this time range."]
    series = [
        PlotSeries("matches", [matches for _, matches, _ in buckets]),
        PlotSeries("notifications and announced events", [outputs for _, _, outputs in buckets]),
    ]
    labels = PlotLabels(f"Matches by {bucket_name(width_s)} (UTC)", "count")
    return [time_bars([start for start, _, _ in buckets], width_s * 1_000_000, series, labels)]


def _sample(outputs: list[dict[str, Any]]) -> list[str]:
    if not outputs:
        return ["There are none."]
    rows = [
        (one["at"]["appended_at"], _position(one["at"]), one["output"], _key(one), _contents(one))
        for one in outputs
    ]
    return [table(["Completed at", "By the event", "Output", "Key", "Contents"], rows)]


def _waiting(details: Any) -> list[str]:
    if not details["waiting"]:
        return ["There are none."]
    rows = [
        (_key(one), one["tree"]["expires_at"] or "", _bindings(one["tree"]["bound"]))
        for one in details["waiting"]
    ]
    shown = table(["Key", "Expires at", "Bound"], rows)
    return [f"Keys with partial matches: {details['waiting_keys']:,}.", shown]


def _key(one: dict[str, Any]) -> str:
    key = one.get("key")
    return "" if key is None else json.dumps(key, ensure_ascii=False)


def _contents(output: dict[str, Any]) -> str:
    if output.get("fault"):
        return f"{output['fault']['code']}: {output['fault']['message']}"
    if output["output"] == "announce":
        event = output["event"]
        return "(too long)" if event is None else _event(event)
    bindings = output["bindings"]
    return "(too long)" if bindings is None else _bindings(bindings)


def _bindings(bindings: dict[str, list[dict[str, Any]]]) -> str:
    return "; ".join(f"{name}: {', '.join(map(_bound, bound))}" for name, bound in bindings.items())


def _bound(bound: dict[str, Any]) -> str:
    return _position(bound) if "sequence" in bound else _event(bound)


def _position(position: dict[str, Any]) -> str:
    return f"{position['stream']} {position['sequence']}"


def _event(event: dict[str, Any]) -> str:
    name = f"{event['domain']}::{event['type']}" if event["domain"] else event["type"]
    return f"{name} {json.dumps(event['attributes'], ensure_ascii=False)}"
