"""A run of the audit on a history, in the tests' own Spark."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sparkjobs.audit.run import run
from sparkjobs.progress import Phases
from sparkjobs.result import JobResult
from tests.spark.history import JobHistory


class ExpectedFinding(NamedTuple):
    """A finding without its texts."""

    kind: str
    stream: str | None
    segment: int | None
    first: int | None
    last: int | None
    endpoint: int | None = None


class AuditResult(NamedTuple):
    result: JobResult
    folder: Path

    @property
    def findings(self) -> list[ExpectedFinding]:
        return [
            ExpectedFinding(
                row["kind"],
                row["stream"],
                None if row["segment"] is None else int(row["segment"].rpartition("-")[2]),
                *(row[name] for name in ("first", "last", "endpoint")),
            )
            for row in self.rows("findings")
        ]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Read a table of the result."""
        rows: list[dict[str, Any]] = pq.read_table(self.folder / f"{name}.parquet").to_pylist()
        return rows

    def lines(self, name: str) -> list[dict[str, str]]:
        """Read a table of the result as CSV."""
        with (self.folder / f"{name}.csv").open(newline="") as file:
            return list(csv.DictReader(file))


def audit(
    spark: SparkSession, history: JobHistory, *, number: int = 1, **layout: Any
) -> AuditResult:
    """Write the history (`layout` as for JobHistory.write) and audit it as run `number`."""
    history.write(**layout)
    spec = history.spec("audit", run=number)
    return AuditResult(run(spark, spec, Phases(spark.sparkContext)), Path(spec.result))
