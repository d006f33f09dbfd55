"""Runs the audit on a history, in the tests' own Spark."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sparkjobs.audit.run import run
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from tests.spark.history import History


class Found(NamedTuple):
    """A finding, without its words."""

    kind: str
    stream: str | None
    segment: int | None
    first: int | None
    last: int | None
    endpoint: int | None = None


class Audited(NamedTuple):
    result: JobResult
    folder: Path

    @property
    def found(self) -> list[Found]:
        return [
            Found(
                row["kind"],
                row["stream"],
                None if row["segment"] is None else int(row["segment"].rpartition("-")[2]),
                *(row[name] for name in ("first", "last", "endpoint")),
            )
            for row in self.rows("findings")
        ]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Of a table of the result."""
        found: list[dict[str, Any]] = pq.read_table(self.folder / f"{name}.parquet").to_pylist()
        return found

    def lines(self, name: str) -> list[dict[str, str]]:
        """The same as CSV."""
        with (self.folder / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))


def audit(spark: SparkSession, history: History, *, again: int = 1, **layout: Any) -> Audited:
    """`layout` as for History.write; `again`: the run's number."""
    history.write(**layout)
    order = history.order("audit", run=again)
    return Audited(run(spark, order, Phases(spark.sparkContext)), Path(order.result))
