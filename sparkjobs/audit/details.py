"""The details of an audit for the console and the report, from the result's files. Spark module."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs.audit import event_log, listeners

Row = dict[str, Any]
# why the rows of a dropped partition are unknown; those of listeners may well be archived
_DROPPED = {
    "deliveries": " and not archived",
    "attempts": " and not archived",
    "listeners": f"; listeners are audited for {limits.LISTENERS_RETAINED_DAYS} days",
}


def first_rows(folder: Path, name: str, most: int = limits.AUDIT_SHOWN_MAX) -> list[Row]:
    """Return the first rows of a table of the result."""
    batches = pq.ParquetFile(folder / f"{name}.parquet").iter_batches(batch_size=most)
    batch = next(batches, None)
    rows: list[Row] = [] if batch is None else batch.to_pylist()
    return rows[:most]


def streams(folder: Path) -> list[Row]:
    """Return all streams, those with the most faults first, then by size."""
    rows: list[Row] = pq.read_table(folder / "streams.parquet").to_pylist()
    rows.sort(key=lambda row: (-row["faults"], -row["events"], row["zone"], row["stream"]))
    return rows


def hours(folder: Path) -> list[Row]:
    """Return the latest hours, in order."""
    rows: list[Row] = pq.read_table(folder / "hours.parquet").to_pylist()
    return rows[-limits.AUDIT_HOURS_MAX :]


def with_times(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Format times as the API does: `hour_us` becomes the text `hour`."""
    return [
        {name.removesuffix("_us"): _formatted(name, value) for name, value in row.items()}
        for row in rows
    ]


def _formatted(name: str, value: Any) -> Any:
    return time_text(value) if name.endswith("_us") and value is not None else value


def unknowns(dropped: Sequence[Row], unknown: int, noted: Mapping[str, int]) -> list[Row]:
    """Return what cannot be proved, as rows of `subject` and `reason`. `dropped`: rows of
    partitions dropped without an archive; `noted`: counts by kind of what is no fault.
    """
    found = [
        {
            "subject": f"{row['rows']:,} rows of {row['parent']} in {row['name']}",
            "reason": f"The partition was dropped at {time_text(row['at_us'])}"
            f"{_DROPPED[row['parent']]}.",
        }
        for row in dropped
    ]
    if unknown:
        reason = "Their deliveries were dropped, or depend on past client groups or types."
        found.append({"subject": f"{unknown:,} matches without a delivery", "reason": reason})
    if forgotten := noted.get(event_log.FORGOTTEN_NUMBER):
        reason = "The hub had expired their first use, or another client had the name before."
        subject = f"{forgotten:,} ranges of reused producer numbers"
        found.append({"subject": subject, "reason": reason})
    if skipped := noted.get(listeners.SKIPPED):
        reason = "Clients resumed from a cursor after the last event they received (`listeners`)."
        found.append({"subject": f"{skipped:,} ranges skipped by clients", "reason": reason})
    return found


def summary(figures: Mapping[str, Any], truncated: Sequence[str]) -> str:
    """Return one line of counts; unknown matches and truncated tables only if there are any."""
    parts = [
        f"Findings: {figures['findings']:,}",
        f"Events: {figures['events']:,} in {figures['segments']:,} segments",
        f"Delivered: {figures['delivered']:,} of {figures['deliveries']:,} deliveries",
        *([f"Unknown: {figures['unknown']:,} matches"] if figures["unknown"] else []),
        *([f"Truncated tables: {', '.join(truncated)}"] if truncated else []),
    ]
    return f"{'. '.join(parts)}."
