"""Tables as CSV, for spreadsheets too: texts that these would run are made harmless.
Plain module.
"""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_FORMULA = "^[=+\\-@\t\r]"  # what spreadsheets run


def write_csv(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """The names of the columns, then the rows; nulls are empty."""
    with pyarrow.csv.CSVWriter(path, schema) as out:
        for batch in batches:
            out.write_batch(_harmless(batch))


def _harmless(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Texts that a spreadsheet would run get an apostrophe before them."""
    columns = [
        pc.replace_substring_regex(column, _FORMULA, "'\\0")
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
