"""The result of a pattern's back-test, from the outputs of its tasks. Plain module."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from eventhub.base import limits
from sparkjobs.arrow_dataset import ds
from sparkjobs.backtest.pattern_query import PatternQuery
from sparkjobs.backtest.pattern_report import STOPPED, report
from sparkjobs.backtest.reading import ReadScope
from sparkjobs.backtest.totals import (
    bucket_width_s,
    buckets,
    range_of,
    segment_totals,
    write_first_matches,
    write_part,
)
from sparkjobs.job_spec import JobSpec
from sparkjobs.result import JobResult
from sparkjobs.segment_files import read_rows
from sparkjobs.tables import STREAMS, SYSTEM_ZONE, TYPES
from sparkjobs.type_hierarchy import declared_type

ABOUT = {
    "report.html": "The results as a page.",
    "matches": "Every event at which the pattern matched or had other outputs, in order: stream,"
    " sequence, segment, appended_at_us, matches, outputs.",
    "matches.csv": f"The first {limits.BACKTEST_CSV_ROWS_MAX:,} of them.",
    "segments": "Events searched and taken of each segment, or why it was skipped.",
}
_SHARED_LIMITS = ("keys_max", "bytes_max")  # of all keys of a pattern together


class BacktestTotals(NamedTuple):
    """The totals over all tasks. `counts`: of outputs by kind; `spread`: over several tasks."""

    counts: Counter[str]
    dropped: Counter[str]
    stopped: dict[str, Any] | None
    waiting: list[dict[str, Any]]  # key, tree
    keys: int
    peak_keys: int
    peak_bytes: int
    spread: bool

    @property
    def is_exact(self) -> bool:
        """Whether no limit that the keys share can have been reached."""
        return (
            self.peak_keys <= limits.PATTERN_KEYS_MAX
            and self.peak_bytes <= limits.PATTERN_BYTES_MAX
            and not any(self.dropped[reason] for reason in _SHARED_LIMITS)
        )


class PatternFindings(NamedTuple):
    """What the tasks found, besides the folder of matches. Rows are by name of column."""

    segments: pa.Table  # segments.segment_rows
    sampled: Iterable[Any]  # the first events with listed outputs, in order
    histogram: Callable[[int], Iterable[Any]]  # width in seconds -> start_us, matches, outputs


def query_of(spec: JobSpec) -> PatternQuery:
    """Return the query of a run's parameters. Raises OSError."""
    params = spec.params
    ids = params["stream_ids"]
    streams = read_rows(spec.inputs, "streams", STREAMS, ds.field("id").isin(ids))
    types = read_rows(spec.inputs, "types", TYPES, ds.field("zone_id") == params["zone_id"])
    scope = ReadScope(spec.inputs, spec.archive_url, params.get("since_us"), params.get("until_us"))
    return PatternQuery(
        params["language"],
        params["pattern"],
        params.get("once", False),
        tuple(zip(ids, params["streams"], strict=True)),
        next((row["id"] for row in streams if row["zone_id"] == SYSTEM_ZONE), None),
        params["zone"],
        tuple(sorted(map(declared_type, types))),
        params["sample_max"],
        scope,
    )


def totals_of(rows: Iterable[Any], *, spread: bool) -> BacktestTotals:
    """Add up the rows of tasks."""
    tasks = [json.loads(row["task"]) for row in rows]
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for task in tasks:
        counts.update({name: task[name] for name in _COUNTS})
        dropped.update(task["dropped"])
    return BacktestTotals(
        counts,
        dropped,
        min((one["stopped"] for one in tasks if one["stopped"]), key=_when, default=None),
        _shown_waiting(one for task in tasks for one in task["waiting"]),
        sum(task["keys"] for task in tasks),
        sum(task["peak_keys"] for task in tasks),
        sum(task["peak_bytes"] for task in tasks),
        spread,
    )


_COUNTS = ("fed", "matches", "notified", "announced", "failed")


def _when(stopped: dict[str, Any]) -> str:
    return str(stopped["at"]["appended_at"])


def _shown_waiting(waiting: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the partial matches that a result lists, those first that expire first."""
    found, size = sorted(waiting, key=_oldest)[: limits.PATTERN_WAITING_KEYS_MAX], 0
    for number, one in enumerate(found):
        size += len(json.dumps(one))
        if size > limits.BACKTEST_WAITING_BYTES_MAX:
            return found[:number]
    return found


def _oldest(waiting: dict[str, Any]) -> tuple[str, str]:
    """Return when the window of a key ends, then the key."""
    return waiting["tree"]["expires_at"] or "", json.dumps(waiting["key"])


def finished(spec: JobSpec, totals: BacktestTotals, found: PatternFindings) -> JobResult:
    """Write the rest of the files of `ABOUT`, and return the result. Raises OSError."""
    folder = Path(spec.result)
    write_part(found.segments, folder / "segments")
    write_first_matches(folder / "matches", folder / "matches.csv")
    details = _details(spec.params, totals, found)
    result = JobResult(_summary(details), _figures(details), about=ABOUT, details=details)
    (folder / "report.html").write_text(report(spec.params, result))
    return result


def _details(
    params: dict[str, Any], totals: BacktestTotals, found: PatternFindings
) -> dict[str, Any]:
    searched = segment_totals(found.segments, "taken")
    width_s = bucket_width_s(searched)
    rows = found.histogram(width_s)
    sample, others, is_complete = _listed(found.sampled, params["sample_max"])
    return {
        **{name: totals.counts[name] for name in _COUNTS if name != "fed"},
        "dropped": dict(sorted(totals.dropped.items())),
        "stopped": totals.stopped,
        "searched_events": searched.searched,
        "taken_events": searched.found,
        "searched_segments": searched.segments,
        "skipped_segments": len(searched.skipped),
        "skipped": searched.skipped[: limits.BACKTEST_SKIPPED_LISTED_MAX],
        "by_key": totals.spread,
        "histogram": buckets(searched, width_s, rows, ["matches", "outputs"]),
        "bucket_s": width_s,
        "sample": sample,
        "outputs": others,
        "is_complete": is_complete,
        "waiting": totals.waiting,
        "waiting_keys": totals.keys,
        **range_of(params, searched),
    }


def _listed(
    sampled: Iterable[Any], sample_max: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Return the first matches and the first other outputs, and whether their size allowed it."""
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    size = 0
    for row in sampled:
        size += len(row["sample"])
        if size > limits.BACKTEST_OUTPUTS_BYTES_MAX:
            return found[True], found[False], False  # a task lists no more than that either
        for output in json.loads(row["sample"]):
            listed = found[output["output"] == "match"]
            if len(listed) < sample_max:
                listed.append(output)
    return found[True], found[False], True


def _summary(details: dict[str, Any]) -> str:
    counts = {"Matches": details["matches"], "notifications": details["notified"]}
    counts |= {"announced events": details["announced"]}
    text = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    text += f"; of {details['searched_events']:,} events."
    if details["stopped"] is not None:
        text += f" {STOPPED[details['stopped']['reason']]}"
    if details["skipped_segments"]:
        text += f" Skipped segments: {details['skipped_segments']:,}."
    return text


def _figures(details: dict[str, Any]) -> dict[str, int | float | str | None]:
    names = ("matches", "notified", "announced", "failed", "searched_events", "taken_events")
    return {
        **{name: details[name] for name in names},
        "dropped": sum(details["dropped"].values()),
        "searched_segments": details["searched_segments"],
        "skipped_segments": details["skipped_segments"],
        "stopped": None if details["stopped"] is None else details["stopped"]["reason"],
    }
