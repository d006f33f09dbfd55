"""The tables of a result: each a sorted Parquet file, and the same as CSV. Spark module.

A table with too many rows is truncated, and the writer returns what is left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from eventhub.base import limits
from eventhub.event.json_codec import time_text
from sparkjobs.csv_export import write_csv

_ROWS = 65_536  # held at once


class Truncation(NamedTuple):
    """A table of which only some rows were written: all hours since `since_us`, or, if that is
    None, the first rows.
    """

    table: str
    rows: int
    total: int
    since_us: int | None = None
    whole: bool = True  # False: only the first rows of the one hour that was written

    @property
    def since(self) -> str | None:
        return None if self.since_us is None else time_text(self.since_us)

    def json(self) -> dict[str, int | str | None]:
        """Return the truncation as details and reports have it."""
        numbers = {"rows": self.rows, "total": self.total}
        return {"table": self.table, **numbers, "since": self.since, "note": self.note()}

    def note(self) -> str:
        """Describe the rows that were written, and how to get the others."""
        if self.since is None:
            which = "the first"
        elif self.whole:
            which = f"all since {self.since}"
        else:
            which = f"the first of the hour from {self.since}"
        return (
            f"Truncated: {self.rows:,} of {self.total:,} rows, {which}. To get the others, request"
            " a run with fewer `streams`, or with a shorter time between `since` and `until`."
        )


def stored(frame: DataFrame, work: str, name: str) -> DataFrame:
    """Write a frame to the work folder, for executors or repeated use, and return it as read from
    there.
    """
    path = f"{work}/{name}"
    frame.write.mode("overwrite").parquet(path)
    return frame.sparkSession.read.schema(frame.schema).parquet(path)


def write_latest_hours(
    frame: DataFrame, order: Sequence[str], work: Path, result: Path
) -> Truncation | None:
    """Write a table as `write_table` does; if it is too long, only its latest whole hours
    (`hour_us`).
    """
    cut = write_table(frame, order, work, result)
    if cut is None:
        return None
    newest_first = sf.desc_nulls_last("hour_us")
    counted = frame.groupBy("hour_us").count().orderBy(newest_first).collect()
    hours = [(row["hour_us"], row["count"]) for row in counted]
    since_us = first_hour(hours, limits.AUDIT_ROWS_MAX)
    if since_us is None:
        return cut
    cut = write_table(frame.where(sf.col("hour_us") >= since_us), order, work, result)
    written = sum(count for hour, count in hours if hour is not None and hour >= since_us)
    rows = written if cut is None else cut.rows
    total = sum(count for _, count in hours)
    return Truncation(result.name, rows, total, since_us, whole=cut is None)


def first_hour(hours: Sequence[tuple[int | None, int]], most: int) -> int | None:
    """Return the hour since which a table has at most `most` rows, but always its latest hour; None
    if all hours fit. `hours`: (hour, rows), the latest first; rows without an hour last.
    """
    since_us, rows = None, 0
    for hour, count in hours:
        rows += count
        if rows > most and since_us is not None:
            return since_us
        since_us = hour
    return None


def write_table(
    frame: DataFrame, order: Sequence[str], work: Path, result: Path
) -> Truncation | None:
    """Write `result`.parquet and `result`.csv, sorted by `order`; of too many rows, the first. Rows
    that are equal in `order` must be equal.
    """
    most = limits.AUDIT_ROWS_MAX
    aside = work / result.name
    names = [name for name in frame.columns if name != "rank"]
    in_order = frame.repartition(1).sortWithinPartitions(*order).select(*names)
    in_order.limit(most).write.mode("overwrite").parquet(str(aside))
    [part] = sorted(aside.glob("part-*.parquet"))
    file = result.with_name(f"{result.name}.parquet")
    part.replace(file)
    stored = pq.ParquetFile(file)
    batches = stored.iter_batches(batch_size=_ROWS)
    write_csv(result.with_name(f"{result.name}.csv"), stored.schema_arrow, batches)
    rows = stored.metadata.num_rows
    total = rows if rows < most else frame.count()
    return Truncation(result.name, rows, total) if total > rows else None
