"""The audit's HTML report. Spark module."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparkjobs.audit.findings import KINDS
from sparkjobs.audit.scan import HOUR_US
from sparkjobs.report import page, plot
from sparkjobs.report.page import ReportSection
from sparkjobs.report.plot import PlotLabels, PlotSeries

_ROWS = 50  # of a table; the files contain all


def report(
    summary: str,
    details: Mapping[str, Any],
    figures: Mapping[str, Any],
    kinds: Mapping[str, int],
    hours: Sequence[Mapping[str, Any]],
) -> str:
    """Return the page. `kinds`: numbers of findings by kind. `hours`: figures by `hour_us`."""
    return page.page(
        "Audit",
        summary,
        [
            ReportSection("Findings", _findings(details, kinds)),
            ReportSection("Streams", _streams(details)),
            ReportSection("Deliveries", [page.figures(figures), *_plots(hours)]),
            ReportSection("Deliveries by client", _clients(details)),
            ReportSection("Unknown", _unknown(details)),
            *(
                [ReportSection("Truncated tables", _truncated(details))]
                if details["truncated"]
                else []
            ),
        ],
    )


def _findings(details: Mapping[str, Any], kinds: Mapping[str, int]) -> list[str]:
    found = details["findings"]
    if not found:
        return ["None: every acknowledged event is stored where it belongs."]
    heads = ["Kind", "Stream", "Segment", "Sequences", "Endpoint", "Evidence"]
    rows = [
        (
            each["kind"],
            _named(each),
            each["segment"],
            _range(each),
            each["endpoint"],
            each["evidence"],
        )
        for each in found[:_ROWS]
    ]
    counted = Counter(dict(kinds))
    ordered = [(kind, counted[kind]) for kind in KINDS if counted[kind]]
    return [
        plot.bars(
            [kind for kind, _ in ordered],
            [PlotSeries("findings", [count for _, count in ordered])],
            PlotLabels("Findings by kind", y="", x=""),
        ),
        page.table(["Kind", "Findings", "Meaning"],
                   [(kind, count, KINDS[kind]) for kind, count in ordered]),
        "Each finding:",
        page.table(heads, rows),
        *([] if details["finding_count"] <= _ROWS else ["findings.csv contains all findings."]),
    ]  # fmt: skip


def _named(each: Mapping[str, Any]) -> str:
    return f"{each['zone']}/{each['stream']}" if each["zone"] else str(each["stream"] or "")


def _range(each: Mapping[str, Any]) -> str | None:
    if each["first"] is None:
        return None
    first, last = f"{each['first']:,}", f"{each['last']:,}"
    return first if first == last else f"{first} to {last}"


def _streams(details: Mapping[str, Any]) -> list[str]:
    heads = ["Stream", "Segments", "Events", "Missing", "Duplicates", "Dropped", "Not checked"]
    names = ("segments", "events", "missing", "duplicates", "dropped", "unchecked")
    rows = [(_named(each), *(each[name] for name in names)) for each in details["streams"][:_ROWS]]
    note = "Dropped: removed by a policy, a quota or a full disk, and announced. Not a loss."
    return [page.table(heads, rows), note]


def _plots(hours: Sequence[Mapping[str, Any]]) -> list[str]:
    if not hours:
        return ["No events and no deliveries."]
    starts = [each["hour_us"] for each in hours]
    series = _hourly(hours, "events", "deliveries", "delivered")
    plots: list[str] = [
        plot.time_lines(starts, series, PlotLabels("Events and deliveries by hour", y=""))
    ]
    timed = [each for each in hours if each["p50_ms"] is not None]
    if timed:
        percentiles = [
            PlotSeries(text, [each[name] for each in timed])
            for name, text in (("p50_ms", "p50"), ("p95_ms", "p95"), ("p99_ms", "p99"))
        ]
        labels = PlotLabels("Latency from append to delivery, by hour of append", y="milliseconds")
        plots.append(plot.time_lines([each["hour_us"] for each in timed], percentiles, labels))
    bad = _hourly(hours, "late", "dead_lettered")
    if any(value for each in bad for value in each.values):
        labels = PlotLabels("Late and dead-lettered deliveries by hour", y="deliveries")
        plots.append(plot.time_bars(starts, HOUR_US, bad, labels))
    return plots


def _hourly(hours: Sequence[Mapping[str, Any]], *names: str) -> list[PlotSeries]:
    return [PlotSeries(name, [each[name] or 0 for each in hours]) for name in names]


def _clients(details: Mapping[str, Any]) -> list[str]:
    heads = ["Client", "Delivered", "Replayed", "First", "Last"]
    names = ("delivered", "first_delivered", "last_delivered")
    rows = [
        (f"{each['zone']}/{each['client']}", *(each[name] for name in names))
        for each in details["clients"][:_ROWS]
    ]
    return [page.table(heads, rows)] if rows else ["Deliveries: 0."]


def _truncated(details: Mapping[str, Any]) -> list[str]:
    rows = [(each["table"], each["note"]) for each in details["truncated"]]
    return [page.table(["Table", "Rows"], rows)]


def _unknown(details: Mapping[str, Any]) -> list[str]:
    rows = [(each["subject"], each["reason"]) for each in details["unknown"]]
    return [page.table(["Subject", "Reason"], rows)] if rows else ["None."]
