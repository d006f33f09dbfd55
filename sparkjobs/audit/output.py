"""Tables of a result: one Parquet file each, in one order, and the same as CSV. Spark module.

A table that would have too many rows is cut, and whoever writes it is told.
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
    """A table of which not all rows are there; `since_us`: those of all hours from there on, None:
    the first ones.
    """

    table: str
    rows: int
    of: int
    since_us: int | None = None
    whole: bool = True  # False: also of the one hour that is there only the first rows

    @property
    def since(self) -> str | None:
        return None if self.since_us is None else time_text(self.since_us)

    def json(self) -> dict[str, int | str | None]:
        """As details and reports have it."""
        numbers = {"rows": self.rows, "of": self.of}
        return {"table": self.table, **numbers, "since": self.since, "words": self.words()}

    def words(self) -> str:
        """What is there, and how to see the rest."""
        if self.since is None:
            which = "the first"
        elif self.whole:
            which = f"those of the hours since {self.since}"
        else:
            which = f"the first of the hour from {self.since}"
        ask = "a run with `streams` of fewer streams, or `since` and `until` of a shorter time"
        return f"Cut: {self.rows:,} of {self.of:,} rows, {which}. For others ask for {ask}."


def write_latest_hours(
    frame: DataFrame, order: Sequence[str], work: Path, result: Path
) -> Truncation | None:
    """As `write_both`; of a table with `hour_us` that is too long the latest hours stay, whole."""
    newest_first = sf.desc_nulls_last("hour_us")
    counted = frame.groupBy("hour_us").count().orderBy(newest_first).collect()
    hours = [(row[0], row[1]) for row in counted]
    since_us = first_hour(hours, limits.AUDIT_ROWS_MAX)
    if since_us is None:
        return write_table(frame, order, work, result)
    cut = write_table(frame.where(sf.col("hour_us") >= since_us), order, work, result)
    there = sum(count for hour, count in hours if hour is not None and hour >= since_us)
    rows = there if cut is None else cut.rows
    of = sum(count for _, count in hours)
    return Truncation(result.name, rows, of, since_us, whole=cut is None)


def first_hour(hours: Sequence[tuple[int | None, int]], most: int) -> int | None:
    """From which hour on a table has at most so many rows, but always its latest hour; None: from
    its first. `hours`: with their rows, the latest first, and what has no hour last.
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
    """`result`.parquet and `result`.csv, and what is left out of them: all but the first rows, if
    there are too many. Rows that are equal in `order` must be equal.
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
    of = rows if rows < most else frame.count()
    return Truncation(result.name, rows, of) if of > rows else None
