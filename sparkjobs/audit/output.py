"""Tables of a result: one Parquet file each, in one order, and the same as CSV. Spark module."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

_ROWS = 65_536  # held at once
_FORMULA = "^[=+\\-@\t\r]"  # what spreadsheets run


def write_both(frame: DataFrame, order: Sequence[str], work: Path, result: Path) -> None:
    """`result`.parquet and `result`.csv. Rows that are equal in `order` must be equal."""
    aside = work / result.name
    names = [name for name in frame.columns if name != "rank"]
    in_order = frame.repartition(1).sortWithinPartitions(*order).select(*names)
    in_order.write.mode("overwrite").parquet(str(aside))
    [part] = sorted(aside.glob("part-*.parquet"))
    file = result.with_name(f"{result.name}.parquet")
    part.replace(file)
    _write_csv(file, result.with_name(f"{result.name}.csv"))


def _write_csv(parquet: Path, path: Path) -> None:
    file = pq.ParquetFile(parquet)
    with csv.CSVWriter(path, file.schema_arrow) as out:
        for batch in file.iter_batches(batch_size=_ROWS):
            out.write_batch(_harmless(batch))


def _harmless(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts that a spreadsheet would run get an apostrophe before them."""
    columns = [
        pc.replace_substring_regex(column, _FORMULA, "'\\0")
        if pa.types.is_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
