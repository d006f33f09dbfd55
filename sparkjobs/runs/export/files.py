"""The Parquet files of a run's inputs, with the columns of sparkjobs/tables.py. Plain module."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventhub.base.errors import EventHubError
from eventhub.eventlog.errors import StorageFull

_TIME = pa.timestamp("us", tz="UTC")


class InputsNotWritten(EventHubError):
    """The inputs of the job could not be written to the data folder."""


class ParquetFile:
    """A file written in batches. Raises StorageFull, InputsNotWritten."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        flat = [field.name for field in schema if not pa.types.is_binary(field.type)]
        with writing():
            self._writer = pq.ParquetWriter(path, schema, use_dictionary=flat)

    def write(self, batch: pa.RecordBatch) -> None:
        with writing():
            self._writer.write_batch(columns(batch, self._schema))

    def close(self) -> None:
        with writing():
            self._writer.close()


def write_table(
    path: Path,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    report: Callable[[int], None],
) -> int:
    """Write a whole file and return its rows; `report` receives the rows of each batch."""
    rows = 0
    file = ParquetFile(path, schema)
    try:
        for batch in batches:
            file.write(batch)
            rows += batch.num_rows
            report(batch.num_rows)
    finally:
        file.close()
    return rows


def columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to a schema. Columns are found by name; `created_at_us` may be a timestamp
    `created_at`.
    """
    given = set(batch.schema.names)
    names = [name if name in given else name.removesuffix("_us") for name in schema.names]
    arrays = [
        _column(batch.column(name), kind) for name, kind in zip(names, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@contextmanager
def writing() -> Iterator[None]:
    """Translate errors of the disk in the block. Raises StorageFull, InputsNotWritten."""
    try:
        yield
    except OSError as error:
        if error.errno == ENOSPC:
            raise StorageFull(
                "The disk of the data folder is full: the job's inputs do not fit."
            ) from error
        raise InputsNotWritten(f"The job's inputs cannot be written: {error}") from error


def _column(values: Any, kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(values.type):
        values = pc.cast(values, _TIME).view(pa.int64())
    return values if values.type == kind else pc.cast(values, kind)
