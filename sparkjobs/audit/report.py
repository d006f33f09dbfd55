"""The audit as a page for people. Spark module."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparkjobs.audit.findings import KINDS
from sparkjobs.report import page, plot
from sparkjobs.report.page import ReportSection
from sparkjobs.report.plot import PlotLabels, PlotSeries

_HOUR_US = 3_600_000_000
_SHOWN = 50  # rows of a table; the files have all


def report(
    summary: str,
    details: Mapping[str, Any],
    figures: Mapping[str, Any],
    kinds: Mapping[str, int],
    hours: Sequence[Mapping[str, Any]],
) -> str:
    """`kinds`: how many findings there are of each. `hours`: figures by hour, with hour_us."""
    return page.page(
        "Audit",
        summary,
        [
            ReportSection("Findings", _findings(details, kinds)),
            ReportSection("The log", _streams(details)),
            ReportSection("Deliveries", [page.figures(figures), *_plots(hours)]),
            ReportSection("What clients were told", _clients(details)),
            ReportSection("What is not known", _not_known(details)),
            *([ReportSection("What was cut", _cut(details))] if details["cut"] else []),
        ],
    )


def _findings(details: Mapping[str, Any], kinds: Mapping[str, int]) -> list[str]:
    found = details["findings"]
    if not found:
        return ["None: every event that was acknowledged is where it belongs."]
    heads = ["Kind", "Stream", "Segment", "Sequences", "Endpoint", "What was seen"]
    rows = [
        (
            each["kind"],
            _named(each),
            each["segment"],
            _range(each),
            each["endpoint"],
            each["evidence"],
        )
        for each in found[:_SHOWN]
    ]
    counted = Counter(dict(kinds))
    ordered = [(kind, counted[kind]) for kind in KINDS if counted[kind]]
    return [
        plot.bars(
            [kind for kind, _ in ordered],
            [PlotSeries("findings", [count for _, count in ordered])],
            PlotLabels("Findings by kind", y="", x=""),
        ),
        page.table(["Kind", "Findings", "What it means"],
                   [(kind, count, KINDS[kind]) for kind, count in ordered]),
        "Each of them:",
        page.table(heads, rows),
        *([] if details["finding_count"] <= _SHOWN else ["findings.csv has all of them."]),
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
    rows = [(_named(each), *(each[name] for name in names)) for each in details["streams"][:_SHOWN]]
    told = "Dropped is what a policy, a quota or a full disk let go: no loss, and said so then."
    return [page.table(heads, rows), told]


def _plots(hours: Sequence[Mapping[str, Any]]) -> list[str]:
    if not hours:
        return ["Nothing was appended or owed."]
    starts = [each["hour_us"] for each in hours]
    series = [PlotSeries(name, [each[name] or 0 for each in hours]) for name in ("events", "owed")]
    series.append(PlotSeries("delivered", [each["delivered"] or 0 for each in hours]))
    plots: list[str] = [
        plot.time_lines(starts, series, PlotLabels("Events and deliveries by hour", y=""))
    ]
    timed = [each for each in hours if each["p50_ms"] is not None]
    if timed:
        percentiles = [
            PlotSeries(text, [each[name] for each in timed])
            for name, text in (("p50_ms", "p50"), ("p95_ms", "p95"), ("p99_ms", "p99"))
        ]
        words = PlotLabels("From append to delivered, by hour of append", y="milliseconds")
        plots.append(plot.time_lines([each["hour_us"] for each in timed], percentiles, words))
    counted = ("late", "dead_lettered")
    bad = [PlotSeries(name, [each[name] or 0 for each in hours]) for name in counted]
    if any(value for each in bad for value in each.values):
        words = PlotLabels("Late and dead-lettered by hour", y="deliveries")
        plots.append(plot.time_bars(starts, _HOUR_US, bad, words))
    return plots


def _clients(details: Mapping[str, Any]) -> list[str]:
    heads = ["Client", "Deliveries", "Of replays", "First", "Last"]
    rows = [
        (f"{each['zone']}/{each['client']}", each["told"], each["replayed"], each["first_told"],
         each["last_told"])
        for each in details["clients"][:_SHOWN]
    ]  # fmt: skip
    return [page.table(heads, rows)] if rows else ["Nothing was delivered."]


def _cut(details: Mapping[str, Any]) -> list[str]:
    rows = [(each["table"], each["words"]) for each in details["cut"]]
    return [page.table(["Table", "What of it is there"], rows)]


def _not_known(details: Mapping[str, Any]) -> list[str]:
    rows = [(each["what"], each["why"]) for each in details["not_known"]]
    return [page.table(["What", "Why"], rows)] if rows else ["Nothing."]
