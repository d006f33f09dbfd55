"""The inputs of a job, written from rows of Python."""

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
    """All tables of sparkjobs/tables.py: those not given are empty, columns not given are null.
    `files`: parts of each table; `backwards`: rows in the opposite order.
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
