"""Tables as CSV that people open in spreadsheets."""

import csv
from pathlib import Path

import pyarrow as pa
import pytest

from sparkjobs.csv_export import write_csv


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_that_a_spreadsheet_would_run_get_an_apostrophe(
    tmp_path: Path, kind: pa.DataType
) -> None:
    texts = ["=1+1", "+1", "-1", "@sum", "\tx", "\rx", "a=b", "", 'say "so", or\nnot', None]
    shown = ["'=1+1", "'+1", "'-1", "'@sum", "'\tx", "'\rx", "a=b", "", 'say "so", or\nnot', ""]
    numbers = [-n for n in range(len(texts))]
    table = pa.table({"name": pa.array(texts, kind), "number": numbers})
    write_csv(tmp_path / "table.csv", table.schema, table.to_batches(max_chunksize=3))
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["name", "number"]
    assert rows[1:] == [[text, str(n)] for text, n in zip(shown, numbers, strict=True)]


def test_a_table_without_rows_has_the_names_of_its_columns(tmp_path: Path) -> None:
    table = pa.table({"name": pa.array([], pa.string())})
    write_csv(tmp_path / "table.csv", table.schema, table.to_batches())
    assert (tmp_path / "table.csv").read_text() == '"name"\n'
