"""What the audit's screens and its page show, of the result's own files. Spark module."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs.audit import event_log, listeners

Row = dict[str, Any]
# of partitions, why their rows are not looked at; those of listeners may well be archived
_NOWHERE = {
    "deliveries": " and were archived nowhere",
    "attempts": " and were archived nowhere",
    "listeners": f"; listeners prove nothing after {limits.LISTENERS_RETAINED_DAYS} days",
}


def first_rows(folder: Path, name: str, most: int = limits.AUDIT_SHOWN_MAX) -> list[Row]:
    """The first rows of a table of the result."""
    batches = pq.ParquetFile(folder / f"{name}.parquet").iter_batches(batch_size=most)
    batch = next(batches, None)
    found: list[Row] = [] if batch is None else batch.to_pylist()
    return found[:most]


def streams(folder: Path) -> list[Row]:
    """Those with the most faults, then the largest; their number is that of the hub's streams."""
    rows: list[Row] = pq.read_table(folder / "streams.parquet").to_pylist()
    rows.sort(key=lambda row: (-row["faults"], -row["events"], row["zone"], row["stream"]))
    return rows


def hours(folder: Path) -> list[Row]:
    """The latest, in order."""
    rows: list[Row] = pq.read_table(folder / "hours.parquet").to_pylist()
    return rows[-limits.AUDIT_HOURS_MAX :]


def timed(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Times as the API has them: `hour_us` becomes `hour`, a text."""
    return [{_name(name): _shown(name, value) for name, value in row.items()} for row in rows]


def _name(name: str) -> str:
    return name.removesuffix("_us")


def _shown(name: str, value: Any) -> Any:
    return time_text(value) if name.endswith("_us") and value is not None else value


def not_known(retired: Sequence[Any], unknown: int, noted: Mapping[str, int]) -> list[Row]:
    """What nobody can prove any more. `retired`: rows of partitions that were archived nowhere;
    `noted`: of what is no fault how much, by kind.
    """
    found = [
        {
            "what": f"{row.rows:,} rows of {row.parent} in {row.name}",
            "why": f"They left the database at {time_text(row.at_us)}{_NOWHERE[row.parent]}.",
        }
        for row in retired
    ]
    if unknown:
        why = "Their deliveries left the database, or the groups or types then decided."
        found.append({"what": f"Whether {unknown:,} matches were owed", "why": why})
    if forgotten := noted.get(event_log.FORGOTTEN_NUMBER):
        why = "The first ones were forgotten by then, or another client had the name before."
        found.append({"what": f"{forgotten:,} numbers that producers used again", "why": why})
    if skipped := noted.get(listeners.SKIPPED):
        what = f"Whether clients know what they left out, {skipped:,} times"
        why = "They went on from a cursor behind what they were told; `listeners` says who."
        found.append({"what": what, "why": why})
    return found


def summary(figures: Mapping[str, Any], cut: Sequence[str]) -> str:
    """One sentence, and more of what nobody can tell, and of the tables that were cut."""
    text, unknown = _summary(figures), figures["unknown"]
    text = f"{text} Not known: {unknown:,} matches." if unknown else text
    return f"{text} Tables with too many rows were cut: {', '.join(cut)}." if cut else text


def _summary(figures: Mapping[str, Any]) -> str:
    checked = f"{figures['events']:,} events in {figures['segments']:,} segments"
    owed = f"{figures['delivered']:,} of {figures['owed']:,} deliveries made"
    count = figures["findings"]
    if not count:
        return f"Nothing was lost: {checked}, {owed}."
    return f"{count:,} {'problem' if count == 1 else 'problems'} found: {checked}, {owed}."
