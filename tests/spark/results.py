"""Comparison of two results of back-tests."""

from pathlib import Path

import pyarrow.parquet as pq


def assert_same_files(one: Path, other: Path) -> None:
    """Check that the files in two folders of results have the same contents."""
    for name in ("matches", "segments"):
        assert pq.read_table(one / name) == pq.read_table(other / name)
    for name in ("matches.csv", "report.html"):
        assert (one / name).read_text() == (other / name).read_text()
