"""Input tables of a job, written from Python rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sparkjobs.tables import TABLES

Row = Mapping[str, Any]


def write_tables(
    inputs: Path, rows: Mapping[str, Sequence[Row]], *, files: int = 1, backwards: bool = False
) -> None:
    """Write all tables of sparkjobs/tables.py: tables not given are empty, columns not given null.
    `files`: parts of each table; `backwards`: rows in reverse order.
    """
    for name, schema in TABLES.items():
        folder = inputs / name
        folder.mkdir(parents=True, exist_ok=True)
        found = [*rows.get(name, ())]
        for row in found:
            assert row.keys() <= set(schema.names), (
                f"{name} has no {row.keys() - set(schema.names)}"
            )
        if backwards:
            found.reverse()
        for number in range(files):
            part = pa.Table.from_pylist([dict(row) for row in found[number::files]], schema=schema)
            pq.write_table(part, folder / f"part-{number:05}.parquet")
