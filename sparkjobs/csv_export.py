"""CSV files that are safe in spreadsheets: texts that look like formulas are escaped. Plain
module.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_FORMULA = "^[=+\\-@\t\r]"  # spreadsheets evaluate texts that begin so


def write_csv(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a header of column names, then the rows; nulls become empty fields."""
    with pyarrow.csv.CSVWriter(path, schema) as out:
        for batch in batches:
            out.write_batch(_escape_formulas(batch))


def _escape_formulas(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Escape texts that a spreadsheet would evaluate with a leading apostrophe."""
    columns = [
        pc.replace_substring_regex(column, _FORMULA, "'\\0")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
